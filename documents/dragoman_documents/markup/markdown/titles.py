"""Titles of Markdown links, images and link definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dragoman_documents.markup.markdown.events import MarkdownToken
from dragoman_documents.references import reference, unescaped
from dragoman_documents.spelling import Spelling, escapes
from dragoman_text.spans import has_letters

_TITLE: Final = re.compile(
    rb"""[ \t\r\n](?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)')[ \t]*\)?\Z""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_BREAKS: Final = re.compile(r"(?<![ \t])[ \t]*[\r\n]+[ \t]*")
_QUOTE: Final = re.compile(r"""[\\"']""")
_MARKUP: Final = re.compile(r"""["'<{}&]""")
_SYNTAX: Final = re.compile(r"""[\\"'|<>`*_\[\]$~{}&]""")


Syntax = Literal["markdown", "references", "escapes", "plain"]
"""How a title or the text of an attribute is spelled: as Markdown; with references of HTML; with
backslashes, as a string of a program; as it is, to the end of its line."""


@dataclass(frozen=True, slots=True)
class Title:
    """A title at `[start:end)`, without its quotes."""

    start: int
    end: int
    text: str
    syntax: Syntax = "markdown"


def titles(tokens: Sequence[MarkdownToken], source: bytes) -> Iterator[Title]:
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
    text = decoded(found[found.lastgroup].decode(), "markdown")
    if has_letters(text):
        first, last = found.span(found.lastgroup)
        yield Title(*trimmed(source, start + first, start + last), text)


def trimmed(source: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a range without the blanks at its ends, which are no part of its text."""
    raw = source[start:end]
    return start + len(raw) - len(raw.lstrip()), start + len(raw.rstrip())


def spelled_title(text: str, raw: str, syntax: Syntax = "markdown") -> str:
    """Return a title on one line as its source `raw` is spelled, valid in either kind of quotes."""
    line = _BREAKS.sub(" ", text).strip(" \t")
    pieces = escapes(raw, _ESCAPES[syntax], lambda found: decoded(found, syntax) or " ")
    return Spelling(pieces, _DEFAULTS[syntax]).spelled(line)


def decoded(raw: str, syntax: Syntax) -> str:
    """Return the text: escapes and references resolved, line breaks as blanks."""
    text = raw
    if syntax == "markdown":
        parts = _ESCAPE.split(raw)
        parts[::2] = [unescaped(part) for part in parts[::2]]
        text = "".join(parts)
    elif syntax == "escapes":
        text = _ESCAPE.sub(r"\1", raw)
    elif syntax == "references":
        text = unescaped(raw)
    return _BREAKS.sub(" ", text).strip(" \t")


_BREAK: Final = r"(?<![ \t])[ \t]*[\r\n]+[ \t]*"
_REFERENCE: Final = r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});"
_ESCAPES: Final[Mapping[Syntax, re.Pattern[str]]] = {
    "markdown": re.compile(rf"\\[!-/:-@\[-`{{-~]|{_REFERENCE}|{_BREAK}"),
    "escapes": re.compile(rf"\\[!-/:-@\[-`{{-~]|{_BREAK}"),
    "references": re.compile(rf"{_REFERENCE}|{_BREAK}"),
    "plain": re.compile(_BREAK),
}
_DEFAULTS: Final[Mapping[Syntax, Callable[[str], str]]] = {
    "markdown": lambda text: _SYNTAX.sub(r"\\\g<0>", text),
    "escapes": lambda text: _QUOTE.sub(r"\\\g<0>", text),
    "references": lambda text: _MARKUP.sub(lambda match: reference(match[0]), text),
    "plain": str,
}
