"""JSON and its relatives: string values spliced between untouched bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.catalogs.json.plurals import (
    PluralKeys,
    has_count,
    old_plurals,
    plural_keys,
    run_at,
    sizes,
)
from dragoman_documents.catalogs.json.scanning import Path, String, is_escaped, respelled, strings
from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Remark,
    Segment,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.inline_codes import (
    Piece,
    SingleCode,
    composed,
    of_text,
    rendered,
)
from dragoman_documents.plurals.icu.messages import NO_MESSAGE, IcuMessage, parsed
from dragoman_documents.plurals.intervals import Intervals, intervals
from dragoman_documents.plurals.messages import MORE_FORMS, needs_more_forms
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_documents.values import is_text, place_of
from dragoman_text.icu import has_arms

_CHROME: Final = re.compile(r"\$(?:[A-Za-z0-9_@]+\$|[1-9]|\$+)")
"""Placeholders of Chrome's messages, `$name$` and `$1`, and `$$` for a dollar sign."""
_NO_MESSAGE: Final = "its plural keys are translated as they are; check those the language needs"


@dataclass(frozen=True, slots=True)
class _Value:
    """A string with its segments: one, or those of an ICU message."""

    string: String
    segments: tuple[Segment, ...]
    message: IcuMessage | Intervals | None = None

    @property
    def start(self) -> int:
        """Return where the string begins."""
        return self.string.start

    @property
    def end(self) -> int:
        """Return where the string ends."""
        return self.string.end

    @property
    def fixed(self) -> str | None:
        """Return what of the value no translation changes, if there is such."""
        return self.message.signature if self.message else None

    def content(self, text: str, texts: Sequence[str | None], *, escaped: bool) -> str | None:
        """Return the string with translations; None if it stays."""
        if all(each is None or not each.strip() for each in texts):
            return None
        return respelled(self._spelled(texts), text[self.start : self.end], escaped=escaped)

    def _spelled(self, texts: Sequence[str | None]) -> str:
        if self.message is not None:
            return self.message.spelled(texts)
        value = self.string.value
        lead, _, trail = value.partition(value.strip())
        return lead + rendered(texts[0] or "", self.segments[0].codes, str).strip() + trail


