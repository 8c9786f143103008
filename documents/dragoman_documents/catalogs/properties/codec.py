"""Java's .properties and Apple's .strings: the values of keys, everything else byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.catalogs.apple import strings as strings_lines
from dragoman_documents.catalogs.properties import lines as properties_lines
from dragoman_documents.catalogs.properties.choices import NO_CHOICE, JavaChoice, choice, has_choice
from dragoman_documents.catalogs.properties.lines import PropertiesEntry
from dragoman_documents.codec import (
    Codec,
    Extraction,
    Options,
    Remark,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded
from dragoman_documents.inline_codes import fits, of_text, rendered
from dragoman_documents.plurals.icu.messages import NO_MESSAGE, IcuMessage, parsed
from dragoman_documents.plurals.messages import MORE_FORMS, needs_more_forms
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_text.icu import has_arms
from dragoman_text.spans import is_translatable


@dataclass(frozen=True, slots=True)
class _Value:
    """An entry with its segments: the sentences of an ICU message, or one text."""

    entry: PropertiesEntry
    segments: tuple[Segment, ...]
    message: IcuMessage | JavaChoice | None = None
    doubled: bool = False
    """Whether apostrophes are doubled, as Java's MessageFormat has it."""

    @property
    def fixed(self) -> str:
        """Return what of the value no translation changes."""
        if self.message is not None:
            return self.message.signature
        core = self.entry.value.strip()
        lead, _, trail = self.entry.value.partition(core)
        return f"{lead}|{trail}"

    def spelled(self, texts: Sequence[str | None]) -> str | None:
        """Return the value with translations, decoded; None if it stays."""
        if all(text is None for text in texts):
            return None
        if self.message is not None:
            return self.message.spelled(texts)
        text, codes = texts[0] or "", self.segments[0].codes
        if not fits(text, codes) or not is_translatable(text):
            return None  # a text without words would be no segment of the output
        core = self.entry.value.strip()
        lead, _, trail = self.entry.value.partition(core)
        found = rendered(text, codes, str)
        return lead + (found.replace("'", "''") if self.doubled else found) + trail


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    values: tuple[_Value, ...]


@dataclass(frozen=True)
class KeyValueCodec:
    """Keys with values, one segment per value; ICU messages have one per sentence."""

    name: str
    suffixes: frozenset[str]
    read: Callable[[bytes], Decoded]
    """Decodes a file. Raises DocumentError."""
    entries: Callable[[str], Iterator[PropertiesEntry]]
    """Yields the entries of a file. Raises DocumentError."""
    respelled: Callable[[str, str], str]
    """Spells a value as its source is spelled."""
    fallback: Callable[[str], str]
    """Spells a character that the encoding lacks."""
    message_format: bool = False
    by_language: bool = True
    has_targets: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the values that have words. Raises DocumentError."""
        file = self.read(data)
        values = [self._value(entry, options) for entry in self.entries(file.text)]
        kept = tuple(value for value in values if value.segments)
        return Extraction(
            tuple(segment for value in kept for segment in value.segments),
            skeleton(
                file.text,
                [(value.entry.start, value.entry.end) for value in kept],
                *(value.fixed for value in kept),
            ),
            file.encoding,
            tuple(self._remarks(values, options)),
            layout=_Layout(file, kept),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations; the others stay as they are."""
        layout = layout_of(extraction, _Layout)
        changes: list[Replacement[str]] = []
        place = 0
        for value in layout.values:
            behind = place + len(value.segments)
            new = value.spelled(texts[place:behind])
            if new is not None:
                start, end = value.entry.start, value.entry.end
                content = self.respelled(new, layout.file.text[start:end])
                changes.append(Replacement(start, end, content))
            place = behind
        if not changes:
            return data
        return layout.file.encoded(replaced(layout.file.text, changes), self.fallback)

    def _remarks(self, values: Sequence[_Value], options: Options) -> Iterator[Remark]:
        for each in values:
            if each.message is None and self._is_message(each.entry.value):
                detail = NO_MESSAGE if has_arms(each.entry.value) else NO_CHOICE
                yield Remark(each.entry.key, detail, "message")
            elif isinstance(each.message, JavaChoice) and needs_more_forms(options):
                yield Remark(each.entry.key, MORE_FORMS, "plural")

    def _is_message(self, value: str) -> bool:
        return has_arms(value) or (self.message_format and has_choice(value))

    def _message(self, value: str, options: Options) -> IcuMessage | JavaChoice | None:
        if self.message_format and has_choice(value):
            return choice(value)
        return parsed(value, options)

    def _value(self, entry: PropertiesEntry, options: Options) -> _Value:
        message = self._message(entry.value, options)
        if message is not None or self._is_message(entry.value):
            return _Value(entry, message.segments(entry.key) if message else (), message)
        doubled = self.message_format and properties_lines.is_message_format(entry.value)
        core = entry.value.strip()
        text, codes = of_text(core.replace("''", "'") if doubled else core)
        if not is_translatable(text):
            return _Value(entry, ())
        return _Value(entry, (Segment(text, entry.key, "value", codes),), None, doubled)


CODECS: Final[Mapping[str, Codec]] = {
    "properties": KeyValueCodec(
        "properties",
        frozenset({".properties"}),
        properties_lines.read,
        properties_lines.entries,
        properties_lines.respelled,
        properties_lines.unicode_escape,
        message_format=True,
    ),
    "strings": KeyValueCodec(
        "strings",
        frozenset({".strings"}),
        strings_lines.read,
        strings_lines.entries,
        strings_lines.respelled,
        strings_lines.unicode_escape,
    ),
}
