"""Texts of attributes in other syntax: titles of shortcodes, components and directives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from dragoman_documents.markup.markdown.titles import Syntax, Title, decoded
from dragoman_documents.values import is_text

_OTHER: Final = re.compile(r"\{[{%]|\$\{")
"""Values that are made by a program."""


@cache
def _pattern(names: frozenset[str]) -> re.Pattern[bytes]:
    any_name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    text = (
        rf"(?<![\w.:-])(?:{any_name})[ \t]*=[ \t\r\n]*"
        r"(?:\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\]|\\.)*)')"
    )
    return re.compile(text.encode(), re.DOTALL)


def attributes(
    source: bytes, start: int, end: int, names: frozenset[str], syntax: Syntax
) -> Iterator[Title]:
    """Yield the texts of these attributes between two places."""
    if not names or source.find(b"=", start, end) < 0:
        return
    for match in _pattern(names).finditer(source, start, end):
        first, last = match.span(match.lastgroup or 0)
        raw = source[first:last].decode()
        text = decoded(raw, syntax)
        if is_text(text) and not _OTHER.search(raw):
            yield Title(first, last, text, syntax)