_Unit = _Value | PluralKeys


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    escaped: bool
    """Whether the file is in ASCII and has escapes, so that its translations are too."""
    count: int
    """Number of string values of the file."""
    indices: Sequence[int]
    """Of those that have segments, among them; of plural keys the first."""
    values: Sequence[_Unit]
    locale: tuple[int, int] | None
    """Range of the language of the texts."""


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
    plural_keys: bool = False
    """Whether keys such as `file_one` and `file_other` are forms of one message, as in i18next."""
    locale: Path = ()
    """Where the format has the language of its texts, if it has such a place."""

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the values that are text. Raises DocumentError (`corrupt`, `encoding`)."""
        file = decoded(data)
        found = list(strings(file.text))
        remarks: list[Remark] = []
        indices, values = list[int](), list[_Unit]()
        for index, unit in self._units(found, file.text, options, remarks):
            if unit.segments:
                indices.append(index)
                values.append(unit)
        remarks += self._remarks(found, values, options)
        return _extraction(file, len(found), indices, values, remarks, locale=self._locale(found))

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the values of an output that are in the places of its source's segments."""
        layout = layout_of(before, _Layout)
        file = decoded(data)
        found = list(strings(file.text))
        values, moved = list[_Unit](), 0
        for index, unit in zip(layout.indices, layout.values, strict=True):
            place = index + moved
            if isinstance(unit, PluralKeys):
                run = run_at(found, place, file.text)
                values.append(unit.read_again(run))
                moved += len(run) - len(unit.members)
            elif place < len(found):
                values.append(self._again(found[place], unit, options))
        if len(found) != layout.count + moved:
            raise DocumentError("corrupt", "the output has other strings than its source")
        locale = self._locale(found)
        return _extraction(file, layout.count, layout.indices, values, (), locale=locale)

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield the path of each string value that the format may have texts in."""
        found = (each.path for each in strings(decoded(data).text))
        yield from ([str(step) for step in path] for path in found if self.is_wanted(path))

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
            some = [next(given) for _ in value.segments]
            content = value.content(layout.file.text, some, escaped=layout.escaped)
            if content is not None:
                changes.append(Replacement(value.start, value.end, content))
        if changes and layout.locale is not None:
            language = options.target_lang.replace("-", "_")
            changes.append(Replacement(*layout.locale, f'"{language}"'))
        return layout.file.encoded(replaced(layout.file.text, changes), reference)

    def _units(
        self, found: Sequence[String], text: str, options: Options, remarks: list[Remark]
    ) -> Iterator[tuple[int, _Unit]]:
        """Yield the values that are text and the plural messages, with their indices."""
        index, known = 0, sizes(found, text) if self.plural_keys else {}
        while index < len(found):
            run = run_at(found, index, text) if self.plural_keys else []
            selected = bool(run) and all(self._is_selected(each, options) for each in run)
            message = plural_keys(run, text, options, known) if selected else None
            if message is not None:
                yield index, message
            else:
                for place in range(index, index + (len(run) or 1)):
                    if (value := self._value(found[place], options)) is not None:
                        yield place, value
                        if not value.segments and value.message is None:
                            remarks.append(Remark(_place(found[place]), NO_MESSAGE, "message"))
                if selected and has_count(run):
                    remarks.append(Remark(_place(run[0]), _NO_MESSAGE, "plural"))
            index += len(run) or 1

    def _remarks(
        self, found: Sequence[String], values: Sequence[_Unit], options: Options
    ) -> Iterator[Remark]:
        """Yield messages with too few forms: intervals, and `item_plural` of old versions."""
        if self.plural_keys and needs_more_forms(options):
            for each in values:
                if isinstance(each, _Value) and isinstance(each.message, Intervals):
                    yield Remark(_place(each.string), MORE_FORMS, "plural")
            for string in old_plurals(found):
                if self._is_selected(string, options):
                    yield Remark(_place(string), MORE_FORMS, "plural")

    def _locale(self, found: Sequence[String]) -> tuple[int, int] | None:
        """Return where the language of the texts is."""
        places = ((each.start, each.end) for each in found if each.path == self.locale)
        return next(places, None) if self.locale else None

    def _is_selected(self, string: String, options: Options) -> bool:
        if not self.is_wanted(string.path):
            return False
        return not options.keys or is_selected([str(each) for each in string.path], options.keys)

    def _again(self, string: String, before: _Value, options: Options) -> _Value:
        if before.message is None:
            return self._text(string)
        return self._value(string, options) or _message(string, options)

    def _value(self, string: String, options: Options) -> _Value | None:
        if not self._is_selected(string, options):
            return None
        if self.by_language and has_arms(string.value):
            return _message(string, options)
        if self.plural_keys and (found := intervals(string.value)) is not None:
            return _Value(string, found.segments(_place(string)), found)
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
        yield SingleCode(match[0])
        end = match.end()
    yield text[end:]


def _extraction(
    file: Decoded,
    count: int,
    indices: Sequence[int],
    values: Sequence[_Unit],
    remarks: Sequence[Remark],
    *,
    locale: tuple[int, int] | None,
) -> Extraction:
    ranges = [(each.start, each.end) for each in values]
    if locale is not None:
        ranges = sorted([*ranges, locale])
    fixed = (each.fixed for each in values if each.fixed is not None)
    return Extraction(
        segments=tuple(segment for each in values for segment in each.segments),
        skeleton=skeleton(file.text, ranges, *fixed),
        encoding=file.encoding,
        remarks=tuple(remarks),
        layout=_Layout(file, is_escaped(file.text), count, indices, values, locale),
    )


CODECS: Final[Mapping[str, Codec]] = {
    "json": Json(plural_keys=True),
    "arb": Json("arb", frozenset({".arb"}), _is_resource, locale=("@@locale",)),
    "chrome": Json("chrome", frozenset(), _is_message, _CHROME, by_language=False),
}
