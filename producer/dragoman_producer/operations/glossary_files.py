"""Reader of glossary files: TSV, CSV and TMX (docs/how-to/glossaries.md)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from dragoman_producer.operations import glossary_draft as drafts
from dragoman_producer.operations.glossary_draft import Draft, cleaned, cleaned_note
from dragoman_producer.operations.text_files import (
    LONE_RETURNS,
    LONGEST_LINE,
    InvalidFile,
    numbered_lines,
)
from dragoman_producer.operations.tmx import TmxUnit, known_tag, read_tmx
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_schemas.languages import lookup_tags

_TEXTS: Final = ("source", "target")
_NOTE: Final = "note"
_CASE: Final = "case_sensitive"
_YES: Final = frozenset({"1", "x", "yes", "true"})
_NO: Final = frozenset({"", "0", "no", "false"})
MOST_COLUMNS: Final = 256
_QUOTED: Final = re.compile('"[^"]*"')
_SUFFIXES: Final = (".tsv", ".csv", ".tmx")


NumberedLines = Iterator[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Languages:
    """Canonical tags of --from and --to, None where the option is not given."""

    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class _Columns:
    """What each column of a table holds."""

    count: int
    targets: dict[int, str]
    note: int | None = None
    case: int | None = None


def read_glossary(paths: Sequence[Path], languages: Languages) -> Draft:
    """Read all files into one draft. Raises InvalidFile."""
    draft = Draft(source_lang=languages.source)
    for path in paths:
        suffix = path.suffix.lower()
        if suffix not in _SUFFIXES:
            raise InvalidFile(path, None, f"give a file in {', '.join(_SUFFIXES)}")
        if suffix == ".tmx":
            _read_tmx(path, languages, draft)
        else:
            _read_table(path, suffix, languages, draft)
    if not draft.entries():
        raise InvalidFile(paths[-1], None, "no term was found; nothing was changed")
    return draft


# --- tables ---------------------------------------------------------------------------------------


def _read_table(path: Path, suffix: str, languages: Languages, draft: Draft) -> None:
    columns: _Columns | None = None
    for line, cells in table_rows(path, suffix):
        draft.row(path, line)
        if not any(cell.strip() for cell in cells):
            draft.remark(drafts.EMPTY, path, line)
            continue
        if columns is None:
            columns = _header(path, cells, languages, draft)
            if columns is not None:
                continue
            columns = _without_header(path, line, cells, languages)
        if len(cells) != columns.count:
            raise InvalidFile(path, line, _other_columns(len(cells), columns.count, suffix))
        _add_row(path, line, cells, columns, draft)


def _other_columns(found: int, wanted: int, suffix: str) -> str:
    if found < wanted:
        do = "give every line a cell for each column, also an empty one"
    elif suffix == ".tsv":
        do = "a cell holds no tab"
    else:
        do = "a cell holds no separator unless it is quoted"
    return f"{found} columns instead of {wanted}; {do}"


def table_rows(path: Path, suffix: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the number of their last line. Raises InvalidFile."""
    lines = numbered_lines(path)
    first = next(lines, None)
    if first is None:
        raise InvalidFile(path, None, "the file is empty")
    yield from (_tsv_rows if suffix == ".tsv" else _csv_rows)(path, chain([first], lines), first[1])


def _tsv_rows(path: Path, lines: NumberedLines, _first: str) -> Iterator[tuple[int, list[str]]]:
    for line, text in lines:
        row = text.removesuffix("\n").removesuffix("\r")
        if "\r" in row:
            raise InvalidFile(path, line, LONE_RETURNS)
        yield line, row.split("\t") if row else []


