"""Markdown parsed by pyromark: blocks of inline tokens, with their places in the UTF-8 bytes.

The one module that imports pyromark (ADR 22).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import pyromark

from dragoman_documents.codec import Kind
from dragoman_documents.markup.markdown.html_blocks import Html

_OPTIONS: Final = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_FOOTNOTES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_GFM
    | pyromark.Options.ENABLE_MATH
)
_MARKDOWN: Final = pyromark.Markdown(options=_OPTIONS)
_DELIMITERS: Final = {"Emphasis": 1, "Strong": 2, "Link": 1, "Image": 2}
"""Bytes of the opening delimiter; of `~` and `~~` the source decides."""
_INLINES: Final = frozenset({*_DELIMITERS, "Strikethrough"})
_AUTOMATIC: Final = frozenset({"Autolink", "Email"})
_BY_TEXT: Final = frozenset({"Shortcut", "Collapsed"})
"""Links whose text is their reference: `[text]`, `[text][]`. A translation needs the label."""
_KINDS: Final[Mapping[str, Kind]] = {
    "Heading": "heading",
    "TableCell": "cell",
    "Item": "list_item",
    "FootnoteDefinition": "note",
}
_OPAQUE: Final = frozenset({"CodeBlock", "HtmlBlock"})

_new: Final = tuple.__new__
"""Makes a token at half of what a call of its class costs."""
TokenKind = Literal["text", "soft", "hard", "html", "single", "line", "open", "close"]


class MarkdownToken(NamedTuple):
    """A piece of inline content at `[start:end)`.

    `text` is the decoded text of a `text`, the tag of an `html`, and what a translation writes for
    an `open` or `close`, empty where that is the source itself.
    """

    kind: TokenKind
    start: int
    end: int
    text: str = ""


@dataclass(slots=True)
class MarkdownBlock:
    """Inline content of a paragraph, heading, table cell or item of a tight list."""

    kind: Kind
    tokens: list[MarkdownToken]
    level: int = 0
    """Of a heading, from 1."""
    paragraph: bool = False
    """Whether it is a paragraph of its own, so that another can follow it."""
    underlined: bool = False
    """Whether a heading is one by the line below it."""


class IndentedCode(NamedTuple):
    """A block of code at `[start:end)` that only its indentation makes one."""

    start: int
    end: int


Parsed = MarkdownBlock | Html | IndentedCode


def parsed(source: bytes) -> list[Parsed]:
    """Return the blocks with text and of indented code, in order."""
    reader = _Reader(source)
    read = {
        "Text": reader.text,
        "Start": reader.start,
        "End": reader.end,
        "InlineHtml": reader.html,
        "Html": reader.ignore,
        "TaskListMarker": reader.ignore,
    }
    single = reader.single
    event: Any
    for event, place in _MARKDOWN.events_with_range(source.decode()):
        if type(event) is str:
            reader.border(event, place["start"], place["end"])
        else:
            name, value = event.popitem()
            read.get(name, single)(value, place["start"], place["end"])
    reader.flush()
    return reader.found


def definitions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of link reference definitions that have a title."""
    for each in _MARKDOWN.reference_definitions(text).values():
        if each["title"]:
            yield each["span"]["start"], each["span"]["end"]


def link_targets(source: bytes) -> Iterator[tuple[int, str, bool]]:
    """Yield the places and targets of links and definitions, and HTML as it is: True."""
    text = source.decode()
    if "]:" in text:
        for each in _MARKDOWN.reference_definitions(text).values():
            yield each["span"]["start"], each["dest"], False
    for each, place in _MARKDOWN.events_with_range(text):
        event: Any = each
        if isinstance(event, str):
            continue
        name, value = event.popitem()
        if name in ("InlineHtml", "Html"):
            yield place["start"], value, True
        elif name == "Start" and not isinstance(value, str) and "Link" in value:
            link = value["Link"]
            if link["link_type"] == "Inline":
                yield place["start"], link["dest_url"], False


