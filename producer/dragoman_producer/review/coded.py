"""The texts of a review with their inline codes, which stand in the documents alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import plain
from dragoman_producer.manifest.files import FileRows
from dragoman_producer.review.page import ReviewRow, Verdict
from dragoman_producer.review.rows import StandingFolder, StoredText
from dragoman_producer.runs.extracting import Children, MissingParser
from dragoman_producer.runs.paths import loaded
from dragoman_producer.runs.reading import question
from dragoman_producer.runs.refusals import DocumentRefused


async def coded(
    standing: StandingFolder, lang: str, verdicts: Collection[Verdict]
) -> list[ReviewRow]:
    """Return the texts with these verdicts; those of documents that have changed without codes."""
    found: list[ReviewRow] = []
    children = Children(1)
    try:
        for _, some in groupby(_wanted(standing, lang, verdicts), lambda each: each.file):
            found += await _with_codes(standing, lang, list(some), children)
    finally:
        await children.close()
    return found


def _wanted(
    standing: StandingFolder, lang: str, verdicts: Collection[Verdict]
) -> Iterator[StoredText]:
    return (each for each in standing.stored(lang) if each.row.verdict in verdicts)


async def _with_codes(
    standing: StandingFolder, lang: str, texts: list[StoredText], children: Children
) -> list[ReviewRow]:
    codes: dict[int, tuple[InlineCode, ...]] = {}

    def keep(rows: list[list[Any]]) -> None:
        codes.update((number, tuple(InlineCode(*code) for code in some)) for number, some in rows)

    if any(plain(each.row.source) != each.row.source for each in texts):
        try:
            await children.codes(_question(standing, lang, texts[0]), keep)
        except (
            DocumentRefused,
            MissingParser,
        ):  # it has changed or is gone: the tags are exported all the same
            codes.clear()
    return [replace(each.row, codes=codes.get(each.number, ())) for each in texts]


def _question(standing: StandingFolder, lang: str, text: StoredText) -> dict[str, Any]:
    _, source, form, site, sha256, _ = FileRows(standing.manifest, text.run).find(text.file)
    asked = question(standing.request_of(text.run), Path(loaded(source)), form, site, lang)
    return {**asked, "sha256": sha256}
