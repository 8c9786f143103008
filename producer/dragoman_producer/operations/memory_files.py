"""Reader of approved translations: TMX, TSV, CSV and JSONL (docs/how-to/memory.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman_connections.terminal import counted
from dragoman_producer.operations.glossary_files import (
    MOST_COLUMNS,
    Languages,
    matching_tag,
    table_rows,
)
from dragoman_producer.operations.text_files import LONE_RETURNS, InvalidFile, numbered_lines
from dragoman_producer.operations.tmx import TmxUnit, known_tag, read_tmx
from dragoman_schemas.approved import MOST_TARGET_BYTES, ApprovedTranslation, is_utf8
from dragoman_schemas.jobs import MAX_CONTEXT_BYTES, MAX_TEXT_BYTES

SUFFIXES: Final = (".tmx", ".tsv", ".csv", ".jsonl")
NAMED: Final = ("source_lang", "target_lang", "source", "target", "context")
"""Columns of an exported table, and members of a JSONL line."""
_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}

EMPTY: Final = "empty"
INCOMPLETE: Final = "incomplete"
LANGUAGE: Final = "language"
TOO_LONG: Final = "too_long"
INVALID: Final = "invalid"
UNIT: Final = "unit"
KEY: Final = "key"
DUPLICATE: Final = "duplicate"
CONFLICT: Final = "conflict"
KINDS: Final = {
    EMPTY: "an empty line: ignored",
    INCOMPLETE: "no source text, or no translation of it: not imported",
    LANGUAGE: "no valid target or source language: not imported; give --to and --from",
    TOO_LONG: "the source has over 128 KiB, the translation over 512, or the context over 8: "
    "not imported",
    INVALID: "not an object with the texts source and target, or not its columns: not imported",
    UNIT: "a text of the translation unit is invalid: not imported",
    KEY: "its key in Redis is not a hash: not imported",
    DUPLICATE: "the same as an earlier line: ignored",
    CONFLICT: "another translation of an earlier line's text: not imported",
}


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A line (for TMX, of the unit) with its translation."""

    path: Path
    line: int
    translation: ApprovedTranslation


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line (for TMX, of the unit) that is not imported, and the kind of problem."""

    path: Path
    line: int
    problem: str
    detail: str | None = None
    """The problem of this row, where its kind does not name it."""


def read_memory(path: Path, languages: Languages) -> Iterator[MemoryRow | RefusedLine]:
    """Yield the rows of a file as they are read. Raises InvalidFile for one that is unreadable."""
    suffix = path.suffix.lower()
    if suffix == ".tmx":
        return _tmx(path, languages)
    if suffix == ".jsonl":
        return _jsonl(path, languages)
    if suffix in SUFFIXES:
        return _table(path, suffix, languages)
    raise InvalidFile(path, None, f"give a file in {', '.join(SUFFIXES)}")


def escaped(text: str) -> str:
    """Return a cell of an exported table: tabs, line ends and backslashes as in a string."""
    return "".join(_ESCAPES.get(character, character) for character in text)


# --- formats --------------------------------------------------------------------------------------


def _jsonl(path: Path, languages: Languages) -> Iterator[MemoryRow | RefusedLine]:
    for line, text in numbered_lines(path):
        if not text.strip():
            yield RefusedLine(path, line, EMPTY)
            continue
        try:
            members = json.loads(text)
        except (ValueError, RecursionError):
            if "\r" in text and "\n" not in text:
                raise InvalidFile(path, line, LONE_RETURNS) from None
            members = None
        if isinstance(members, dict) and _has_texts(members):
            yield _row(path, line, members, languages)
        else:
            yield RefusedLine(path, line, INVALID)


def _has_texts(members: Mapping[str, object]) -> bool:
    return not members.keys() - set(NAMED) and all(
        value is None or isinstance(value, str) for value in members.values()
    )


def _tmx(path: Path, languages: Languages) -> Iterator[MemoryRow | RefusedLine]:
    for unit in read_tmx(path):
        source_tag = matching_tag(languages.source or unit.source_lang, unit.texts)
        targets = {} if source_tag is None else _targets(unit, source_tag, languages)
        for held, tag in targets.items():
            members = {
                "source": unit.texts[source_tag or ""],
                "target": unit.texts[held],
                "source_lang": languages.source or source_tag,
                "target_lang": tag,
            }
            yield _row(path, unit.line, members, languages)
        if unit.problem is not None and (not targets or languages.target is None):
            detail = f"unit {unit.number:,}: {unit.problem}: not imported"
            yield RefusedLine(path, unit.line, UNIT, detail=detail)
        elif not targets:
            known = source_tag or languages.source or unit.source_lang
            yield RefusedLine(path, unit.line, INCOMPLETE if known else LANGUAGE)
        if unit.repeated is not None and unit.repeated in {source_tag, *targets}:
            detail = f"unit {unit.number:,}: another text in {unit.repeated}: not imported"
            yield RefusedLine(path, unit.line, UNIT, detail=detail)


def _targets(unit: TmxUnit, source_tag: str, languages: Languages) -> dict[str, str]:
    """Return the tags of the unit's translations, and the tag that each is stored under."""
    if languages.target is None:
        return {tag: tag for tag in unit.texts if tag != source_tag}
    wanted = matching_tag(languages.target, unit.texts)
    return {} if wanted is None or wanted == source_tag else {wanted: languages.target}