@dataclass(slots=True)
class _Reader:
    """Collects the inline events between two borders of blocks."""

    source: bytes
    found: list[Parsed] = field(default_factory=list)
    _kinds: list[str] = field(default_factory=list)
    _tokens: list[MarkdownToken] = field(default_factory=list)
    _opened: list[int] = field(default_factory=list)
    _block: MarkdownBlock | None = None
    _opaque: str = ""
    _automatic: int = 0

    def border(self, name: str, start: int, end: int) -> None:
        if name == "Rule":
            self.flush()
        else:
            self._tokens.append(
                _new(MarkdownToken, ("soft" if name == "SoftBreak" else "hard", start, end, ""))
            )

    def text(self, value: str, start: int, end: int) -> None:
        if not self._opaque and not self._automatic:
            self._tokens.append(_new(MarkdownToken, ("text", start, end, value)))

    def html(self, value: str, start: int, end: int) -> None:
        self._tokens.append(MarkdownToken("html", start, end, value))

    def single(self, _value: object, start: int, end: int) -> None:
        self._tokens.append(_new(MarkdownToken, ("single", start, end, "")))

    def ignore(self, _value: object, _start: int, _end: int) -> None:
        """Leave what is not text: lines of HTML, the box of a task."""

    def flush(self) -> None:
        """Finish the block whose inline content has ended, if there is one."""
        if self._tokens:
            block = self._block or MarkdownBlock(_kind(self._kinds), [])
            block.tokens, self._tokens, self._opened, self._block = self._tokens, [], [], None
            self.found.append(block)

    def start(self, value: str | dict[str, Any], start: int, end: int) -> None:
        name, detail = (value, None) if isinstance(value, str) else value.popitem()
        if name in _INLINES:
            self._start_inline(name, detail, start, end)
            return
        if self._tokens:
            self.flush()
        self._kinds.append(name)
        if name == "Paragraph":
            self._block = MarkdownBlock(_kind(self._kinds), [], paragraph=True)
        elif name == "Heading" and detail is not None:
            underlined = not self.source.startswith(b"#", start)
            level = int(detail["level"][1:])
            self._block = MarkdownBlock("heading", [], level, paragraph=True, underlined=underlined)
        elif name in _OPAQUE:
            self._opaque = name
            if name == "HtmlBlock":
                self.found.append(Html(start, end, "BlockQuote" in self._kinds))
            elif detail == "Indented":
                self.found.append(IndentedCode(start, end))

    def end(self, value: str | dict[str, Any], _start: int, end: int) -> None:
        name = value if isinstance(value, str) else next(iter(value))
        if name in _INLINES:
            self._end_inline(name, end)
        else:
            if self._tokens:
                self.flush()
            self._kinds.pop()
            self._block = None
            self._opaque = ""

    def _start_inline(
        self, name: str, detail: Mapping[str, str] | None, start: int, end: int
    ) -> None:
        link = detail["link_type"] if detail else ""
        self._opened.append(len(self._tokens))
        if link in _AUTOMATIC:
            self._automatic += 1
            self._tokens.append(MarkdownToken("single", start, end))
            return
        label = f"][{' '.join(detail['id'].split())}]" if detail and link in _BY_TEXT else ""
        width = _DELIMITERS.get(name) or (2 if self.source[start + 1] == ord("~") else 1)
        self._tokens.append(_new(MarkdownToken, ("open", start, start + width, label)))

    def _end_inline(self, name: str, end: int) -> None:
        index = self._opened.pop()
        opened = self._tokens[index]
        if opened.text and self.source.startswith(b"][]", end - 1):
            end += 2  # the parser's range of `[text][]` lacks the empty label
        if opened.kind == "single":
            self._automatic -= 1
        elif index == len(self._tokens) - 1:
            self._tokens[index] = MarkdownToken("single", opened.start, end)
        elif name in ("Link", "Image"):
            self._tokens.append(
                _new(MarkdownToken, ("close", self._tokens[-1].end, end, opened.text))
            )
        else:
            self._tokens.append(MarkdownToken("close", end - opened.end + opened.start, end))


def _kind(kinds: list[str]) -> Kind:
    for name in reversed(kinds):
        if (kind := _KINDS.get(name)) is not None:
            return kind
    return "paragraph"
