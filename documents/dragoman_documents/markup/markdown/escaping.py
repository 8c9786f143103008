"""Which characters of a translation Markdown could read as syntax, and how they are escaped."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from dragoman_documents.markup.markdown.inlines import normalized
from dragoman_documents.markup.markdown.parts import TextPart
from dragoman_documents.references import reference

_SYNTAX: Final = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|\Z)|(?<!\s)\*|\*(?!\s)|\[(?=[\[^@!]|[ xX]\][ \t]|-@)|\](?=[(\[{:]|\Z)"
    r"|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?]|\Z)|&(?=#?[0-9A-Za-z]{1,40};)"
    r"|:(?=//)|(?<![0-9A-Za-z:/]):(?=[A-Za-z+\-][\w+\-]*:)|\$(?=\{)|%(?=%)|\^(?=\[|[^\s^]+\^|[A-Za-z0-9\-]+\Z)"
    r"|\{(?=[{%*!]|[ ]?[#.:]|[^{}=]*=|[A-Za-z][\w:+\-]*\}\Z)"
)
_SYNTAX_MDX: Final = re.compile(_SYNTAX.pattern + r"|[<{}]")
_PAIRED: Final = "`~$"
"""Characters that are syntax only if there are several."""
_FORMULA: Final = re.compile(r"\[(?=.{0,400}?(?:\^|[A-Za-z]_[A-Za-z0-9{]|\\[A-Za-z]))")
"""A bracket that would begin a formula with a backslash in front of it."""
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\]")
_LINE_START: Final = re.compile(
    r"(?P<mark>#{1,6}(?=[ \t]|\Z)|[>=:{|]|!!!|\?\?\?|%(?=[% \t])|[-+*](?=[ \t\-+=8*\[]|\Z)|;(?=-)"
    r"|///(?=[ ]|\Z)|<<<|\((?=[\w.:+\-]+\)=))"
    r"|(?P<number>[0-9]{1,9})(?P<dot>[.)])(?=[ \t]|\Z)"
)
_START: Final = re.compile(r"#|~[ \t]|%%|\[[^\[\]\r\n]+\]:")
"""The beginning of a paragraph that some generators read as a heading, definition or comment."""
_MODULE: Final = re.compile(r"(?:import|export)(?=[ \t{*])")
_BLANKS: Final = " \t"
_DELIMITING: Final = {each: re.compile(rf"\{each}+") for each in "^~"} | {"=": re.compile("={2,}")}


class Context(NamedTuple):
    """Where a translation is written."""

    before: str = "\n"
    """The character before it, and after it."""
    after: str = "\n"
    begins_line: bool = False
    heading: bool = False
    mdx: bool = False
    cell: bool = False
    label: bool = False
    """Whether it is the label of a wiki link, which has no brackets."""
    bracketed: bool = False
    """Whether brackets around or in front of it could end at one of its own."""
    known: str = string.punctuation
    """What a backslash escapes; other characters become references."""


def escapes(
    parts: Sequence[TextPart], around: Context, labels: Collection[str]
) -> list[dict[int, str]]:
    """Return per part the spelling of each character of a text that could be read as syntax."""
    raws = "".join(part.raw for part in parts)
    paired = "".join(each for each in _PAIRED if raws.count(each) > 1)
    if around.bracketed or any(part.raw.endswith("[") for part in parts):
        paired += "[]"
    return [
        _escapes(parts, index, around, paired, labels) if part.kind == "text" else {}
        for index, part in enumerate(parts)
    ]


def own_escapes(
    parts: Sequence[TextPart], syntax: str, around: Context
) -> Iterator[tuple[int, int, str]]:
    """Yield what the dialect takes for syntax and our parser for text: part, place and spelling."""
    raws = [part.raw for part in parts]
    starts = list(accumulate(map(len, raws), initial=0))
    for at in _own_syntax("".join(raws), syntax, around):
        index = bisect_right(starts, at) - 1
        if parts[index].kind == "text":
            place = at - starts[index]
            yield index, place, _escape(raws[index][place], around)


def first_escape(text: str, raw: str, around: Context) -> str | None:
    """Return how its first character is spelled if generators differ in what a text begins.

    None: they do not, or its source `raw` begins so, too.
    """
    begins = around.begins_line and _START.match(text) and not raw.startswith(text[0])
    return _escape(text[0], around) if begins else None


def _escapes(
    parts: Sequence[TextPart], index: int, around: Context, paired: str, labels: Collection[str]
) -> dict[int, str]:
    """Return the spelling of each character of a text that could be read as syntax."""
    text = parts[index].raw
    before = parts[index - 1] if index else None
    after = parts[index + 1] if index + 1 < len(parts) else None
    found = {place: _escape(text[place], around) for place in _syntax(text, around, paired, labels)}
    if "]" in text:
        begun = (match.start() for match in _FORMULA.finditer(text))
        found |= {place: reference("[") for place in begun if place in found}
    if after is not None and text.endswith("!") and after.raw.startswith("["):
        found[len(text) - 1] = "\\!"
    if before is not None and before.raw.endswith("]") and text[0] in ":(":
        found[0] = _escape(text[0], around)
    if (before is None and around.begins_line) or (before is not None and before.ends_line):
        found |= _line_escapes(text, around)
    if around.heading:
        # Attributes at the end of a heading: no backslash prevents them.
        found |= {place: reference("{") for place, each in enumerate(text) if each == "{"}
        if after is None and text.endswith("#"):
            found[len(text) - 1] = "\\#"
    if after is not None and after.breaks:
        end = len(text.rstrip(_BLANKS))
        found |= {place: reference(text[place]) for place in range(end, len(text))}
    return found


def _syntax(text: str, around: Context, paired: str, labels: Collection[str]) -> Iterator[int]:
    """Yield the places of characters that could be syntax wherever they stand."""
    for match in (_SYNTAX_MDX if around.mdx else _SYNTAX).finditer(text):
        yield match.start()
    for each in paired + "|" * around.cell:
        yield from _places(each, text)
    for match in _BRACKETED.finditer(text) if labels else ():
        if normalized(match[1]) in labels:
            yield from (match.start(), match.end() - 1)


def _own_syntax(text: str, syntax: str, around: Context) -> Iterator[int]:
    """Yield the places of characters that delimit something in their dialect.

    A bar makes a table of a paragraph, a second dollar a formula; a backslash at the end makes a
    heading a paragraph, or a line break.
    """
    if "|" in syntax and not (around.heading or around.cell):
        yield from _places("|", text)
    if "$" in syntax and text.count("$") > 1:
        yield from _places("$", text)
    if "\\" in syntax:
        yield from range(len(text.rstrip("\\")), len(text))
    for each, runs in _DELIMITING.items():
        if each in syntax and each in text:
            yield from _delimiters(list(runs.finditer(text)), text)


def _delimiters(runs: Sequence[re.Match[str]], text: str) -> Iterator[int]:
    """Yield the places of runs between the first that could open and the last that could close."""
    opening = [run for run in runs if text[run.end() : run.end() + 1].strip()]
    closing = [run for run in runs if text[max(0, run.start() - 1) : run.start()].strip()]
    if opening and closing and opening[0].start() < closing[-1].start():
        for run in runs:
            if opening[0].start() <= run.start() <= closing[-1].start():
                yield from range(*run.span())


def _places(character: str, text: str) -> Iterator[int]:
    place = text.find(character)
    while place >= 0:
        yield place
        place = text.find(character, place + 1)


def _line_escapes(text: str, around: Context) -> dict[int, str]:
    """Return what begins a block, and blanks that Markdown drops at the start of a line."""
    blanks = len(text) - len(text.lstrip(_BLANKS))
    if blanks:
        return {place: reference(text[place]) for place in range(blanks)}
    if around.mdx and _MODULE.match(text):
        return {0: reference(text[0])}
    found = _LINE_START.match(text)
    if found is None:
        return {}
    place = found.start() if found["mark"] else found.start("dot")
    return {place: _escape(text[place], around)}


def _escape(character: str, around: Context) -> str:
    """Return the spelling of a character that is text; templates know no backslash."""
    is_known = character in around.known and (around.mdx or character != "{")
    return "\\" + character if is_known else reference(character)


def escaped_lookalike(text: str) -> str:
    """Return the Markdown of a text that looks like one of our own tags."""
    return text if text[1].isspace() else "\\" + text
