"""XML as a tree of elements with the bytes that each one occupies.

Nothing is ever serialised: codecs replace ranges of bytes, and all others stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html import unescape
from typing import Final
from xml.parsers import expat

from dragoman_documents.codec import DocumentError
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.references import reference

DEEPEST: Final = 200
"""Levels of nested elements; office files were seen with up to 60."""

_START_TAG: Final = re.compile(rb"""<[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_QUOTED_END: Final = re.compile(rb"""=\s*(?:"[^"<]*>|'[^'<]*>)""")
"""What may be a `>` in the value of an attribute; a part without it needs no `_START_TAG`."""
_ATTRIBUTE: Final = re.compile(rb"""\s([^\s=]+)\s*=\s*("[^"]*"|'[^']*')""")
_DECLARED: Final = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})""")
_PARTS: Final = re.compile(r"<!\[CDATA\[(.*?)\]\]>|<!--.*?-->|<\?.*?\?>|([^<]+)", re.DOTALL)
_REFERENCE: Final = re.compile(r"&(?:amp|lt|gt|quot|apos|#([0-9]{1,8})|#x([0-9a-fA-F]{1,7}));")
_VALUE_BLANK: Final = re.compile(r"\r\n|[\r\n\t]")
_ILLEGAL: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TEXT_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE_ESCAPES: Final = str.maketrans({
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;",
    "\n": "&#10;", "\r": "&#13;", "\t": "&#9;",
})  # fmt: skip


class XmlElement:
    """An element. Positions are bytes of the text in UTF-8."""

    __slots__ = ("attributes", "children", "content", "end", "name", "start", "stop")

    def __init__(self, name: str, attributes: Mapping[str, str], start: int, content: int) -> None:
        self.name: Final = name
        self.attributes: Final = attributes
        self.start: Final = start
        self.content: Final = content
        """End of the start tag, where the content begins."""
        self.stop = content
        """End of the content, where the end tag begins."""
        self.end = content
        self.children: list[XmlElement] = []

    def child(self, name: str) -> XmlElement | None:
        """Return the first child of a name."""
        for each in self.children:
            if each.name == name:
                return each
        return None

    def descendants(self, *names: str) -> Iterator[XmlElement]:
        """Yield this element and those below it, in the order of the document, of some names."""
        waiting: list[XmlElement] = [self]
        while waiting:
            each = waiting.pop()
            if not names or each.name in names:
                yield each
            waiting.extend(reversed(each.children))


def framed(outer: XmlElement, inner: XmlElement) -> XmlElement:
    """Return an element with the content of one inside of it: all around this is its tags."""
    found = XmlElement(outer.name, outer.attributes, outer.start, inner.content)
    found.stop, found.end, found.children = inner.stop, outer.end, inner.children
    return found


@dataclass(frozen=True, slots=True)
class XmlSource:
    """An XML file as UTF-8, and how to write it in the encoding it was read in."""

    data: bytes
    _as_read: Decoded | None = None
    """None if the file is UTF-8 already."""

    @property
    def encoding(self) -> str:
        """Name of the encoding for Python's codecs."""
        return "utf-8" if self._as_read is None else self._as_read.encoding

    def encoded(self, data: bytes) -> bytes:
        """Return new content in the encoding of the file; what it lacks becomes a reference."""
        if self._as_read is None:
            return data
        return self._as_read.encoded(data.decode(), reference)


def source(data: bytes) -> XmlSource:
    """Return an XML file as UTF-8. Raises DocumentError (`encoding`)."""
    declared = _DECLARED.match(data)
    name = declared[1].decode().lower() if declared else "utf-8"
    if name in {"utf-8", "utf8", "us-ascii"} and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return XmlSource(data)
    read = decoded(data, name)
    return XmlSource(read.text.encode(), read)


def parsed(
    data: bytes, prefixes: Mapping[str, str], *, what: str = "the file", entities: bool = False
) -> XmlElement:
    """Return the root element of UTF-8 data.

    Names are `prefix:local` with the prefixes given per namespace, `local` where the prefix or the
    namespace is empty, and `namespace local` for others; names of attributes likewise. `what` names
    the file in errors. Entity declarations are refused unless `entities`; references to entities
    are never expanded in text then. Raises DocumentError (`corrupt`, `bomb`).
    """
    building = _Building(data, prefixes, what)
    parser = _parser(what, entities=entities)
    parser.StartElementHandler = partial(building.start, parser)
    parser.EndElementHandler = partial(building.end, parser)
    _run(parser, data, what)
    if building.root is None:
        raise DocumentError("corrupt", f"{what} has no element")
    return building.root


Starting = Callable[[str, Mapping[str, str], int], None]
Ending = Callable[[str, int], None]


def scanned(
    data: bytes, prefixes: Mapping[str, str], start: Starting, end: Ending, *, what: str
) -> None:
    """Call `start` and `end` per element, with its name and the place of its tag.

    For parts too large for a tree. Names of attributes in a namespace are not shortened. The place
    of the end of an empty element is where its tag ends. Raises DocumentError.
    """
    names = _Names(prefixes)
    parser = _parser(what, entities=False)

    def starting(name: str, attributes: dict[str, str]) -> None:
        start(names[name], attributes, parser.CurrentByteIndex)

    def ending(name: str) -> None:
        end(names[name], parser.CurrentByteIndex)

    parser.StartElementHandler = starting
    parser.EndElementHandler = ending
    _run(parser, data, what)


