"""Options that a user gives for a document: those that its format lacks, and names that it lacks.

Each is one remark per document, as nothing else would show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman_documents import registry
from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.codec import Codec, Naming, Options, Remark, Segment
from dragoman_documents.streamed import StreamedFormat
from dragoman_schemas.nearest import did_you_mean

_TABLES: Final = frozenset({"csv", "tsv", "parquet"})
FORMATS: Final = {
    "columns": ("--column", _TABLES),
    "in_place": ("--in-place", _TABLES),
    "fields": ("--field", frozenset({"jsonl"})),
    "ids": ("--id", _TABLES | {"jsonl"}),
    "add": ("--add", _TABLES | {"jsonl"}),
    "keys": ("--key", frozenset({"json", "arb", "chrome", "yaml", "markdown", "mdx"})),
    "headings": (
        "--context headings",
        frozenset(
            {"markdown", "mdx", "html", "xhtml", "epub", "ipynb", "docx", "odt", "pptx"},
        ),
    ),
}
"""Per member of Options its option and the formats that have it."""
_OPTIONS: Final = ("columns", "fields", "keys", "ids")
_MOST: Final = 20
"""Names that are kept of a document, each of at most so many characters."""
_LONGEST: Final = 100


class ChosenNames:
    """The names that a user gave for one document, and those that it has instead."""

    def __init__(self, codec: Codec, options: Options) -> None:
        self._codec = codec
        self._missing = list(_given(codec, options))
        self._names: dict[str, None] = {}

    def look(self, data: bytes, segments: Sequence[Segment]) -> None:
        """Look for the names in the document, or in a part of it. Raises DocumentError.

        Most are found by the places of the segments, without reading the part again.
        """
        self._drop(_paths(segments))
        if self._missing and isinstance(self._codec, Naming):
            paths = dict.fromkeys(tuple(path) for path in self._codec.names(data))
            self._drop(paths)
            self._names |= dict.fromkeys(map(_shown, paths))

    def _drop(self, paths: Iterable[Sequence[str]]) -> None:
        if self._missing:
            known = list(paths)
            self._missing = [each for each in self._missing if not _is_in(each, known)]

    def unmatched(self) -> dict[str, Any] | None:
        """Return the names that nothing has, by option, and names that exist; None if all match."""
        if not self._missing:
            return None
        return {
            "missing": [list(each) for each in self._missing],
            "names": list(self._names)[:_MOST],
        }

    def remarks(self) -> Iterator[Remark]:
        """Yield one remark for all names that nothing has."""
        return nothing_named(self._missing)


def nothing_named(missing: Sequence[tuple[str, str]]) -> Iterator[Remark]:
    """Yield one remark for all names that nothing has, each with its member of Options."""
    if missing:
        said = ", ".join(f"{FORMATS[option][0]} {name}" for option, name in missing)
        yield Remark("", f"nothing in it is named by {said}", "unmatched", len(missing))


def _given(codec: Codec, options: Options) -> Iterator[tuple[str, str]]:
    for option in _OPTIONS:
        if codec.name in FORMATS[option][1] and codec.name in registry.ours():
            yield from ((option, name) for name in getattr(options, option))


def _paths(segments: Iterable[Segment]) -> Iterator[list[str]]:
    """Yield the paths that places of segments show: `line 3, a.b`, `a.b`."""
    places = dict.fromkeys(each.place.rpartition(", ")[2] for each in segments)
    yield from (each.split(".") for each in places)


def _is_in(given: tuple[str, str], paths: Iterable[Sequence[str]]) -> bool:
    option, name = given
    if option == "keys":
        return any(is_selected(path, (name,)) for path in paths)
    wanted = ([name], name.split(".")) if option == "ids" else ([name],)
    wanted = (name.split("."),) if option == "fields" else wanted
    return any(list(path) in wanted for path in paths)


def _shown(path: Sequence[str]) -> str:
    return ".".join("*" if len(path) > 1 and step.isdecimal() else step for step in path)[:_LONGEST]


class ReadDocument(NamedTuple):
    """A document of a run as it was read."""

    path: str
    format: str
    segments: int
    refused: bool
    chosen: Mapping[str, Any] | None
    """`ChosenNames.unmatched`."""

    def lacks(self, option: str, name: str) -> bool:
        """Return whether nothing in the document has a name."""
        return self.chosen is not None and [option, name] in self.chosen["missing"]


def in_no_document(readings: Iterable[ReadDocument], options: object) -> str | None:
    """Return what to tell the user of a name that no document of a run has; None if all have one.

    Documents that could not be read show nothing, nor do empty ones and formats of other packages.
    """
    waiting = {
        (option, name): _Search(option, name)
        for option in _OPTIONS
        for name in getattr(options, option)
    }
    any_read = False
    for reading in readings:
        any_read = True
        for key in [key for key, search in waiting.items() if search.ends_with(reading)]:
            del waiting[key]
        if not waiting:
            return None
    return next(filter(None, (each.told() for each in waiting.values() if any_read)), None)


class _Search:
    """The search for one name in the documents of a run."""

    def __init__(self, option: str, name: str) -> None:
        self._option = option
        self._name = name
        self._lacking: ReadDocument | None = None
        """One that has other names, if there is one."""
        self._empty = False

    def ends_with(self, reading: ReadDocument) -> bool:
        """Look at a document; return whether the name need not be searched further."""
        if reading.format not in registry.ours():
            return True
        if reading.format not in FORMATS[self._option][1]:
            return False
        if reading.refused:
            self._empty = True
            return False
        if not reading.lacks(self._option, self._name):
            return True
        if reading.segments or (reading.chosen and reading.chosen["names"]):
            if self._lacking is None or not self._names_of(self._lacking):
                self._lacking = reading
        else:
            self._empty = True
        return False

    def told(self) -> str | None:
        """Return what to tell of a name that was not found; None if nothing could be judged."""
        option, formats = FORMATS[self._option]
        if self._lacking is None:
            why = f"no document of this run is {' or '.join(sorted(formats))}"
            return None if self._empty else f"{option} {self._name}: {why}; leave it out"
        names = self._names_of(self._lacking)
        hint = did_you_mean(self._name, names)
        found = ", ".join(names) or "no names"
        where = f"{self._lacking.path} has {found}"
        return f"{option} {self._name}: nothing in any document has this name{hint}; {where}"

    def _names_of(self, reading: ReadDocument) -> Sequence[str]:
        return reading.chosen["names"] if reading.chosen else ()


def ignored(codec: Codec | StreamedFormat, options: Options) -> Iterator[Remark]:
    """Yield one remark for all options that were given and that the format does not have."""
    found = list(_ignored(codec, options))
    if found:
        detail = f"{', '.join(found)}: {codec.name} has no such option; ignored"
        yield Remark("", detail, "option", len(found))


def _ignored(codec: Codec | StreamedFormat, options: Options) -> Iterator[str]:
    """Yield the options; of formats of other packages only what their codecs say."""
    if options.bilingual and not codec.can_double:
        yield "--bilingual"
    if codec.name not in registry.ours():
        return
    for name, (option, formats) in FORMATS.items():
        if getattr(options, name) and codec.name not in formats:
            yield option
