"""A review as an XLIFF 1.2 file, for the editors of translators, and back.

Inline tags become `<g id="1">` and `<x id="2"/>`, so that an editor shows them as tags, with what
they stand for as `ctype` and `equiv-text`. The id of a unit holds the segment's index and the
digest of its source, by which its edit is found again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from dragoman_documents.codec import InlineCode
from dragoman_producer.review.edits import BadEdits, Edit, Edits
from dragoman_producer.review.page import Review, ReviewRow, digest

_NAMESPACE: Final = "urn:oasis:names:tc:xliff:document:1.2"
_TAG: Final = re.compile(r"<(/?)([gx])([1-9][0-9]{0,5})(/?)>")
_NOT_XML: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNIT_ID: Final = re.compile(r"([0-9]{1,9})-([0-9a-f]{16})")
_APPROVED: Final = frozenset({"final", "signed-off"})
_UNDETERMINED: Final = "und"


def written(review: Review, rows: Sequence[ReviewRow]) -> Iterator[str]:
    """Yield the parts of the file. Segments with characters that XML cannot hold are left out."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<xliff version="1.2" xmlns="{_NAMESPACE}">\n'
    for document, units in groupby(rows, key=lambda row: row.document):
        yield from _file(review, document, units)
    yield "</xliff>\n"


def left_out(rows: Sequence[ReviewRow]) -> list[ReviewRow]:
    """Return the segments that `written` leaves out."""
    return [row for row in rows if not _fits(row)]


def _file(review: Review, document: str, rows: Iterable[ReviewRow]) -> Iterator[str]:
    source = quoteattr(review.source_lang or _UNDETERMINED)
    yield (
        f'<file original={quoteattr(document)} datatype="x-dragoman" source-language={source} '
        f"target-language={quoteattr(review.target_lang)} product-version={quoteattr(review.run)}>"
        "\n<body>\n"
    )
    for row in rows:
        if _fits(row):
            yield _unit(row)
    yield "</body>\n</file>\n"


def _unit(row: ReviewRow) -> str:
    limit = f' maxwidth="{row.max_chars}" size-unit="char"' if row.max_chars else ""
    notes = "".join(
        f'<note from="dragoman">{escape(_note(each.gate, each.detail))}</note>\n'
        for each in row.findings
    )
    state = {"ok": "translated", "unchecked": "translated"}.get(row.verdict)
    target = ""
    if row.target is not None:
        state = state or "needs-review-translation"
        target = f'<target state="{state}">{_inline(row.target, row.codes)}</target>\n'
    return (
        f'<trans-unit id="{row.segment}-{digest(row.source)}" resname={quoteattr(row.place)}{limit}'
        f' xml:space="preserve">\n<source>{_inline(row.source, row.codes)}</source>\n'
        f"{target}{notes}</trans-unit>\n"
    )


def _note(gate: str, detail: str) -> str:
    return _NOT_XML.sub("", f"{gate}: {detail}" if detail else gate)


def _inline(text: str, codes: Sequence[InlineCode]) -> str:
    parts: list[str] = []
    end = 0
    for match in _TAG.finditer(text):
        parts.append(escape(text[end : match.start()]))
        close, letter, number, _ = match.groups()
        shown = described(codes[int(number) - 1]) if int(number) <= len(codes) else ""
        opening = f'<{letter} id="{number}"{shown}'
        parts.append("</g>" if close else opening + (">" if letter == "g" else "/>"))
        end = match.end()
    return "".join(parts) + escape(text[end:])


def _fits(row: ReviewRow) -> bool:
    """Return whether XML can hold the texts; tags of a target may be unbalanced after a failure."""
    texts = (row.source, row.target or "", row.document, row.place)
    return not any(_NOT_XML.search(text) for text in texts) and all(
        _balanced(text) for text in texts[:2]
    )


def _balanced(text: str) -> bool:
    opened: list[str] = []
    for close, letter, number, _ in _TAG.findall(text):
        if letter == "g" and not close:
            opened.append(number)
        elif letter == "g" and (not opened or opened.pop() != number):
            return False
    return not opened


def parse(content: bytes) -> Edits:
    """Return the targets of the file as edits. Raises BadEdits.

    Units without a target are no edits. A unit in the state `final` or `signed-off`, or with
    `approved="yes"`, is approved.
    """
    reader = _Reader()
    try:
        reader.read(content)
    except expat.ExpatError as error:
        why = expat.errors.messages[error.code]
        give = "give the edits of a review page, or a file of `--export`"
        raise BadEdits(f"line {error.lineno}: it is not XML: {why}; {give}") from None
    except (LookupError, ValueError):
        raise BadEdits("line 1: its encoding is not supported; save it as UTF-8") from None
    if reader.target_lang is None:
        raise BadEdits("it has no <file> with a target-language; give a file of `--export`")
    return Edits(reader.run, reader.target_lang, tuple(reader.edits))


