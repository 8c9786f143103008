"""Tokens of HTML and XHTML with their positions, by the tokenizer of the HTML standard.

The standard library's `html.parser` is not used: its rules differ between patch versions of Python,
and 24 kB of unclosed tags (`<a ` repeated) take it 14 seconds. Here time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from dragoman_producer.documents.codecs.html_elements import names

TokenKind = Literal["text", "start", "end", "other", "cdata"]
"""`other`: comments, declarations, processing instructions, and tags that the file cuts off."""


class Token(NamedTuple):
    """A part of a document. Tokens follow each other without gaps."""

    kind: TokenKind
    start: int
    end: int
    name: str = ""
    """Of an element: in lower case; XHTML: without the prefix of its namespace."""
    closed: bool = False
    """Whether a start tag ends in `/>` and has no content because of that."""


class Attribute(NamedTuple):
    """An attribute of a start tag, by positions in the document."""

    name: str
    start: int
    """Where the name begins."""
    value_start: int
    """Where the value begins, with its quotation mark; -1 if there is no value."""
    end: int


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
_FOREIGN: Final = frozenset({"svg", "math"})
_BREAKS_OUT: Final = names(
    "blockquote body center dd div dl dt h1 h2 h3 h4 h5 h6 head hr li menu ol p pre table ul"
)
"""Start tags that end an `svg` or `math` that was never closed, as the standard has it."""


def tokens(text: str, *, xml: bool = False) -> Iterator[Token]:
    """Yield the tokens of a document, in time linear in its length."""
    foreign = position = since = 0
    while (start := text.find("<", position)) >= 0:
        token = _markup(text, start, xml=xml, foreign=foreign > 0)
        if token is None:
            position = start + 1
            continue
        if since < start:
            yield Token("text", since, start)
        yield token
        position = since = token.end
        if token.kind not in {"start", "end"}:
            continue
        foreign = _depth(foreign, token)
        if token.kind == "start" and (end := _raw_end(text, token, foreign=foreign > 0, xml=xml)):
            if since < end:
                yield Token("text", since, end)
            position = since = end
    if since < len(text):
        yield Token("text", since, len(text))


def attributes(text: str, token: Token) -> Iterator[Attribute]:
    """Yield the attributes of a start tag in their order; of a name that is repeated the first."""
    seen: set[str] = set()
    for match in _ATTRIBUTES.finditer(text, name_end(text, token), token.end - 1):
        name = match[1].lower()
        if name not in seen:
            seen.add(name)
            yield Attribute(name, match.start(), match.start(2) if match[2] else -1, match.end())


def name_end(text: str, token: Token) -> int:
    """Return where the name of a start tag ends."""
    position = token.start + 1
    while text[position] not in "\t\n\f\r />":
        position += 1
    return position


def _markup(text: str, start: int, *, xml: bool, foreign: bool) -> Token | None:
    """Return the token that begins with the `<` at `start`; None if that is text."""
    if match := _TAG.match(text, start):
        end = match.end()
        if not match[3]:
            return Token("other", start, end)
        name = match[2].lower()
        if xml:
            name = name.rpartition(":")[2]
        closed = text[end - 2] == "/" and (xml or foreign or name in _FOREIGN)
        return Token("end" if match[1] else "start", start, end, name, closed)
    if (xml or foreign) and (match := _CDATA.match(text, start)):
        return Token("cdata", start, match.end())
    if match := (_OTHER_XML if xml else _OTHER_HTML).match(text, start):
        return Token("other", start, match.end())
    return None


def _depth(foreign: int, token: Token) -> int:
    """Return how many `svg` and `math` elements are open after a tag."""
    if token.name in _FOREIGN and not token.closed:
        return foreign + 1 if token.kind == "start" else max(0, foreign - 1)
    return 0 if token.name in _BREAKS_OUT else foreign


def _raw_end(text: str, token: Token, *, foreign: bool, xml: bool) -> int | None:
    """Return where the content of an element ends in which `<` begins no tag; else None."""
    if token.closed or foreign or (xml and token.name not in {"script", "style"}):
        return None
    if token.name == "script":
        return _script_end(text, token.end)
    if token.name == "plaintext":
        return len(text)
    if (pattern := _RAW_ENDS.get(token.name)) is None:
        return None
    match = pattern.search(text, token.end)
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
