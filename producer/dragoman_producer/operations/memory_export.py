"""Writers of approved translations: JSONL, TMX 1.4 and TSV, an entry at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from dragoman_connections.terminal import json_line
from dragoman_documents.inline_codes import same_tags
from dragoman_producer.operations.memory import fields_of
from dragoman_producer.operations.memory_files import NAMED, escaped
from dragoman_schemas.approved import ApprovedTranslation

_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TMX_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4">
<header creationtool="dragoman" creationtoolversion="1" segtype="block" o-tmf="dragoman" \
adminlang="en" srclang="*all*" datatype="plaintext"/>
<body>"""
_TMX_END: Final = "</body>\n</tmx>"

_TAG: Final = re.compile(r"<(/?)([gx])([1-9][0-9]{0,5})/?>")

Print = Callable[[str], None]


class JsonlWriter:
    """One JSON object per line."""

    left_out = 0
    cannot_hold = ""
    """Why entries are left out, as a sentence for people."""

    def __init__(self, write_line: Print) -> None:
        self._write_line = write_line

    def write(self, entry: ApprovedTranslation) -> None:
        """Write an entry."""
        self._write_line(json_line(fields_of(entry)))

    def finish(self) -> None:
        """Write what ends the file: nothing."""


class TsvWriter(JsonlWriter):
    """A header, then one entry per line; tabs and line ends are written as in a string.

    It counts in `left_out` the entries with U+0000, which no text file may have.
    """

    cannot_hold = "TSV holds no U+0000"

    def __init__(self, write_line: Print) -> None:
        super().__init__(write_line)
        write_line("\t".join(NAMED))

    def write(self, entry: ApprovedTranslation) -> None:
        """Write an entry."""
        fields = fields_of(entry)
        line = "\t".join(escaped(fields.get(name, "")) for name in NAMED)
        if "\0" in line:
            self.left_out += 1
        else:
            self._write_line(line)


class TmxWriter(JsonlWriter):
    """TMX. It counts in `left_out` the entries that TMX cannot hold, and others in `written`."""

    cannot_hold = "TMX holds neither contexts, missing source languages nor control characters"

    def __init__(self, write_line: Print) -> None:
        super().__init__(write_line)
        self.written = 0
        write_line(_TMX_HEAD)

    def write(self, entry: ApprovedTranslation) -> None:
        """Write an entry, unless it has a context, no source language, or characters not in XML."""
        if entry.context is not None:
            self.left_out += 1
        else:
            self.write_unit(entry)

    def write_unit(self, entry: ApprovedTranslation) -> None:
        """Write an entry whose context, if it has one, is for people alone."""
        texts = entry.source + entry.target + (entry.context or "")
        if entry.source_lang is None or _NOT_XML.search(texts):
            self.left_out += 1
            return
        self.written += 1
        pairs = ((entry.source_lang, entry.source), (entry.target_lang, entry.target))
        note = f"<note>{_escaped(entry.context)}</note>" if entry.context else ""
        variants = "".join(
            f"<tuv xml:lang={quoteattr(tag)}><seg>{_segment(text)}</seg></tuv>"
            for tag, text in pairs
        )
        self._write_line(f"<tu srclang={quoteattr(entry.source_lang)}>{note}{variants}</tu>")

    def finish(self) -> None:
        """Close the file's elements."""
        self._write_line(_TMX_END)


def writer_of(form: str, write_line: Print) -> JsonlWriter:
    """Return the writer of a format: `jsonl`, `tmx` or `tsv`."""
    writers = {"jsonl": JsonlWriter, "tmx": TmxWriter, "tsv": TsvWriter}
    return writers[form](write_line)


def _segment(text: str) -> str:
    """Return a text as XML, inline tags as native codes of TMX, which readers take as text."""
    if not same_tags(text, text):  # tags that do not nest are text
        return _escaped(text)
    parts: list[str] = []
    end = 0
    for match in _TAG.finditer(text):
        parts.append(_escaped(text[end : match.start()]))
        close, letter, number = match.groups()
        code = escape(match[0])
        if letter == "x":
            parts.append(f'<ph x="{number}">{code}</ph>')
        elif close:
            parts.append(f'<ept i="{number}">{code}</ept>')
        else:
            parts.append(f'<bpt i="{number}" x="{number}">{code}</bpt>')
        end = match.end()
    return "".join(parts) + _escaped(text[end:])


def _escaped(text: str) -> str:
    return escape(text, {"\r": "&#13;"})  # an XML parser reads a bare one as a line end
