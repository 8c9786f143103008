"""Tokens of HTML and XHTML with their positions, by the tokenizer of the HTML standard.

The standard library's `html.parser` is not used: its rules differ between patch versions of Python,
and 24 kB of unclosed tags (`<a ` repeated) take it 14 seconds. Here time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from dragoman_documents.markup.html.elements import names

TokenKind = Literal["text", "start", "end", "other", "cdata"]
"""`other`: comments, declarations, processing instructions, and tags that the file cuts off."""


class HtmlTag(NamedTuple):
    """What a token is; tags that are spelled alike share one of these."""

    kind: TokenKind
    name: str = ""
    """Of an element: in lower case; XHTML: without the prefix of its namespace."""
    closed: bool = False
    """Whether a start tag ends in `/>` and has no content because of that."""
    attributes: bool = False
    """Whether a start tag may have attributes that are text or concern the content's language."""


Token = tuple[int, int, HtmlTag]
"""Start, end and tag of a part of a document. Tokens follow each other without gaps.

No class of its own: to make one takes a third of the time of the tokenizer."""

_TEXT: Final = HtmlTag("text")
_OTHER: Final = HtmlTag("other")
_IN_CDATA: Final = HtmlTag("cdata")


class Attribute(NamedTuple):
    """An attribute of a start tag, by positions in the document."""

    name: str
    start: int
    """Where the name begins."""
    value_start: int
    """Where the value begins, with its quotation mark; -1 if there is no value."""
    end: int


_OF_CONTENT: Final = ("alt", "title", "placeholder", "label", "translate", "content", "lang=")
"""Parts of the names and values of attributes that concern the content of an element."""
_NAME: Final = r"[^\t\n\f\r />][^\t\n\f\r />=]*+"
_VALUE: Final = r"""(?>"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\t\n\f\r >"'][^\t\n\f\r >]*+|(?=>)|\Z)"""
_EQUALS: Final = r"[\t\n\f\r ]*+=[\t\n\f\r ]*+"
_TAG: Final = re.compile(
    r"<(/?)([a-zA-Z][^\t\n\f\r />]*+)"
    rf"(?:[\t\n\f\r /]++|{_NAME}(?:{_EQUALS}{_VALUE})?+)*+(>|\Z)"
)
_ATTRIBUTES: Final = re.compile(rf"({_NAME})(?:{_EQUALS}({_VALUE}))?+")
_OTHER_HTML: Final = re.compile(
    r"<!--(?:-?>|(?s:.*?)(?:--!?>|\Z))|<(?:[!?]|/(?![a-zA-Z]))[^>]*+(?:>|\Z)"
)
_OTHER_XML: Final = re.compile(
    r"<!--(?s:.*?)(?:-->|\Z)|<\?(?s:.*?)(?:\?>|\Z)"
    r"|<![^>\[]*+(?:\[[^\]]*+(?:\]|\Z)[^>]*+)?(?:>|\Z)|</(?![a-zA-Z])[^>]*+(?:>|\Z)"
)
_CDATA: Final = re.compile(r"<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)")
_SCRIPT: Final = re.compile(r"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE)
RAW: Final = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea"})
"""Elements whose content is one token of text without markup in it; none of it is translated."""
_RAW_ENDS: Final = {
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE) for name in (*RAW, "title")
}
_MAYBE_RAW: Final = RAW | {"title", "plaintext"}
_FOREIGN: Final = frozenset({"svg", "math"})
_BREAKS_OUT: Final = names(
    "blockquote body center dd div dl dt h1 h2 h3 h4 h5 h6 head hr li menu ol p pre table ul"
)
"""Start tags that end an `svg` or `math` that was never closed, as the standard has it."""


def tokens(text: str, *, xml: bool = False) -> Iterator[Token]:
    """Yield the tokens of a document, in time linear in its length."""
    known: tuple[dict[str, HtmlTag], dict[str, HtmlTag]] = ({}, {})
    foreign = position = since = 0
    while (start := text.find("<", position)) >= 0:
        match = _TAG.match(text, start) or _other(text, start, xml=xml, foreign=foreign > 0)
        if match is None:
            position = start + 1
            continue
        seen = known[foreign > 0]
        tag = seen.get(match[0]) or seen.setdefault(
            match[0], _tag(match, xml=xml, foreign=foreign > 0)
        )
        if since < start:
            yield since, start, _TEXT
        since = match.end()
        yield start, since, tag
        if foreign or tag.name in _FOREIGN:
            foreign = _depth(foreign, tag)
        position = since
        if tag.name in _MAYBE_RAW:
            position = _raw_end(text, since, tag, foreign, xml=xml)
        if position > since:
            yield since, position, _TEXT
            since = position
    if since < len(text):
        yield since, len(text), _TEXT


