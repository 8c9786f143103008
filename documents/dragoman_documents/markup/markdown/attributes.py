"""Texts of attributes in other syntax: titles of shortcodes, components and directives.

The site says which attributes are translated. Text in others stays, and is remarked on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman_documents.markup.markdown import jsx
from dragoman_documents.markup.markdown.titles import Syntax, Title, decoded, trimmed
from dragoman_documents.values import is_text

_OTHER: Final = re.compile(r"\{[{%]|\$\{")
"""Values that are made by a program."""
_QUOTED: Final = re.compile(
    rb"""(?:(?<![\w.:@-])(?P<name>[\w.:@-]+)[ \t]*=[ \t\r\n]*)?"""
    rb"""(?<!\w)(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'"""
    rb"""|`(?:[^`\\]|\\.)*`)""",
    re.DOTALL,
)
"""A string with its name, if it has one; what looks like another in it is a part of it."""
_NO_TEXT: Final = re.compile(
    rb"(?:class\w*|style|id|d|rel|sandbox|allow|sizes|srcset|media|points|transform|viewBox|values"
    rb"|fill|stroke[\w-]*|font[\w-]*|icons?|options|command|cmd|query|code|if|on[a-zA-Z]+"
    rb"|(?:v-|x-|hx-|ng-|[:@])[\w.:@-]*)\Z"
)
"""Names of attributes whose values may look like words and are none."""
_WORDS: Final = r"(?:[^\W\d_]{2,}[,;:.!?]?[ \t\r\n]+)"
_NAMED_PROSE: Final = re.compile(
    rf"{_WORDS}[^\W\d_]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{{2}}"
)
_PROSE: Final = re.compile(rf"{_WORDS}{{2}}[^\W\d_]|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{{4}}")
_NO_PROSE: Final = re.compile(r"[{}<>=;|]|://|&&")


def attributes(
    source: bytes, start: int, end: int, names: frozenset[str], syntax: Syntax
) -> Iterator[Title]:
    """Yield the texts of these attributes between two places."""
    if not names or source.find(b"=", start, end) < 0:
        return
    for match in _strings(source, start, end):
        name, value = (match["name"] or b"").decode("utf-8", "replace"), match.lastgroup
        if name not in names or value not in ("double", "single"):
            continue
        first, last = match.span(value)
        raw = source[first:last].decode()
        text = decoded(raw, syntax)
        if is_text(text) and not _OTHER.search(raw):
            yield Title(*trimmed(source, first, last), text, syntax)


def _strings(source: bytes, start: int, end: int) -> Iterator[re.Match[bytes]]:
    """Yield the strings between two places in their order; of a tag those of each expression."""
    is_tag = source.startswith(b"<", start) and source.find(b"{", start, end) >= 0
    for first, last in jsx.parts(source, start, end) if is_tag else [(start, end)]:
        yield from _QUOTED.finditer(source, first, last)


def has_other_text(source: bytes, start: int, end: int, names: frozenset[str]) -> bool:
    """Return whether another attribute, or a string of a program, holds several words.

    It is a guess for a remark: classes, styles and what looks like code are no text.
    """
    for match in _strings(source, start, end):
        name = match["name"] or b""
        if name and (name.decode("utf-8", "replace") in names or _NO_TEXT.match(name)):
            continue
        text = (match["double"] or match["single"] or b"").decode("utf-8", "replace")
        if has_prose(text, least=2 if name else 3):
            return True
    return False


def has_prose(text: str, *, least: int) -> bool:
    """Return whether a value looks like text for readers: with this number of words, 2 or 3."""
    prose = _NAMED_PROSE if least < 3 else _PROSE
    return prose.search(text) is not None and _NO_PROSE.search(text) is None
