"""Terms of a glossary as they are collected from files, with remarks about odd lines."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dragoman_producer.operations.text_files import InvalidFile
from dragoman_schemas.glossaries import (
    LONGEST_NOTE,
    LONGEST_TERM,
    MOST_TARGETS,
    MOST_TERMS,
    GlossaryEntry,
)

MOST_LISTED: Final = 20
"""Remarks of one kind that are kept with their lines; all are counted."""
MOST_ROWS: Final = 1_000_000
"""Rows of all files of one command."""
_EDGES: Final = "\ufeff\u200b\u2060"
"""Zero-width characters that copied text has at its ends; joiners belong to words."""
_BIDI_CONTROLS: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

DUPLICATE: Final = "duplicate"
ALTERNATIVE: Final = "alternative"
EMPTY: Final = "empty"
INCOMPLETE: Final = "incomplete"
KINDS: Final = {
    DUPLICATE: "the same term and translation as before: ignored",
    ALTERNATIVE: "another translation of a term: both are accepted, the first is asked for",
    EMPTY: "no term: ignored",
    INCOMPLETE: "a term without a translation, or the reverse: ignored",
}


Place = tuple[Path, int]
"""A file and a line of it."""


@dataclass(frozen=True, slots=True)
class DraftRemark:
    """A line that was not taken as it is; `earlier` is the line it repeats or contradicts."""

    kind: str
    file: str
    line: int
    earlier: int | None = None
    earlier_file: str | None = None


@dataclass(slots=True)
class _Found:
    source: str
    targets: list[str]
    case_sensitive: bool
    note: str | None
    place: Place


@dataclass(slots=True)
class Draft:
    """A glossary that is being collected."""

    source_lang: str | None = None
    remarks: list[DraftRemark] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Remarks by kind, listed or not."""
    rows: int = 0
    _terms: dict[str, dict[tuple[bool, str], _Found]] = field(default_factory=dict)

    def from_language(self, path: Path, tag: str | None) -> None:
        """Note the source language of a file. Raises InvalidFile if another file has another."""
        if tag is None or tag == self.source_lang:
            return
        if self.source_lang is not None:
            why = f"its source language is {tag}, but the glossary's is {self.source_lang}"
            raise InvalidFile(path, None, f"{why}; a glossary has one, see --from")
        self.source_lang = tag

    def row(self, path: Path, line: int) -> None:
        """Count a row. Raises InvalidFile beyond the limit."""
        self.rows += 1
        if self.rows > MOST_ROWS:
            raise InvalidFile(path, line, f"more than {MOST_ROWS:,} rows; split the glossary")

    def remark(self, kind: str, path: Path, line: int, earlier: Place | None = None) -> None:
        """Note a line that is ignored or odd."""
        self.counts[kind] += 1
        if self.counts[kind] <= MOST_LISTED:
            file, before = (str(earlier[0]), earlier[1]) if earlier else (None, None)
            self.remarks.append(DraftRemark(kind, str(path), line, before, file))

    def add(self, path: Path, line: int, tag: str, entry: GlossaryEntry) -> None:
        """Add a term with one translation. Raises InvalidFile beyond the limits."""
        terms = self._terms.setdefault(tag, {})
        exact = entry.case_sensitive
        key = (exact, entry.source if exact else entry.source.casefold())
        (target,) = entry.targets
        known = terms.get(key)
        if known is None:
            if len(terms) == MOST_TERMS:
                why = f"more than {MOST_TERMS:,} terms for {tag}; split the glossary"
                raise InvalidFile(path, line, why)
            terms[key] = _Found(entry.source, [target], exact, entry.note, (path, line))
        elif target in known.targets:
            self.remark(DUPLICATE, path, line, known.place)
        elif len(known.targets) == MOST_TARGETS:
            raise InvalidFile(path, line, f"more than {MOST_TARGETS} translations of one term")
        else:
            known.targets.append(target)
            self.remark(ALTERNATIVE, path, line, known.place)

    def entries(self) -> dict[str, list[GlossaryEntry]]:
        """Return the terms by target tag, in the order of their first lines."""
        return {
            tag: [
                GlossaryEntry(one.source, tuple(one.targets), one.case_sensitive, one.note)
                for one in found.values()
            ]
            for tag, found in self._terms.items()
            if found
        }


def cleaned(path: Path, line: int, text: str) -> str:
    """Return a cell as a term, "" if nothing of it is visible. Raises InvalidFile."""
    term = text.strip().strip(_EDGES).strip()
    if len(term) > LONGEST_TERM:
        why = f"a term of {len(term):,} characters; at most {LONGEST_TERM} are allowed"
        raise InvalidFile(path, line, why)
    if term.isascii() and term.isprintable():
        return term
    for character in term:
        if unicodedata.category(character) in {"Cc", "Zl", "Zp"} or character in _BIDI_CONTROLS:
            code = f"U+{ord(character):04X}"
            raise InvalidFile(path, line, f"a term with the control character {code}; remove it")
    invisible = all(unicodedata.category(character) in {"Cf", "Zs"} for character in term)
    return "" if invisible else term


def cleaned_note(text: str) -> str | None:
    """Return a note on one line, at most LONGEST_NOTE characters; None if it is empty."""
    return " ".join(text.split())[:LONGEST_NOTE] or None