def first_tag(text: str) -> tuple[int, HtmlTag] | None:
    """Return the end and the meaning of the tag with which a text of HTML begins, if it does."""
    match = _TAG.match(text)
    return None if match is None else (match.end(), _tag(match, xml=False, foreign=False))


def attributes(text: str, start: int, end: int) -> Iterator[Attribute]:
    """Yield the attributes of a start tag in their order; of a name that is repeated the first."""
    seen: set[str] = set()
    for match in _ATTRIBUTES.finditer(text, name_end(text, start), end - 1):
        name = match[1].lower()
        if name not in seen:
            seen.add(name)
            yield Attribute(name, match.start(), match.start(2) if match[2] else -1, match.end())


def name_end(text: str, start: int) -> int:
    """Return where the name of the start tag ends that begins at `start`."""
    position = start + 1
    while text[position] not in "\t\n\f\r />":
        position += 1
    return position


def _other(text: str, start: int, *, xml: bool, foreign: bool) -> re.Match[str] | None:
    """Return the comment, declaration or instruction that begins at `start`, if one does."""
    if (xml or foreign) and (match := _CDATA.match(text, start)):
        return match
    return (_OTHER_XML if xml else _OTHER_HTML).match(text, start)


def _tag(match: re.Match[str], *, xml: bool, foreign: bool) -> HtmlTag:
    """Return what the spelling of markup says."""
    if match.re is not _TAG or not match[3]:
        return _IN_CDATA if match.re is _CDATA else _OTHER
    name = match[2].lower()
    if xml:
        name = name.rpartition(":")[2]
    closed = match[0].endswith("/>") and (xml or foreign or name in _FOREIGN)
    if match[1]:
        return HtmlTag("end", name, closed)
    spelling = match[0].lower()
    found = len(spelling) > len(match[2]) + 2 and any(map(spelling.__contains__, _OF_CONTENT))
    found = found or (name == "input" and "value" in spelling)
    return HtmlTag("start", name, closed, found)


def _depth(foreign: int, tag: HtmlTag) -> int:
    """Return how many `svg` and `math` elements are open after a tag."""
    if tag.name in _FOREIGN and not tag.closed:
        return foreign + 1 if tag.kind == "start" else max(0, foreign - 1)
    return 0 if tag.name in _BREAKS_OUT else foreign


def _raw_end(text: str, start: int, tag: HtmlTag, foreign: int, *, xml: bool) -> int:
    """Return where the content of an element ends in which `<` begins no tag; else `start`."""
    if tag.kind == "end" or tag.closed or foreign or (xml and tag.name not in {"script", "style"}):
        return start
    if tag.name == "script":
        return _script_end(text, start)
    if tag.name == "plaintext":
        return len(text)
    match = _RAW_ENDS[tag.name].search(text, start)
    return match.start() if match else len(text)


def _script_end(text: str, start: int) -> int:
    """Return where a script ends: not at a `</script>` within `<!-- <script>`."""
    escaped = nested = False
    position = start
    while match := _SCRIPT.search(text, position):
        position = match.end()
        if match[0] == "<!--":
            position -= 0 if escaped else 2  # `<!-->` ends what it begins
            escaped = True
        elif match[0] == "-->":
            escaped = nested = False
        elif match[1] and not nested:
            return match.start()
        else:
            nested = escaped and not match[1]
    return len(text)


def tags_whole(text: str, templates: Sequence[tuple[int, int]], *, xml: bool) -> str:
    """Return a text of the same length, in which no template within a tag holds the tag's end.

    `<p {% if a > b %}class="x"{% endif %}>` is one tag to whoever reads the page.
    """
    odd = [each for each in templates if text.find(">", *each) >= 0]
    if not odd:
        return text
    waiting = tokens(_masked(text, odd), xml=xml)
    behind, kind = 0, "text"
    found: list[tuple[int, int]] = []
    for start, end in odd:
        while behind <= start:
            _, behind, (kind, *_) = next(waiting)
        if kind not in {"text", "cdata"}:
            found.append((start, end))
    return _masked(text, found)


def _masked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    place = 0
    for start, end in ranges:
        parts += (text[place:start], text[start:end].replace(">", "-"))
        place = end
    return "".join([*parts, text[place:]])