class _Reader:
    """An XLIFF file as it is read."""

    def __init__(self) -> None:
        self.run = ""
        self.target_lang: str | None = None
        self.edits: list[Edit] = []
        self._document = ""
        self._unit: tuple[int, str] | None = None
        self._approved = False
        self._text: list[str] | None = None
        self._opened: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity

    def read(self, content: bytes) -> None:
        self._parser.Parse(content, True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        match name.rpartition(" ")[2]:
            case "file":
                self._start_file(attributes)
            case "trans-unit":
                self._unit = self._unit_of(attributes.get("id", ""))
                self._approved = attributes.get("approved") == "yes"
            case "target" if self._unit is not None:
                self._text = []
                self._approved |= attributes.get("state") in _APPROVED
            case inline if self._text is not None:
                self._text.append(self._opening(inline, attributes.get("id", "")))
            case _:
                pass

    def _start_file(self, attributes: dict[str, str]) -> None:
        self._document = attributes.get("original", "")
        self.run = attributes.get("product-version", self.run)
        language = attributes.get("target-language")
        if self.target_lang not in {None, language}:
            raise self._problem(f"several target languages: {self.target_lang} and {language}")
        self.target_lang = language

    def _opening(self, name: str, number: str) -> str:
        """Return the tag of an inline element, and keep the one that closes it."""
        if name == "mrk":  # an editor's own mark, around text of ours
            self._opened.append("")
            return ""
        if name not in {"g", "x"} or not number.isascii() or not number.isdigit():
            raise self._problem(f"<{name}> in a <target>; only the <g> and <x> of the source fit")
        self._opened.append(f"</g{number}>" if name == "g" else "")
        return f"<g{number}>" if name == "g" else f"<x{number}/>"

    def _end(self, name: str) -> None:
        local = name.rpartition(" ")[2]
        if local == "trans-unit":
            self._unit = None
        elif local == "target" and self._text is not None and self._unit is not None:
            segment, source = self._unit
            text = "".join(self._text)
            self.edits.append(Edit(self._document, segment, source, text, self._approved))
            self._text = None
        elif self._text is not None:
            self._text.append(self._opened.pop())

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _unit_of(self, given: str) -> tuple[int, str]:
        match = _UNIT_ID.fullmatch(given)
        if match is None:
            raise self._problem("a <trans-unit> whose id is not ours; ids must stay as exported")
        return int(match[1]), match[2]

    def _entity(self, *_: object) -> None:
        raise self._problem("entity declarations are not read")

    def _problem(self, what: str) -> BadEdits:
        return BadEdits(f"line {self._parser.CurrentLineNumber}: {what}")


_LONGEST: Final = 120
"""Characters of a code that are shown: a picture of DOCX has thousands."""
_NAME: Final = re.compile(r"<(?:[A-Za-z0-9]+:)?([A-Za-z][A-Za-z0-9_.-]*)")
_STYLES: Final = (("<w:b/>", "bold"), ("<w:i/>", "italic"), ("<w:u ", "underlined"))
_ELEMENTS: Final = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underlined",
    "a": "link",
    "hyperlink": "link",
    "img": "image",
    "drawing": "image",
    "br": "lb",
    "line-break": "lb",
}
_MARKS: Final = (
    ("![", "image"),
    ("[", "link"),
    ("***", "x-bold-italic"),
    ("**", "bold"),
    ("__", "bold"),
    ("*", "italic"),
    ("_", "italic"),
    ("~~", "x-strikethrough"),
    ("`", "x-code"),
    ("$", "x-formula"),
    ("{", "x-placeholder"),
    ("%", "x-placeholder"),
)


def described(code: InlineCode) -> str:
    """Return the attributes `ctype` and `equiv-text` of a code, each with a blank before it."""
    text = _NOT_XML.sub("", f"{code.opening}...{code.closing}" if code.closing else code.opening)
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return f' ctype="{type_of(code)}" equiv-text={quoteattr(text)}'


def type_of(code: InlineCode) -> str:
    """Return the `ctype` of a code; `x-` and the name of its element for one without a standard."""
    opening = code.opening.lstrip()
    for mark, kind in (*_STYLES, *_MARKS):
        if opening.startswith(mark) or (mark.startswith("<") and mark in opening):
            return kind
    match = _NAME.match(opening)
    if match is None:
        return "x-code"
    return _ELEMENTS.get(match[1].lower(), f"x-{match[1]}")
