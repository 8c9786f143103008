"""Reader of TMX files (Translation Memory eXchange 1.1 to 1.4) in bounded memory.

The parser is expat. Entities that a file declares are refused, and nothing outside the file is
read, so no file can expand beyond its size or name another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from dragoman_producer.operations.text_files import InvalidFile, unreadable
from dragoman_schemas.languages import UnknownLanguage, normalise

LONGEST_SEGMENT: Final = 128 * 1024
"""Characters of a segment: the text of a whole job."""
MOST_VARIANTS: Final = 256
"""Languages of one unit."""
_DEEPEST: Final = 64
_CHUNK: Final = 64 * 1024
_LARGEST_TOKEN: Final = 4 * 1024 * 1024
"""Bytes of a tag, comment or the like, which the parser holds in memory as a whole."""
_ALL: Final = "*all*"


@dataclass(frozen=True, slots=True)
class TmxUnit:
    """One translation unit: its texts by canonical tag, native codes (`<bpt>`) included."""

    line: int
    source_lang: str | None
    """Canonical tag; None if every language may be the source, or the tag is not a language."""
    texts: dict[str, str]
    number: int = 1
    """Place among the units of the file, from 1."""
    problem: str | None = None
    """Why the first text that `texts` lacks was left out; the other texts can be used."""
    repeated: str | None = None
    """A language with a second, different text; `texts` has the first."""


@dataclass(slots=True)
class _Open:
    """A unit that is being read."""

    line: int
    source_lang: str | None
    texts: dict[str, str] = field(default_factory=dict)
    problem: str | None = None
    repeated: str | None = None
    lang: str | None = None
    parts: list[str] | None = None
    size: int = 0

    def invalid(self, why: str) -> None:
        """Note why a text is left out; the first reason is kept."""
        self.problem = self.problem or why

    def add(self, text: str) -> None:
        """Add the text of a segment."""
        if self.size > LONGEST_SEGMENT:
            self.invalid(f"a segment has more than {LONGEST_SEGMENT:,} characters")
        elif self.lang is not None and len(self.texts) == MOST_VARIANTS:
            self.invalid(f"a unit has more than {MOST_VARIANTS} languages")
        elif self.lang is not None and self.texts.setdefault(self.lang, text) != text:
            self.repeated = self.repeated or self.lang


def read_tmx(path: Path) -> Iterator[TmxUnit]:
    """Yield the units of a file as they are read; an invalid one has a `problem`.

    Raises InvalidFile after the last unit before a place from which the file cannot be read.
    """
    reader = _Reader(path)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield from reader.feed(chunk)
        yield from reader.feed(b"")
    except OSError as error:
        raise unreadable(path, error) from None


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._units: list[TmxUnit] = []
        self._count = 0
        self._unit: _Open | None = None
        self._depth = 0
        self._source_lang: str | None = None
        self._fed = 0
        parser = self._parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped

    def feed(self, chunk: bytes) -> Iterator[TmxUnit]:
        """Parse the next part of the file, b"" at its end; yield the units that are complete."""
        self._units = []
        invalid = self._parsed(chunk)
        yield from self._units
        if invalid is not None:
            raise invalid

    def _parsed(self, chunk: bytes) -> InvalidFile | None:
        """Parse a chunk into `_units`; return why the file cannot be read beyond them."""
        try:
            self._parser.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            why = f"not well-formed XML: {expat.ErrorString(error.code)}"
            return InvalidFile(self._path, error.lineno, why)
        except LookupError as error:  # an encoding that Python does not know
            return InvalidFile(self._path, 1, f"{error}; save the file as UTF-8")
        except InvalidFile as error:
            return error
        self._fed += len(chunk)
        if self._fed - self._parser.CurrentByteIndex > _LARGEST_TOKEN:
            return self._invalid(f"a tag or comment of more than {_LARGEST_TOKEN:,} bytes")
        return None

    def _invalid(self, why: str) -> InvalidFile:
        return InvalidFile(self._path, self._parser.CurrentLineNumber, why)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and name != "tmx":
            raise self._invalid(f"not TMX: the outermost element is <{name[:40]}>")
        if self._depth > _DEEPEST:
            raise self._invalid(f"elements are nested more than {_DEEPEST} deep")
        if name == "header":
            self._source_lang = known_tag(attributes.get("srclang", _ALL))
        elif name == "tu":
            source = attributes.get("srclang")
            lang = self._source_lang if source is None else known_tag(source)
            self._unit = _Open(self._parser.CurrentLineNumber, lang)
        elif name == "tuv" and self._unit is not None:
            _name_language(self._unit, attributes)
        elif name == "seg" and self._unit is not None:
            self._unit.parts, self._unit.size = [], 0

    def _end(self, name: str) -> None:
        self._depth -= 1
        unit = self._unit
        if unit is None:
            return
        if name == "seg" and unit.parts is not None:
            unit.add("".join(unit.parts))
            unit.parts = None
        elif name == "tu":
            self._count += 1
            read = (unit.line, unit.source_lang, unit.texts)
            self._units.append(TmxUnit(*read, self._count, unit.problem, unit.repeated))
            self._unit = None

    def _text(self, text: str) -> None:
        unit = self._unit
        if unit is None or unit.parts is None:
            return
        unit.size += len(text)
        if unit.size <= LONGEST_SEGMENT:
            unit.parts.append(text)

    def _entity(self, name: str, *_rest: Any) -> None:
        raise self._invalid(f"the file declares an entity ({name[:40]}): that is refused")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        if not is_parameter and self._unit is not None:
            self._unit.invalid(f"&{name[:40]}; is not one of the entities of XML")
            self._unit.lang = None


def _name_language(unit: _Open, attributes: dict[str, str]) -> None:
    """Set the language of the unit's next text, None if the text is left out."""
    tag = attributes.get("xml:lang") or attributes.get("lang")
    unit.lang = None
    try:
        unit.lang = None if tag is None else normalise(tag.strip())
    except UnknownLanguage as error:
        unit.invalid(str(error))
    if tag is None:
        unit.invalid("a <tuv> without xml:lang")


def known_tag(name: str) -> str | None:
    """Return the canonical tag of a language's name, None for one that does not exist."""
    try:
        return normalise(name.strip())
    except UnknownLanguage:  # also *all*
        return None