def _csv_rows(path: Path, lines: NumberedLines, first: str) -> Iterator[tuple[int, list[str]]]:
    if "\n" not in first and "\r" in _QUOTED.sub("", first).rstrip("\r"):
        raise InvalidFile(path, 1, LONE_RETURNS)
    csv.field_size_limit(LONGEST_LINE)  # the module's own limit is shorter than a translation
    texts = (text for _, text in lines)
    reader = csv.reader(texts, delimiter=_separator(path, first), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise InvalidFile(path, reader.line_num, _why(str(error))) from None


def _why(error: str) -> str:
    if "new-line character" in error:
        return LONE_RETURNS
    if "field limit" in error:
        return f"a cell of more than {LONGEST_LINE:,} characters; is a quote not closed?"
    return f"{error}; is a quote not closed?"


def _separator(path: Path, line: str) -> str:
    """Return what separates the cells of the first line. Raises InvalidFile if that is in doubt."""
    outside = _QUOTED.sub("", line)
    held = [sign for sign in ",;\t" if sign in outside]
    if len(held) > 1:
        why = "the line holds more than one of comma, semicolon and tab, so what separates its"
        raise InvalidFile(path, 1, f"{why} cells is in doubt: quote the cells, or save it as .tsv")
    return held[0] if held else ","


def _header(path: Path, cells: list[str], languages: Languages, draft: Draft) -> _Columns | None:
    """Return the columns if the row is a header of language tags, else None. Raises InvalidFile."""
    names = [cell.strip().strip("\ufeff").lower() for cell in cells[: MOST_COLUMNS + 1]]
    others = {name: place for place, name in enumerate(names) if name in (_NOTE, _CASE)}
    if names[:2] == list(_TEXTS) and len(names) == 2 + len(others) and languages.target:
        return _Columns(len(names), {1: languages.target}, others.get(_NOTE), others.get(_CASE))
    tags = {place: known_tag(name) for place, name in enumerate(names) if name not in others}
    source, *targets = tags.values() or (None,)
    if source is None or not targets or None in targets:
        return None
    held = [tag for tag in targets if tag is not None]
    chosen = matching_tag(languages.target, held)
    if languages.target is not None and chosen is None:
        return None
    if len(names) > MOST_COLUMNS or len(set(targets)) < len(targets) or 0 in others.values():
        why = f"a header names a language twice, or has more than {MOST_COLUMNS} columns"
        raise InvalidFile(path, 1, why)
    if languages.source is None:
        draft.from_language(path, source)
    elif languages.source not in lookup_tags(source):
        raise InvalidFile(path, 1, f"the header is from {source}, not from {languages.source}")
    wanted = {
        place: languages.target or tag
        for place, tag in tags.items()
        if place and tag is not None and chosen in {None, tag}
    }
    return _Columns(len(names), wanted, others.get(_NOTE), others.get(_CASE))


def _without_header(path: Path, line: int, cells: Sequence[str], languages: Languages) -> _Columns:
    if languages.target is None:
        why = "no header of language tags, such as en and de; add one, or give --to (and --from)"
        raise InvalidFile(path, line, why)
    if len(cells) != 2:
        why = f"{len(cells)} columns instead of 2 (term, translation)"
        raise InvalidFile(path, line, f"{why}; more columns need a header of language tags")
    return _Columns(2, {1: languages.target})


def _add_row(path: Path, line: int, cells: list[str], columns: _Columns, draft: Draft) -> None:
    source = cleaned(path, line, cells[0])
    exact = columns.case is not None and _flag(path, line, cells[columns.case])
    note = None if columns.note is None else cleaned_note(cells[columns.note])
    found = False
    for place, tag in columns.targets.items():
        target = cleaned(path, line, cells[place])
        if source and target:
            found = True
            draft.add(path, line, tag, GlossaryEntry(source, (target,), exact, note))
    if not found:
        draft.remark(drafts.INCOMPLETE, path, line)


def _flag(path: Path, line: int, cell: str) -> bool:
    value = cell.strip().lower()
    if value not in _YES | _NO:
        raise InvalidFile(path, line, f"{_CASE} is {value[:20]!r}; give yes or no")
    return value in _YES


# --- TMX ------------------------------------------------------------------------------------------


def _read_tmx(path: Path, languages: Languages, draft: Draft) -> None:
    seen: set[str] = set()
    found = False
    for unit in read_tmx(path):
        draft.row(path, unit.line)
        if unit.problem is not None:
            raise InvalidFile(path, unit.line, f"unit {unit.number:,}: {unit.problem}")
        seen.update(unit.texts)
        source_tag = matching_tag(languages.source or unit.source_lang, unit.texts)
        if source_tag is None:
            if languages.source is None and unit.source_lang is None:
                raise InvalidFile(path, unit.line, "the file names no source language: give --from")
            draft.remark(drafts.INCOMPLETE, path, unit.line)
            continue
        if languages.source is None:
            draft.from_language(path, unit.source_lang)
        found = _add_unit(path, unit, source_tag, languages, draft) or found
    if not found:
        wanted = f"{languages.source or 'its source language'} to {languages.target or 'another'}"
        held = ", ".join(sorted(seen)[:10]) or "none"
        raise InvalidFile(path, None, f"no term from {wanted}; the languages of the file: {held}")


def _add_unit(
    path: Path, unit: TmxUnit, source_tag: str, languages: Languages, draft: Draft
) -> bool:
    source = cleaned(path, unit.line, unit.texts[source_tag])
    if languages.target is None:
        targets = {tag: tag for tag in unit.texts if tag != source_tag}
    else:
        match = matching_tag(languages.target, unit.texts)
        targets = {match: languages.target} if match and match != source_tag else {}
    found = False
    for held, tag in targets.items():
        target = cleaned(path, unit.line, unit.texts[held])
        if source and target:
            found = True
            draft.add(path, unit.line, tag, GlossaryEntry(source, (target,)))
    if not found:
        draft.remark(drafts.INCOMPLETE, path, unit.line)
    return found


def matching_tag(wanted: str | None, tags: Iterable[str]) -> str | None:
    """Return the tag that is the wanted language: itself, or else a variety such as en-US."""
    if wanted is None or wanted in tags:
        return wanted
    return next((tag for tag in sorted(tags) if wanted in lookup_tags(tag)), None)
