"""Terms of a dictionary: from TSV or CSV as callers send them, as they are stored, and back."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from dragoman_gateway.errors import ApiError
from dragoman_gateway.languages import base
from dragoman_producer.operations.glossaries import EncodedTerms
from dragoman_producer.operations.glossary_draft import cleaned
from dragoman_producer.operations.text_files import InvalidFile
from dragoman_schemas.glossaries import (
    MOST_TERMS,
    GlossaryEntry,
    UnreadableGlossary,
    decode_terms,
    encode_terms,
)

_PLACE: Final = Path("entries")
"""What messages name in place of a file."""
_MOST: Final = f"{MOST_TERMS:,}"
Terms = Mapping[str, str]
"""Translations by source term, in order."""


class Pair(NamedTuple):
    """Languages of a dictionary, without variants."""

    source: str
    target: str


def read_terms(text: str, form: str, pair: Pair) -> Terms:
    """Return the terms of TSV or CSV. Raises ApiError (400), which names the line."""
    terms: dict[str, str] = {}
    lines: dict[str, int] = {}
    rows = _csv_rows if form == "csv" else _tsv_rows
    try:
        for line, cells in rows(text.removeprefix("\ufeff")):
            if not any(cell.strip() for cell in cells):
                continue
            source, target = _term(line, cells, form, pair)
            if source in terms:
                raise _refused(line, f"the term of line {lines[source]:,} again; give it once")
            if len(terms) == MOST_TERMS:
                raise _refused(line, f"more than {_MOST} terms; split the glossary")
            terms[source], lines[source] = target, line
    except InvalidFile as error:
        raise ApiError(400, f"Invalid {error}.") from None
    if not terms:
        raise ApiError(400, "Invalid entries: no term was found.")
    return terms


def encoded(terms: Terms) -> EncodedTerms:
    """Return terms as they are stored. Raises ApiError (400).

    Those that differ only in case are found in their own case alone.
    """
    if len(terms) > MOST_TERMS:
        raise ApiError(400, f"The dictionary would have {len(terms):,} terms, more than {_MOST}.")
    folded = Counter(map(str.casefold, terms))
    entries = (
        GlossaryEntry(source, (target,), folded[source.casefold()] > 1)
        for source, target in terms.items()
    )
    return EncodedTerms(encode_terms(entries), len(terms))


def decoded(content: bytes) -> Terms:
    """Return stored terms. Raises ApiError."""
    try:
        return {each.source: each.targets[0] for each in decode_terms(content)}
    except UnreadableGlossary:
        raise ApiError(500, "Another program changed the terms: delete the glossary.") from None


def written(terms: Terms, form: str) -> str:
    """Return terms as TSV or CSV."""
    if form == "tsv":
        return "\n".join(f"{source}\t{target}" for source, target in terms.items())
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(terms.items())
    return table.getvalue()


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, row in enumerate(text.split("\n"), 1):
        yield line, row.removesuffix("\r").split("\t")


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise _refused(reader.line_num, f"{error}; is a quote not closed?") from None


def _term(line: int, cells: list[str], form: str, pair: Pair) -> tuple[str, str]:
    """Return a term and its translation. Raises ApiError and InvalidFile."""
    if len(cells) != 2 and not (form == "csv" and len(cells) == 4):
        wanted = "2 or 4" if form == "csv" else "2"
        raise _refused(line, f"{len(cells)} columns instead of {wanted}")
    named = [base(cell.strip().lower().replace("_", "-")) for cell in cells[2:]]
    if named and named != list(pair):
        raise _refused(line, f"another pair of languages than {pair.source} and {pair.target}")
    source, target = (cleaned(_PLACE, line, cell) for cell in cells[:2])
    if not source or not target:
        raise _refused(line, "a term without a translation, or the reverse")
    return source, target


def _refused(line: int, why: str) -> ApiError:
    return ApiError(400, f"Invalid entries, line {line:,}: {why}.")
