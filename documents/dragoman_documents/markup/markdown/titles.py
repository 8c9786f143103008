"""Titles of Markdown links, images and link definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.markup.markdown.events import Token
from dragoman_documents.references import unescaped
from dragoman_text.spans import has_letters

_TITLE: Final = re.compile(
    rb"""[ \t\r\n](?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)')[ \t]*\)?\Z""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_BREAKS: Final = re.compile(r"(?<![ \t])[ \t]*[\r\n]+[ \t]*")
_SYNTAX: Final = re.compile(r"""[\\"'|<>`*_\[\]$~{}]|&(?=[#A-Za-z])""")


@dataclass(frozen=True, slots=True)
class Title:
    """A title at `[start:end)`, without its quotes."""

    start: int
    end: int
    text: str


def titles(tokens: Sequence[Token], source: bytes) -> Iterator[Title]:
    """Yield the titles of links and images that have letters."""
    for token in tokens:
        if token.kind in ("close", "single") and source.startswith(_ENDS, token.end - 2):
            yield from title_at(token.start, token.end, source)


_ENDS: Final = (b'")', b"')")


def title_at(start: int, end: int, source: bytes) -> Iterator[Title]:
    """Yield the title at the end of a link or a link definition."""
    found = _TITLE.search(source[start:end].rstrip(b"\r\n"))
    if found is None or found.lastgroup is None:
        return
    text = _decoded(found[found.lastgroup].decode())
    if has_letters(text):
        first, last = found.span(found.lastgroup)
        yield Title(start + first, start + last, text)


def spelled_title(text: str) -> str:
    """Return a title's Markdown, on one line and valid in either kind of quotes."""
    return _SYNTAX.sub(r"\\\g<0>", _BREAKS.sub(" ", text).strip(" \t"))


def _decoded(raw: str) -> str:
    """Return the text: escapes and references resolved, line breaks as blanks."""
    parts = _ESCAPE.split(raw)
    parts[::2] = [unescaped(part) for part in parts[::2]]
    return _BREAKS.sub(" ", "".join(parts)).strip(" \t")
