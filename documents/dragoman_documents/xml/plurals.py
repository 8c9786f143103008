"""Messages of XML whose plural forms are written together: of Android, Apple and Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dragoman_documents.codec import Segment
from dragoman_documents.plurals.messages import PluralText
from dragoman_documents.xml.html_in_text import Marked
from dragoman_documents.xml.inline import Mixed
from dragoman_documents.xml.slots import Inner, XmlSlot, XmlWriter
from dragoman_documents.xml.tree import XmlElement


class PluralMessage(Protocol):
    """An element whose plural forms change together."""

    @property
    def range(self) -> tuple[int, int]:
        """Return the bytes that are written anew when a form is translated."""
        ...

    @property
    def fixed(self) -> str:
        """Return what of these bytes no translation changes."""
        ...

    def written(self, contents: Mapping[int, bytes], *, draft: bool) -> bytes:
        """Return the bytes with contents by the index of their forms; some may lack one."""
        ...


@dataclass(frozen=True, slots=True)
class Items:
    """The forms of a message one behind the other: those of the target language are written."""

    data: bytes
    items: Mapping[str, XmlElement]
    """By category; the content of each is the text of its form."""
    forms: Sequence[PluralText]
    opening: tuple[bytes, bytes]
    """What is before the text of each item: before and behind its category."""
    gap: bytes
    """Blanks between two items."""
    closing: bytes
    """What is behind the text of each item."""

    @property
    def range(self) -> tuple[int, int]:
        """Return the bytes from the first item to the last."""
        items = list(self.items.values())
        return items[0].start, items[-1].end

    @property
    def fixed(self) -> str:
        """Return what is before the texts, without the categories."""
        return b"|".join(self.opening).decode()

    def written(self, contents: Mapping[int, bytes], *, draft: bool) -> bytes:
        """Return the items: those that are there in place, or those of the target language."""
        del draft
        by_category = {
            form.category: contents[index] if index in contents else self.source(form)
            for index, form in enumerate(self.forms)
        }
        if set(by_category) == set(self.items):
            return self._in_place(by_category)
        before, behind = self.opening
        return self.gap.join(
            before + name.encode() + behind + content + self.closing
            for name, content in by_category.items()
        )

    def source(self, form: PluralText) -> bytes:
        """Return the text that a form is translated from."""
        item = self.items[form.source]
        return self.data[item.content : item.stop]

    def _in_place(self, contents: Mapping[str, bytes]) -> bytes:
        start, end = self.range
        parts: list[bytes] = []
        for name, item in self.items.items():
            parts += (self.data[start : item.content], contents[name])
            start = item.stop
        return b"".join([*parts, self.data[start:end]])


@dataclass(frozen=True, slots=True)
class FormWriter:
    """Writes one form; `together` writes all forms of a message."""

    message: PluralMessage
    index: int
    form: PluralText
    source: Mixed | Marked
    draft: bool = False

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the content of the form. Raises ValueError if tags or number do not fit."""
        found = self.form.put_back(text)
        if found is None:
            raise ValueError("the translation lacks the number of its form")
        return self.source.writer.written(found, inner)

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return the digest of the codes of the form, and what else is fixed in its message."""
        return f"{'' if self.index else self.message.fixed}\0{self.source.writer.fixed(ranges)}"

    def as_draft(self) -> XmlWriter:
        """Return the writer of a form that a person should look at."""
        return replace(self, draft=True)


@dataclass(frozen=True, slots=True)
class Together:
    """Writes a message with the translations of its forms."""

    forms: Sequence[tuple[FormWriter, str]]

    def written(self, text: str, inner: Inner) -> bytes:
        """Return the bytes of all forms."""
        del text
        contents = {each.index: each.written(given, inner) for each, given in self.forms}
        message = self.forms[0][0].message
        return message.written(contents, draft=any(writer.draft for writer, _ in self.forms))

    def fixed(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Return nothing: the forms have been counted."""
        del ranges
        return ""


def together(found: Sequence[tuple[XmlSlot, FormWriter, str]]) -> tuple[XmlSlot, str]:
    """Return the slot of a message for the translations of its forms."""
    pairs = [(writer, text) for _, writer, text in found]
    return found[0][0]._replace(writer=Together(pairs)), ""


def slot(writer: FormWriter, about: Segment) -> XmlSlot:
    """Return the slot of a form; `about` has the place and the context of the message."""
    segment = about._replace(
        text=writer.form.text,
        kind="plural",
        codes=writer.source.codes,
        plural=writer.form.category,
        number=writer.form.number,
        number_optional=writer.form.number_optional,
    )
    return XmlSlot(segment, *writer.message.range, writer)
