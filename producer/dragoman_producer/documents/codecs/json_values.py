"""JSON and its relatives: string values spliced between untouched bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_producer.documents.codecs.codec import (
    Codec,
    Extraction,
    Options,
    Segment,
    layout_of,
)
from dragoman_producer.documents.codecs.encodings import Decoded, decoded
from dragoman_producer.documents.codecs.icu import Message, parsed
from dragoman_producer.documents.codecs.icu_parsing import has_arms
from dragoman_producer.documents.codecs.inline_codes import (
    Piece,
    Single,
    composed,
    of_text,
    rendered,
)
from dragoman_producer.documents.codecs.json_scanning import Path, String, is_escaped, strings
from dragoman_producer.documents.codecs.key_patterns import is_selected
from dragoman_producer.documents.codecs.splicing import Replacement, replaced, skeleton
from dragoman_producer.documents.codecs.values import at_places, is_text, place_of

_CHROME: Final = re.compile(r"\$(?:[A-Za-z0-9_@]+\$|[1-9]|\$+)")
"""Placeholders of Chrome's messages, `$name$` and `$1`, and `$$` for a dollar sign."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A string with its segments: one, or those of an ICU message."""

    string: String
    segments: tuple[Segment, ...]
    message: Message | None = None

    def spelled(self, texts: Sequence[str | None]) -> str | None:
        """Return the value with translations; None if it stays."""
        if all(text is None or not text.strip() for text in texts):
            return None
        if self.message is not None:
            return self.message.spelled(texts)
        value = self.string.value
        lead, _, trail = value.partition(value.strip())
        return lead + rendered(texts[0] or "", self.segments[0].codes, str).strip() + trail


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    escaped: bool
    """Whether the file is in ASCII and has escapes, so that its translations are too."""
    count: int
    """Number of string values of the file."""
    indices: Sequence[int]
    """Of those that have segments, among them."""
    values: Sequence[_Value]


def _any(_path: Path) -> bool:
    return True


def _is_resource(path: Path) -> bool:
    """Return whether a value of an ARB file is a resource: `@key` describes one, `@@` the file."""
    return bool(path) and not str(path[0]).startswith("@")


def _is_message(path: Path) -> bool:
    """Return whether a value of a Chrome extension is a message, not its description."""
    return len(path) == 2 and path[1] == "message"


@dataclass(frozen=True, slots=True)
class Json:
    """String values of JSON, with the comments and trailing commas of JSONC."""

    name: str = "json"
    suffixes: frozenset[str] = frozenset({".json", ".jsonc"})
    is_wanted: Callable[[Path], bool] = _any
    """Which values the format has texts in."""
    tags: re.Pattern[str] | None = None
    """Placeholders that become inline tags."""
    by_language: bool = True
    """Forms of ICU messages are those of the target language; without it these are left alone."""
    has_targets: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the values that are text. Raises DocumentError (`corrupt`, `encoding`)."""
        file = decoded(data)
        count, indices, values = 0, list[int](), list[_Value]()
        for index, string in enumerate(strings(file.text)):
            count = index + 1
            if (value := self._value(string, options)) is not None and value.segments:
                indices.append(index)
                values.append(value)
        return _extraction(file, count, indices, values)

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the values of an output that are in the places of its source's segments."""
        layout = layout_of(before, _Layout)
        file = decoded(data)
        found = at_places(strings(file.text), layout.indices, layout.count)
        values = [
            self._text(string) if value.message is None else _message(string, options)
            for string, value in zip(found, layout.values, strict=True)
        ]
        return _extraction(file, layout.count, layout.indices, values)

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations; an empty one leaves the source."""
        layout = layout_of(extraction, _Layout)
        changes: list[Replacement[str]] = []
        given = iter(texts)
        for value in layout.values:
            new = value.spelled([next(given) for _ in value.segments])
            if new is not None:
                content = json.dumps(new, ensure_ascii=layout.escaped)
                changes.append(Replacement(value.string.start, value.string.end, content))
        return layout.file.encoded(replaced(layout.file.text, changes), reference)

    def _value(self, string: String, options: Options) -> _Value | None:
        if not self.is_wanted(string.path):
            return None
        if options.keys and not is_selected([str(step) for step in string.path], options.keys):
            return None
        if self.by_language and has_arms(string.value):
            return _message(string, options)
        return self._text(string) if is_text(string.value) else None

    def _text(self, string: String) -> _Value:
        core = string.value.strip()
        text, codes = composed(_pieces(core, self.tags)) if self.tags else of_text(core)
        return _Value(string, (Segment(text, _place(string), "value", codes),))


def reference(character: str) -> str:
    """Return the escape of a character that the file's encoding lacks."""
    return json.dumps(character)[1:-1]


def _message(string: String, options: Options) -> _Value:
    """Return an ICU message; without segments if it is none that can be translated."""
    message = parsed(string.value, options)
    return _Value(string, message.segments(_place(string)) if message else (), message)


def _place(string: String) -> str:
    return place_of(string.path) or "value"


def _pieces(text: str, tags: re.Pattern[str]) -> Iterator[Piece]:
    end = 0
    for match in tags.finditer(text):
        yield text[end : match.start()]
        yield Single(match[0])
        end = match.end()
    yield text[end:]


def _extraction(
    file: Decoded, count: int, indices: Sequence[int], values: Sequence[_Value]
) -> Extraction:
    signatures = (each.message.signature for each in values if each.message)
    return Extraction(
        segments=tuple(segment for each in values for segment in each.segments),
        skeleton=skeleton(
            file.text, ((each.string.start, each.string.end) for each in values), *signatures
        ),
        encoding=file.encoding,
        layout=_Layout(file, is_escaped(file.text), count, indices, values),
    )


CODECS: Final[Mapping[str, Codec]] = {
    "json": Json(),
    "arb": Json("arb", frozenset({".arb"}), _is_resource),
    "chrome": Json("chrome", frozenset(), _is_message, _CHROME, by_language=False),
}