def _table(path: Path, suffix: str, languages: Languages) -> Iterator[MemoryRow | RefusedLine]:
    columns: list[str] | None = None
    for line, cells in table_rows(path, suffix):
        if not any(cell.strip() for cell in cells):
            yield RefusedLine(path, line, EMPTY)
            continue
        if columns is None:
            columns = _header(cells, languages)
            if columns is not None:
                continue
            columns = ["source", "target", "context"][: max(2, min(3, len(cells)))]
        if len(cells) != len(columns):
            detail = f"{counted(len(cells), 'column')} instead of {len(columns)}: not imported"
            yield RefusedLine(path, line, INVALID, detail=detail)
            continue
        yield from _cells(path, line, dict(zip(columns, cells, strict=True)), languages)


def _header(cells: list[str], languages: Languages) -> list[str] | None:
    """Return the columns if the row is a header, of our names or of language tags; else None.

    With --to, tags are a header only if that language is among them: `no` and `yes` are words too.
    """
    if len(cells) > MOST_COLUMNS:
        return None
    names = [cell.strip().strip("\ufeff") for cell in cells]
    if {"source", "target"} <= set(names) <= set(NAMED) and len(set(names)) == len(names):
        return [*names]
    tags = [name if name == "context" else known_tag(name) for name in names]
    if len(tags) < 2 or None in tags or len(set(tags)) < len(tags) or tags[0] == "context":
        return None
    targets = [tag for tag in tags[1:] if tag is not None and tag != "context"]
    if languages.target is not None and matching_tag(languages.target, targets) is None:
        return None
    return [f"={tag}" if tag != "context" else "context" for tag in tags]


def _cells(
    path: Path, line: int, cells: Mapping[str, str], languages: Languages
) -> Iterator[MemoryRow | RefusedLine]:
    if "source" in cells:
        named = "source_lang" in cells or "target_lang" in cells
        texts = {name: _unescaped(cell) if named else cell for name, cell in cells.items()}
        yield _row(path, line, texts, languages)
        return
    (source_tag, source), *targets = [pair for pair in cells.items() if pair[0] != "context"]
    chosen = matching_tag(languages.target, [tag[1:] for tag, _ in targets])
    wanted = [(tag[1:], text) for tag, text in targets if chosen in {None, tag[1:]}]
    for tag, target in wanted:
        members = {
            "source": source,
            "target": target,
            "source_lang": languages.source or source_tag[1:],
            "target_lang": languages.target or tag,
            "context": cells.get("context"),
        }
        yield _row(path, line, members, languages)
    if not wanted:
        yield RefusedLine(path, line, LANGUAGE)


def _unescaped(cell: str) -> str:
    if "\\" not in cell:
        return cell
    signs = {escape: sign for sign, escape in _ESCAPES.items()}
    parts, place = [], 0
    while place < len(cell):
        pair = cell[place : place + 2]
        parts.append(signs.get(pair, cell[place]))
        place += 2 if pair in signs else 1
    return "".join(parts)


# --- rows -----------------------------------------------------------------------------------------


def _row(
    path: Path, line: int, members: Mapping[str, str | None], languages: Languages
) -> MemoryRow | RefusedLine:
    source, target = ((members.get(name) or "").strip() for name in ("source", "target"))
    context = members.get("context") or None
    if not source or not target:
        return RefusedLine(path, line, INCOMPLETE)
    texts = (source, target, context or "")
    if not all(map(is_utf8, texts)):
        return RefusedLine(path, line, INVALID)
    sizes = [len(text.encode()) for text in texts]
    limits = (MAX_TEXT_BYTES, MOST_TARGET_BYTES, MAX_CONTEXT_BYTES)
    if any(size > most for size, most in zip(sizes, limits, strict=True)):
        return RefusedLine(path, line, TOO_LONG)
    given = members.get("source_lang") or languages.source
    target_lang = known_tag(members.get("target_lang") or languages.target or "")
    source_lang = known_tag(given) if given else None
    if target_lang is None or (given and source_lang is None):
        return RefusedLine(path, line, LANGUAGE)
    return MemoryRow(
        path, line, ApprovedTranslation(source, target, target_lang, source_lang, context)
    )