def start_tag_end(data: bytes, start: int) -> int:
    """Return where the start tag ends that begins at a place of well-formed data."""
    tag = _START_TAG.match(data, start)
    return tag.end() if tag else data.find(b">", start) + 1


class _Names(dict[str, str]):
    """Short names per name of the parser, as they are asked for."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        super().__init__()
        self._prefixes = prefixes

    def __missing__(self, name: str) -> str:
        uri, _, local = name.rpartition(" ")
        prefix = self._prefixes.get(uri)
        short = name if prefix is None else f"{prefix}:{local}" if prefix else local
        self[name] = short
        return short


def _parser(what: str, *, entities: bool) -> expat.XMLParserType:
    parser = expat.ParserCreate("utf-8", " ")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.specified_attributes = True  # a declared default would be copied into each element

    def declare(*_: object) -> None:
        if not entities:
            detail = f"{what} declares entities, which are not read; save it without them"
            raise DocumentError("wrong_type", detail)
        parser.DefaultHandler = _ignore  # with a handler expat expands no entities in text

    parser.EntityDeclHandler = declare
    return parser


def _ignore(_: object) -> None:
    """Do nothing."""


def _run(parser: expat.XMLParserType, data: bytes, what: str) -> None:
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DocumentError(
            "corrupt",
            f"{what} is not well-formed XML at line {error.lineno}, column {error.offset}: "
            f"{expat.ErrorString(error.code)}",
        ) from None
    except ValueError:  # a name with a character that the parser refuses to hand over
        raise DocumentError("corrupt", f"{what} is not valid UTF-8") from None


class _Building:
    """The tree while it is read."""

    def __init__(self, data: bytes, prefixes: Mapping[str, str], what: str) -> None:
        self.root: XmlElement | None = None
        self._data = data
        self._what = what
        self._open: list[XmlElement] = []
        self._names = _Names(prefixes)
        self._quotes_ends = _QUOTED_END.search(data) is not None

    def start(self, parser: expat.XMLParserType, name: str, attributes: dict[str, str]) -> None:
        start = parser.CurrentByteIndex
        content = self._data.find(b">", start) + 1
        if self._quotes_ends and (tag := _START_TAG.match(self._data, start)):
            content = tag.end()
        if attributes:
            names = self._names
            attributes = {names[key]: value for key, value in attributes.items()}
        element = XmlElement(self._names[name], attributes, start, content)
        if self._open:
            self._open[-1].children.append(element)
        elif self.root is None:
            self.root = element
        self._open.append(element)
        if len(self._open) > DEEPEST:
            raise DocumentError("bomb", f"{self._what} nests more than {DEEPEST} elements")

    def end(self, parser: expat.XMLParserType, _: str) -> None:
        element = self._open.pop()
        if self._data[element.content - 2 : element.content] == b"/>":
            return
        element.stop = parser.CurrentByteIndex
        element.end = self._data.index(b">", element.stop) + 1


def text_of(raw: bytes) -> str:
    """Return the decoded text of some content; comments and instructions in it count as nothing."""
    text = raw.decode()
    if "<" not in text:
        return _unescaped(text)
    return "".join(
        (match[1] or "").replace("\r\n", "\n") if match[2] is None else _unescaped(match[2])
        for match in _PARTS.finditer(text)
    )


def content_of(raw: str) -> str:
    """Return the decoded text of an element."""
    return text_of(raw.encode())


def value_of(raw: str) -> str:
    """Return the decoded value of an attribute."""
    return _unescaped(_VALUE_BLANK.sub(" ", raw))


def _unescaped(text: str) -> str:
    """Return text without references. Entities that XML does not define stay as they are."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "&" not in text:
        return text
    return _REFERENCE.sub(_dereferenced, text)


def _dereferenced(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1]))
    return unescape(match[0]) if match[2] is None else chr(int(match[2], 16))


def escaped(text: str) -> str:
    """Return text as the content of an element. Characters that XML cannot hold are left out."""
    return legal(text).translate(_TEXT_ESCAPES)


def legal(text: str) -> str:
    """Return text without the characters that XML cannot hold."""
    return _ILLEGAL.sub("", text)


def escaped_value(text: str) -> str:
    """Return text as the value of an attribute in quotes of either kind."""
    return legal(text).translate(_VALUE_ESCAPES)


def attribute_range(data: bytes, element: XmlElement, name: str) -> tuple[int, int] | None:
    """Return the range of an attribute's value without its quotes; `name` is as in the file."""
    wanted = name.encode()
    for match in _ATTRIBUTE.finditer(data, element.start, element.content):
        if match[1] == wanted:
            return match.start(2) + 1, match.end(2) - 1
    return None


def attributes(tag: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield name and range of the attributes of a start tag, with one blank before each."""
    for match in _ATTRIBUTE.finditer(tag):
        yield match[1], match.start(), match.end()
