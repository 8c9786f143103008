"""The strings of YAML, at their places in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.catalogs.yaml.events import events
from dragoman_documents.catalogs.yaml.scalar import (
    STRING,
    WHITE_SPACE,
    PluralKey,
    Scalar,
    is_string,
)
from dragoman_documents.catalogs.yaml.spelling import spelled
from dragoman_documents.codec import DocumentError

__all__ = ["PluralKey", "Scalar", "scalars", "scalars_and_plurals", "spelled"]

_CATEGORIES: Final = frozenset({"zero", "one", "two", "few", "many", "other"})
_PROPERTIES: Final = re.compile(r"(?:[&!][^\s]*\s+)*")
_HEADER: Final = re.compile(r"[|>][^\r\n]*(?:\r\n|\r|\n)")
_LEADING: Final = re.compile(r"[ \t]*")
_BRACKET: Final = re.compile(r"[\[\]{}]")
_DEEPEST: Final = 128
"""Levels: the path of a value takes time and memory in their number."""
_MOST_BRACKETS: Final = 1_000
"""Brackets that may be open, also in texts: libyaml takes time in the square of their number."""


def scalars(text: str, keys: Sequence[str]) -> Iterator[Scalar]:
    """Yield the selected string values. Raises DocumentError (`corrupt`, `bomb`)."""
    return _scalars(_Reader(text, keys))


def scalars_and_plurals(text: str, keys: Sequence[str]) -> tuple[list[Scalar], set[int]]:
    """Return the selected string values, and the mappings whose keys are plural categories.

    All values of such a mapping are among them, as neighbours; it is known by its start.
    Raises DocumentError.
    """
    reader = _Reader(text, keys)
    return list(_scalars(reader)), reader.plurals


def _scalars(reader: _Reader) -> Iterator[Scalar]:
    if _depth(reader.text) > _MOST_BRACKETS:
        raise DocumentError("bomb", f"more than {_MOST_BRACKETS:,} brackets are open at once")
    try:
        for event in events(reader.text):
            if isinstance(event, yaml.ScalarEvent):
                if (scalar := reader.scalar(event)) is not None:
                    yield scalar
            else:
                reader.read(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}" if mark is not None else ""
        raise DocumentError("corrupt", f"it is not valid YAML{place}; correct it") from None


def _depth(text: str) -> int:
    """Return how many brackets are open at most, also those in texts."""
    deepest = depth = 0
    for bracket in _BRACKET.findall(text):
        depth = max(depth + (1 if bracket in "[{" else -1), 0)
        deepest = max(deepest, depth)
    return deepest


@dataclass(slots=True)
class _Level:
    """A collection that is open: a sequence counts its items, a mapping keeps its last key."""

    path: tuple[str, ...]
    mapping: bool
    start: int = 0
    key: str | None = None
    count: int = 0
    plural: bool = False
    """Whether all keys so far are plural categories."""
    flow: bool = False
    members: int = 0
    """String values that are still missing for its plural keys."""
    member: PluralKey | None = None

    @property
    def awaits_key(self) -> bool:
        return self.mapping and self.key is None

    def take_key(self, event: Any) -> None:
        """Take a scalar that is a key."""
        self.key = event.value
        if self.plural:
            self.plural = event.value in _CATEGORIES and event.anchor is None and not event.tag
            self.members += 1
            place = (event.start_mark.index, event.end_mark.index)
            self.member = PluralKey(self.start, *place, self.flow)

    def step(self, key: str) -> None:
        """Note that a node has ended: a key, its value, or an item."""
        if not self.mapping:
            self.count += 1
        elif self.key is None:
            self.key, self.plural = key, False
        else:
            self.key = None

    def inside(self) -> tuple[str, ...]:
        """Return the path of the node that comes next."""
        return (*self.path, (self.key or "") if self.mapping else str(self.count))


@dataclass(slots=True)
class _Reader:
    text: str
    keys: Sequence[str]
    plurals: set[int] = field(default_factory=set)
    _levels: list[_Level] = field(default_factory=list)

    def read(self, event: Any) -> None:
        """Read an event that is no scalar."""
        if isinstance(event, yaml.CollectionEndEvent):
            level = self._levels.pop()
            if level.plural and level.member is not None and not level.members:
                self.plurals.add(level.start)
            self._step("")
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.AliasEvent):
            self._step("")

    def scalar(self, event: Any) -> Scalar | None:
        """Return the value of an event if it is a string and selected."""
        level = self._levels[-1] if self._levels else None
        if level is not None and level.awaits_key:
            level.take_key(event)
            return None
        scalar = self._scalar(event)
        if scalar is not None and level is not None and level.plural:
            level.members -= 1
            scalar = scalar._replace(member=level.member)
        self._step(event.value)
        return scalar

    def _open(self, event: Any) -> None:
        if len(self._levels) == _DEEPEST:
            line = event.start_mark.line + 1
            raise DocumentError("bomb", f"line {line} is nested more than {_DEEPEST} times")
        mapping = isinstance(event, yaml.MappingStartEvent)
        start = event.start_mark.index
        level = _Level(self._path(), mapping, start, plural=mapping, flow=event.flow_style)
        self._levels.append(level)

    def _step(self, key: str) -> None:
        if self._levels:
            self._levels[-1].step(key)

    def _path(self) -> tuple[str, ...]:
        return self._levels[-1].inside() if self._levels else ()

    def _scalar(self, event: Any) -> Scalar | None:
        plain = event.style in (None, "")
        if event.tag not in (None, "!", STRING) or not event.value.strip():
            return None
        if plain and not is_string(event.value):
            return None
        path = self._path()
        if not is_selected(path, self.keys):
            return None
        start, end = event.start_mark.index, event.end_mark.index
        if self.text.startswith(("&", "!"), start):
            properties = _PROPERTIES.match(self.text, start, end)
            start = properties.end() if properties else start
        flow = bool(self._levels) and self._levels[-1].flow
        return _located(self.text, start, end, event, path, flow=flow)


def _located(
    text: str, start: int, end: int, event: Any, path: tuple[str, ...], *, flow: bool
) -> Scalar | None:
    """Return the scalar; None if it is not where the parser says."""
    line, value = event.start_mark.line + 1, event.value.strip()
    if event.style in ("|", ">"):
        return _block_at(text, start, end, event, path)
    raw = text[start:end]
    if event.style in ("'", '"'):
        if len(raw) < 2 or raw[0] != event.style or raw[-1] != event.style:
            return None
        return Scalar(start, end, value, path, line, event.style, raw=raw, flow=flow)
    end -= len(raw) - len(raw.rstrip(WHITE_SPACE))
    if raw != event.value and text[start:end].split() != event.value.split():
        return None
    return Scalar(start, end, value, path, line, raw=text[start:end], flow=flow)


def _block_at(text: str, start: int, end: int, event: Any, path: tuple[str, ...]) -> Scalar | None:
    """Return the content of a block between its first and its last visible character."""
    header = _HEADER.match(text, start, end)
    if header is None:
        return None
    raw = text[header.end() : end]
    first = header.end() + len(raw) - len(raw.lstrip())
    last = header.end() + len(raw.rstrip(WHITE_SPACE))
    visible = len(raw) - len(raw.lstrip(WHITE_SPACE))
    begin = max(raw.rfind(end, 0, visible) for end in "\r\n") + 1
    lead = len(event.value) - len(event.value.lstrip("\n"))
    own = _LEADING.match(event.value, lead)
    columns = visible - begin - (len(own[0]) if own else 0)
    newline = "\r\n" if header[0].endswith("\r\n") else header[0][-1]
    gap = newline + " " * columns
    line = event.start_mark.line + 1
    head = text[start:first]
    value, raw = event.value.strip(), text[start:last]
    return Scalar(start, last, value, path, line, event.style, head, gap, raw=raw)
