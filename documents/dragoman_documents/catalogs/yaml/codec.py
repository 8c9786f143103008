"""YAML: string values spliced between untouched bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.catalogs.yaml.plurals import (
    PluralMap,
    has_count,
    is_mapping,
    plural_map,
    run_at,
    runs,
)
from dragoman_documents.catalogs.yaml.scanning import (
    Scalar,
    scalars,
    scalars_and_plurals,
    spelled,
)
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
from dragoman_documents.inline_codes import of_text, rendered
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_documents.values import is_text, place_of

_LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")
_NO_MESSAGE: Final = "its plural keys are translated as they are; check those the language needs"
_Unit = Scalar | PluralMap


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    count: int
    """Number of string values that are selected."""
    indices: Sequence[int]
    """Of those that are text, among them; of plural messages the first."""
    units: Sequence[_Unit]


@dataclass(frozen=True, slots=True)
class Yaml:
    """String values of YAML, in one document or several."""

    name: str = "yaml"
    suffixes: frozenset[str] = frozenset({".yaml", ".yml"})
    by_language: bool = True
    has_targets: bool = False
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return the values that are text. Raises DocumentError (`corrupt`, `encoding`)."""
        file = decoded(data)
        found, plurals = scalars_and_plurals(file.text, options.keys)
        remarks = list[Remark]()
        units = list(_units(found, plurals, file.text, options, remarks))
        indices = [index for index, _ in units]
        return _extraction(file, len(found), indices, [unit for _, unit in units], remarks)

    def extract_like(self, data: bytes, options: Options, before: Extraction) -> Extraction:
        """Return the values of an output that are in the places of its source's segments."""
        layout = layout_of(before, _Layout)
        file = decoded(data)
        found, plurals = scalars_and_plurals(file.text, options.keys)
        units, moved = list[_Unit](), 0
        for index, unit in zip(layout.indices, layout.units, strict=True):
            place = index + moved
            if place >= len(found):
                break
            if isinstance(unit, PluralMap):
                members = run_at(found, place, plurals)
                units.append(unit.read_again(members))
                moved += len(members) - len(unit.members)
            else:
                units.append(found[place])
        if len(found) != layout.count + moved:
            raise DocumentError("corrupt", "the output has other strings than its source")
        return _extraction(file, layout.count, layout.indices, units, ())

    def names(self, data: bytes) -> Iterator[Sequence[str]]:
        """Yield the path of each string value."""
        yield from (each.path for each in scalars(decoded(data).text, ()))

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with translations, quoted or escaped where YAML needs it."""
        layout = layout_of(extraction, _Layout)
        found = _replacements(layout, extraction.segments, texts)
        return layout.file.encoded(replaced(layout.file.text, found))


def _units(
    found: Sequence[Scalar],
    plurals: set[int],
    text: str,
    options: Options,
    remarks: list[Remark],
) -> Iterator[tuple[int, _Unit]]:
    """Yield the values that are text and the plural messages, with their indices."""
    if not plurals:
        yield from ((index, each) for index, each in enumerate(found) if is_text(each.text))
        return
    for index, members in runs(found, plurals):
        plural = is_mapping(members, plurals)
        message = plural_map(members, text, options) if plural else None
        if message is not None:
            yield index, message
            continue
        for place, each in enumerate(members, index):
            if is_text(each.text):
                yield place, each
        if plural and has_count(members):
            remarks.append(Remark(place_of(members[0].path[:-1]), _NO_MESSAGE, "plural"))


def _extraction(
    file: Decoded,
    count: int,
    indices: Sequence[int],
    units: Sequence[_Unit],
    remarks: Sequence[Remark],
) -> Extraction:
    fixed = (each.fixed for each in units if isinstance(each, PluralMap))
    return Extraction(
        segments=tuple(segment for each in units for segment in _segments(each)),
        skeleton=skeleton(file.text, ((each.start, each.end) for each in units), *fixed),
        encoding=file.encoding,
        remarks=tuple(remarks),
        layout=_Layout(file, count, indices, units),
    )


def _segments(unit: _Unit) -> tuple[Segment, ...]:
    if isinstance(unit, PluralMap):
        return unit.segments
    text, codes = of_text(unit.text)
    return (Segment(text, place_of(unit.path) or f"line {unit.line}", "value", codes),)


def _replacements(
    layout: _Layout, segments: Sequence[Segment], texts: Sequence[str | None]
) -> Iterator[Replacement[str]]:
    """Yield what changes; an empty translation leaves the source."""
    given = iter(zip(segments, texts, strict=True))
    for unit in layout.units:
        if isinstance(unit, PluralMap):
            some = [next(given)[1] for _ in unit.forms]
            content = unit.content(layout.file.text, some)
            if content is not None:
                yield Replacement(unit.start, unit.end, content)
            continue
        segment, text = next(given)
        if text is not None and text.strip():
            value = _LINE_BREAK.sub("\n", rendered(text, segment.codes, str)).strip()
            yield Replacement(unit.start, unit.end, spelled(unit, value))


CODECS: Final[Mapping[str, Codec]] = {"yaml": Yaml()}
