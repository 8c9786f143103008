"""Checks the links of translations that exist already; no run has to have written them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dragoman_producer.runs.extracting import Children
from dragoman_producer.runs.links import LinkCheck, Links, PagePairs
from dragoman_producer.runs.request import Request
from dragoman_producer.runs.selecting import Selection, output_of


async def checked(request: Request) -> tuple[int, Links]:
    """Return the number of translations that are there, and what became of their links."""
    pairs, lang = PagePairs(request), request.to[0]
    found = [each for each in Selection(request, [lang]).files() if each.reason is None]
    made = [
        pairs.of(each, output, lang)
        for each in found
        if (output := _output(request, each.path, lang)) is not None
    ]
    known = [each for each in made if each is not None]
    children = Children()
    try:
        links = await LinkCheck(children, known, [each.path for each in found]).check()
    finally:
        await children.close()
    return len(known), links


def _output(request: Request, path: str, lang: str) -> Path | None:
    """Return where the translation of a path is; None if there is none."""
    return next((each for each in _outputs(request, path, lang) if each.is_file()), None)


def _outputs(request: Request, path: str, lang: str) -> Iterator[Path]:
    yield output_of(request, path, lang)
    yield output_of(replace(request, layout="suffix"), path, lang)
    yield request.out / path
