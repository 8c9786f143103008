"""The spelling of texts in Android's string resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from dragoman_documents.xml.inline import InlineRules
from dragoman_documents.xml.manner import Manner, Pieces, attached, xml_manner
from dragoman_documents.xml.tree import escaped, text_of

_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)|(\")|([ \t\r\n]+)", re.DOTALL)
_QUOTED: Final = r'"(?:[^"\\]|\\.)*+'
_ESCAPES: Final = re.compile(r"\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_PIECE: Final = re.compile(
    rf'{_ESCAPES.pattern}|{_QUOTED}(?:"|\\?\Z)|[ \t\r\n]{{2,}}|[\t\r\n]', re.DOTALL
)
"""An escape, quotes with what is in them, or blanks."""
_ALL_QUOTED: Final = re.compile(rf'{_QUOTED}"', re.DOTALL)
_BLANKS: Final = re.compile(" {2,}")
_LINE_END: Final = re.compile(r"\r\n?")
"""XML reads it as a newline."""
_NAMED: Final = {"n": "\n", "t": "\t"}
_SPELLED: Final = str.maketrans({
    "\\": "\\\\", "'": "\\'", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": " ",
})  # fmt: skip
_SPELLED_IN_QUOTES: Final = {code: each for code, each in _SPELLED.items() if chr(code) != "'"}
_ENDS: Final = str.maketrans({" ": "\\u0020", "\n": "\\n", "\t": "\\t", "\r": ""})
_PAIRS: Final = frozenset({
    "a", "annotation", "b", "big", "cite", "dfn", "em", "font", "i", "li", "marquee", "p", "s",
    "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "ul",
})  # fmt: skip


def read(raw: bytes) -> str:
    """Return a text without escapes; blanks outside of quotes count once."""
    return _decoded(text_of(raw))


def _decoded(text: str) -> str:
    quoted = False

    def plain(match: re.Match[str]) -> str:
        nonlocal quoted
        if match[1] is not None:
            return _character(match[1], match[0])
        if match[2] is not None:
            return _NAMED.get(match[2], match[2])
        if match[3] is not None:
            quoted = not quoted
            return ""
        return _LINE_END.sub("\n", match[4]) if quoted else " "

    return _ESCAPE.sub(plain, text)


def _character(digits: str, spelled: str) -> str:
    """Return the character of an escape; halves of a pair stay spelled."""
    code = int(digits, 16)
    return spelled if 0xD800 <= code < 0xE000 or code == 0 else chr(code)


def write(text: str) -> str:
    """Return a text with escapes."""
    return _begin(escaped(_spelled(text)))


def _begin(spelled: str) -> str:
    r"""Return a text that does not begin like a reference to a resource: `\@`, `\?`."""
    return f"\\{spelled}" if spelled[:1] in {"@", "?"} else spelled


def _spelled(text: str) -> str:
    return _BLANKS.sub(_spelled_blanks, text.translate(_SPELLED))


def _spelled_in_quotes(text: str) -> str:
    return text.translate(_SPELLED_IN_QUOTES)


def _spelled_blanks(match: re.Match[str]) -> str:
    """Return several blanks so that they count as several."""
    return " " + "\\u0020" * (len(match[0]) - 1)


def _write_ends(blanks: str) -> str:
    """Return blanks at an end of a text so that they count."""
    return blanks.translate(_ENDS)


def _manner(raw: str) -> Manner:
    """Return how a text is spelled: in quotes that are around all of it, or with escapes."""
    outer = xml_manner(raw)
    spelled = "".join(text for text, _ in outer.pieces)
    quoted = _ALL_QUOTED.fullmatch(spelled) is not None
    try:
        found = list(_pieces(outer.pieces, spelled, quoted=quoted))
    except ValueError:  # an escape that begins within CDATA and ends behind it
        return outer._replace(pieces=[(_decoded(spelled), raw)])
    if not quoted:
        found = attached(found)
        return outer._replace(pieces=found, write=partial(_written, _spelled, outer.write))
    write = partial(_written, _spelled_in_quotes, outer.write)
    opening, closing = outer.opening + found[0][1], found[-1][1] + outer.closing
    return Manner(found[1:-1], write, opening, closing)


def _written(escape: Callable[[str], str], write: Callable[[str], str], text: str) -> str:
    return write(escape(text))


def _pieces(outer: Pieces, spelled: str, *, quoted: bool) -> Iterator[tuple[str, str]]:
    """Yield the text as it is and as it is spelled, in XML around the spelling of Android.

    The quotes around all of it are pieces of their own. Raises ValueError.
    """
    taking = _Taking(outer)
    pattern, last = (_ESCAPES, len(spelled) - 1) if quoted else (_PIECE, len(spelled))
    yield from taking.up_to(int(quoted))
    for match in pattern.finditer(spelled, int(quoted), last):
        yield from taking.up_to(match.start())
        yield _decoded(match[0]), "".join(raw for _, raw in taking.up_to(match.end()))
    yield from taking.up_to(last)
    yield from taking.up_to(len(spelled))


class _Taking:
    """Takes pieces from the beginning."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._index = self._start = self._place = 0

    def up_to(self, end: int) -> Iterator[tuple[str, str]]:
        """Yield what is up to a character. Raises ValueError within a piece that has no parts."""
        while self._place < end:
            text, raw = self._pieces[self._index]
            first, last = self._place - self._start, min(end - self._start, len(text))
            if text == raw:
                yield text[first:last], text[first:last]
            elif first or last < len(text):
                raise ValueError("a reference is cut")
            else:
                yield text, raw
            self._place = self._start + last
            if last == len(text):
                self._index, self._start = self._index + 1, self._place


RULES: Final = InlineRules(
    _PAIRS, read=read, write=write, write_ends=_write_ends, manner=_manner, begin=_begin
)
"""Elements for style are pairs of codes; `xliff:g` is a placeholder, and a code of its own."""
