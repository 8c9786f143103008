"""Expressions and tags of MDX: where they begin and end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

_NEXT: Final = re.compile(rb"\\.|`+|<(?=[A-Za-z_$/>])|\{", re.DOTALL)
_IN_EXPRESSION: Final = re.compile(
    rb"""[{}`]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|/\*|(?<!:)//[^\n]*|<(?=[A-Za-z_$>])""",
    re.DOTALL,
)
_IN_MODULE: Final = re.compile(
    _IN_EXPRESSION.pattern + rb"|[()\[\]]|\n[ \t]*\r?(?=\n|\Z)", re.DOTALL
)
_OPERAND: Final = re.compile(rb"(?:[(\[{,;:?=&|!>]|\breturn|\bdefault)[ \t\r\n]*\Z")
"""What stands before an element in an expression; `<` is an operator behind others."""
_LONGEST_BLANK: Final = 100
_IN_ELEMENT: Final = re.compile(rb"\{|<(?=[A-Za-z_$/>])")
_IN_TEMPLATE: Final = re.compile(rb"\\.|`|\$\{", re.DOTALL)
_NAME: Final = re.compile(rb"<(?P<close>/)?[ \t\r\n]*(?P<name>[A-Za-z_$][\w$.:\-]*)?")
_ATTRIBUTE: Final = re.compile(
    rb"""[ \t\r\n]*(?:(?P<end>/?>)|(?P<braces>\{)"""
    rb"""|[A-Za-z_$][\w$:.\-]*(?:[ \t\r\n]*=[ \t\r\n]*(?:"[^"]*"|'[^']*'|(?P<value>\{)))?)"""
)
_PARAGRAPH_END: Final = re.compile(rb"\n[ \t>]*\r?\n")
_MOST_FAILURES: Final = 16
"""Expressions and tags that do not end: such a document is no MDX, and looking for the end of each
would take quadratic time."""
_DEEPEST: Final = 50


class JsxSpan(NamedTuple):
    """An expression (without a name and `closes`) or a tag at `[start:end)`."""

    start: int
    end: int
    name: bytes = b""
    opens: bool = False
    closes: bool = False


class _Endless(Exception):
    """An expression, string or tag without an end."""


def spans(text: bytes, skipped: Sequence[tuple[int, int]]) -> Iterator[JsxSpan]:
    """Yield the expressions and tags outside of code; `skipped` are the ranges of fenced code."""
    place, failures, code = 0, 0, _CodeSpans(text)
    rest = iter([*skipped, (len(text), len(text))])
    skip = next(rest)
    while (match := _NEXT.search(text, place)) is not None:
        while match.start() >= skip[1] and skip[0] < len(text):
            skip = next(rest)
        if skip[0] <= match.start() < skip[1]:
            place = skip[1]
            continue
        place = match.end()
        first = match[0][:1]
        if first == b"`":
            place = code.end(match)
        elif first != b"\\" and failures < _MOST_FAILURES:
            try:
                span = (
                    _tag(text, match.start(), 0) if first == b"<" else _braces(text, match.start())
                )
            except _Endless:
                failures += 1
                continue
            if span is not None:
                yield span
                place = span.end


class Ends:
    """Finds the ends of modules, tags and expressions as long as not too many have none."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._failures = 0

    def module(self, start: int) -> int | None:
        """Return where the module at a place ends: before a blank line outside of all brackets."""
        return self._end(_module_end, start)

    def span(self, start: int) -> int | None:
        """Return the place behind the tag or expression at a place."""
        return self._end(_span_end, start)

    def _end(self, find: Callable[[bytes, int], int], start: int) -> int | None:
        if self._failures >= _MOST_FAILURES:
            return None
        try:
            return find(self._text, start)
        except _Endless:
            self._failures += 1
            return None


def _module_end(text: bytes, start: int) -> int:
    """Return where the module at a place ends. Raises _Endless."""
    opened, place = 0, start
    while (match := _IN_MODULE.search(text, place)) is not None:
        first = match[0][:1]
        if first == b"\n" and not opened:
            return match.start()
        place = _behind(text, match, 0)
        opened += (first in b"{[(") - (first in b"}])")
    if opened > 0:
        raise _Endless
    return len(text)


def _span_end(text: bytes, start: int) -> int:
    """Return the place behind a tag or expression. Raises _Endless, also where there is none."""
    span = _tag(text, start, 0) if text.startswith(b"<", start) else _braces(text, start)
    if span is None:
        raise _Endless
    return span.end


def _braces(text: bytes, start: int) -> JsxSpan:
    return JsxSpan(start, _expression_end(text, start, 0))


def _tag(text: bytes, start: int, depth: int) -> JsxSpan | None:
    """Return the tag at a place; None if it is none. Raises _Endless."""
    match = _NAME.match(text, start)
    if match is None:
        return None
    place, closes = match.end(), match["close"] is not None
    while (found := _ATTRIBUTE.match(text, place)) is not None:
        place = found.end()
        if found["end"] is not None:
            opens = not closes and found["end"] == b">"
            return JsxSpan(start, place, match["name"] or b"<>", opens, closes)
        if found["braces"] is not None or found["value"] is not None:
            place = _expression_end(text, place - 1, depth)
    return None


def _expression_end(text: bytes, start: int, depth: int) -> int:
    """Return the place behind the brace that closes the one at `start`. Raises _Endless."""
    if depth > _DEEPEST:
        raise _Endless
    opened, place = 0, start
    while (match := _IN_EXPRESSION.search(text, place)) is not None:
        place = _behind(text, match, depth)
        if match[0] == b"{":
            opened += 1
        elif match[0] == b"}":
            opened -= 1
            if not opened:
                return place
    raise _Endless


def _behind(text: bytes, match: re.Match[bytes], depth: int) -> int:
    """Return the place behind a token, with the whole of what it begins. Raises _Endless."""
    token = match[0]
    if token == b"`":
        return _template_end(text, match.end(), depth)
    if token == b"/*":
        end = text.find(b"*/", match.end())
        if end < 0:
            raise _Endless
        return end + 2
    start = match.start()
    if token == b"<" and _OPERAND.search(text, max(0, start - _LONGEST_BLANK), start):
        return _element_end(text, start, depth + 1)
    return match.end()


def _element_end(text: bytes, start: int, depth: int) -> int:
    """Return the place behind an element, in whose text quotes are text. Raises _Endless."""
    opened, place = 0, start
    while True:
        if text.startswith(b"{", place):
            place = _expression_end(text, place, depth)
        else:
            span = _tag(text, place, depth)
            if span is None:
                raise _Endless
            opened += span.opens - span.closes
            place = span.end
        following = _IN_ELEMENT.search(text, place) if opened > 0 else None
        if following is None:
            break
        place = following.start()
    if opened > 0:
        raise _Endless
    return place


def _template_end(text: bytes, start: int, depth: int) -> int:
    """Return the place behind the end of a template string. Raises _Endless."""
    place = start
    while (match := _IN_TEMPLATE.search(text, place)) is not None:
        place = match.end()
        if match[0] == b"`":
            return place
        if match[0] == b"${":
            place = _expression_end(text, place - 1, depth + 1)
    raise _Endless


def parts(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a tag: its expressions, and what is between them."""
    name = _NAME.match(text, start, end)
    place = name.end() if name else end
    while (found := _ATTRIBUTE.match(text, place, end)) is not None and found["end"] is None:
        place = found.end()
        if found["braces"] is not None or found["value"] is not None:
            yield start, place - 1
            try:
                start, place = place - 1, _expression_end(text, place - 1, 0)
            except _Endless:
                break
            yield start, place
            start = place
    yield start, end


class _CodeSpans:
    """Finds the ends of inline code, which are looked for once per length and paragraph."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._border = -1
        self._endless: set[int] = set()

    def end(self, ticks: re.Match[bytes]) -> int:
        """Return the place behind inline code, or behind backticks that begin none."""
        place, length = ticks.end(), len(ticks[0])
        if place > self._border:
            border = _PARAGRAPH_END.search(self._text, place)
            self._border = border.start() if border else len(self._text)
            self._endless.clear()
        if length in self._endless:
            return place
        pattern = b"(?<!`)" + b"`" * length + b"(?!`)"
        closing = re.compile(pattern).search(self._text, place, self._border)
        if closing is None:
            self._endless.add(length)
            return place
        return closing.end()
