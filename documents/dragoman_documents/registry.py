"""The table of document formats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, NamedTuple

from dragoman_documents.codec import Codec, DocumentError
from dragoman_documents.streamed import StreamedFormat

ENTRY_POINTS: Final = "dragoman.codecs"
"""Group of entry points by which other packages add formats; a name replaces one of ours."""


class _Format(NamedTuple):
    module: str
    """In this package; its `CODECS` has the format."""
    suffixes: frozenset[str] = frozenset()
    """Of file names. Formats without one are known by place or content (`recognition.py`): `.ts` is
    TypeScript's as well as Qt's."""
    version: int = 1
    """Raised when the codec reads or writes a document in another way than before: then files that
    it read are read again, and their outputs are written again."""


_FORMATS: Final = {
    "docx": _Format("office.docx", frozenset({".docx", ".docm", ".dotx", ".dotm"}), version=2),
    "pptx": _Format(
        "office.pptx", frozenset({".pptx", ".pptm", ".potx", ".ppsx", ".ppsm"}), version=2
    ),
    "xliff": _Format(
        "catalogs.xliff.codec", frozenset({".xlf", ".xliff", ".sdlxliff", ".mxliff"}), version=2
    ),
    "android": _Format("catalogs.android.codec", frozenset({"strings.xml"}), version=2),
    "resx": _Format("catalogs.resx", frozenset({".resx", ".resw"}), version=2),
    "qt": _Format("catalogs.qt", version=2),
    "ttml": _Format("subtitles.ttml", frozenset({".ttml", ".dfxp"}), version=2),
    "odt": _Format("office.odf.codec", frozenset({".odt", ".ott"}), version=2),
    "ods": _Format("office.odf.codec", frozenset({".ods", ".ots"}), version=2),
    "odp": _Format("office.odf.codec", frozenset({".odp", ".otp"}), version=2),
    "xlsx": _Format(
        "office.xlsx.codec", frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"}), version=2
    ),
    "srt": _Format("subtitles.srt_vtt", frozenset({".srt"}), version=2),
    "vtt": _Format("subtitles.srt_vtt", frozenset({".vtt"}), version=2),
    "properties": _Format("catalogs.properties.codec", frozenset({".properties"}), version=2),
    "strings": _Format("catalogs.properties.codec", frozenset({".strings"}), version=2),
    "csv": _Format("tables.csv", frozenset({".csv"}), version=2),
    "tsv": _Format("tables.csv", frozenset({".tsv", ".tab"}), version=2),
    "jsonl": _Format("tables.jsonl", frozenset({".jsonl", ".ndjson"}), version=2),
    "po": _Format("catalogs.po.codec", frozenset({".po", ".pot"}), version=2),
    "markdown": _Format(
        "markup.markdown.codec", frozenset({".md", ".markdown", ".mkd", ".rmd", ".qmd"}), version=2
    ),
    "mdx": _Format("markup.markdown.codec", frozenset({".mdx"}), version=2),
    "txt": _Format("plain", frozenset({".txt", ".text"}), version=2),
    "yaml": _Format("catalogs.yaml.codec", frozenset({".yaml", ".yml"}), version=2),
    "epub": _Format("books.epub", frozenset({".epub"}), version=2),
    "html": _Format("markup.html.codec", frozenset({".html", ".htm"}), version=2),
    "xhtml": _Format("markup.html.codec", frozenset({".xhtml", ".xht"}), version=2),
    "json": _Format("catalogs.json.codec", frozenset({".json", ".jsonc"}), version=2),
    "xcstrings": _Format("catalogs.apple.xcstrings", frozenset({".xcstrings"}), version=2),
    "stringsdict": _Format("catalogs.apple.stringsdict", frozenset({".stringsdict"})),
    "arb": _Format("catalogs.json.codec", frozenset({".arb"}), version=2),
    "chrome": _Format("catalogs.json.codec", version=2),
    "ipynb": _Format("markup.notebooks", frozenset({".ipynb"}), version=2),
    "parquet": _Format("tables.parquet.table", frozenset({".parquet", ".parq", ".pq"})),
}
_STREAMED: Final = frozenset({"parquet"})
"""Formats whose module has a `FORMAT` in place of `CODECS`: files of these may be of any size."""


class MissingExtra(Exception):
    """A format whose parser is not installed."""


def formats() -> dict[str, frozenset[str]]:
    """Return the suffixes of each format, of ours and of other packages."""
    return {**{name: each.suffixes for name, each in _FORMATS.items()}, **_others_suffixes()}


def ours() -> frozenset[str]:
    """Return the names of the formats of this package."""
    return frozenset(_FORMATS)


def is_streamed(name: str) -> bool:
    """Return whether a format has no codec, but is one of `streamed_format`."""
    return name in _STREAMED and name not in _others()


def streamed_format(name: str) -> StreamedFormat:
    """Return a format whose files are read some rows at a time. Raises MissingExtra."""
    found: StreamedFormat = _module(name).FORMAT
    return found


@cache
def codec(name: str) -> Codec:
    """Return a codec by its name. Raises MissingExtra and DocumentError (`unsupported_format`)."""
    if (other := _others().get(name)) is not None:
        return other
    if name not in _FORMATS or name in _STREAMED:
        known = ", ".join(sorted(formats().keys() - _STREAMED))
        raise DocumentError("unsupported_format", f"there is no codec {name!r}; known: {known}")
    found: Codec = _module(name).CODECS[name]
    return found


def _module(name: str) -> Any:
    try:
        return import_module(f"{__package__}.{_FORMATS[name].module}")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the format {name} needs the package {error.name}, which is not installed"
        ) from error


def version(name: str) -> int:
    """Return the version of a format's codec; of another package's its `version`, 1 without."""
    if (other := _others().get(name)) is not None:
        return int(getattr(other, "version", 1))
    return _FORMATS[name].version


@cache
def _others() -> dict[str, Codec]:
    return dict(_loaded())


def _loaded() -> Iterator[tuple[str, Codec]]:
    for point in entry_points(group=ENTRY_POINTS):
        yield point.name, point.load()


def _others_suffixes() -> dict[str, frozenset[str]]:
    return {name: each.suffixes for name, each in _others().items()}
