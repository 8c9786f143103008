"""The table of document formats."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from dragoman_documents.codec import Codec, DocumentError
from dragoman_documents.recognition import format_by_place

ENTRY_POINTS: Final = "dragoman.codecs"
"""Group of entry points by which other packages add formats; a name replaces one of ours."""

_FORMATS: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "docx": ("office.docx", frozenset({".docx", ".docm", ".dotx", ".dotm"})),
    "pptx": ("office.pptx", frozenset({".pptx", ".pptm", ".potx", ".ppsx", ".ppsm"})),
    "xliff": ("catalogs.xliff", frozenset({".xlf", ".xliff", ".sdlxliff", ".mxliff"})),
    "android": ("catalogs.android.codec", frozenset({"strings.xml"})),
    "resx": ("catalogs.resx", frozenset({".resx", ".resw"})),
    "qt": ("catalogs.qt", frozenset()),
    "ttml": ("subtitles.ttml", frozenset({".ttml", ".dfxp"})),
    "odt": ("office.odf.codec", frozenset({".odt", ".ott"})),
    "ods": ("office.odf.codec", frozenset({".ods", ".ots"})),
    "odp": ("office.odf.codec", frozenset({".odp", ".otp"})),
    "xlsx": ("office.xlsx.codec", frozenset({".xlsx", ".xlsm", ".xltx", ".xltm"})),
    "srt": ("subtitles.codec", frozenset({".srt"})),
    "vtt": ("subtitles.codec", frozenset({".vtt"})),
    "properties": ("catalogs.properties.codec", frozenset({".properties"})),
    "strings": ("catalogs.properties.codec", frozenset({".strings"})),
    "csv": ("tables.csv", frozenset({".csv"})),
    "tsv": ("tables.csv", frozenset({".tsv", ".tab"})),
    "jsonl": ("tables.jsonl", frozenset({".jsonl", ".ndjson"})),
    "po": ("catalogs.po.codec", frozenset({".po", ".pot"})),
    "markdown": ("markup.markdown.codec", frozenset({".md", ".markdown", ".mkd", ".rmd"})),
    "mdx": ("markup.markdown.codec", frozenset({".mdx"})),
    "txt": ("plain", frozenset({".txt", ".text"})),
    "yaml": ("catalogs.yaml.codec", frozenset({".yaml", ".yml"})),
    "epub": ("books.epub", frozenset({".epub"})),
    "html": ("markup.html.codec", frozenset({".html", ".htm"})),
    "xhtml": ("markup.html.codec", frozenset({".xhtml", ".xht"})),
    "json": ("catalogs.json.codec", frozenset({".json", ".jsonc"})),
    "xcstrings": ("catalogs.apple.xcstrings", frozenset({".xcstrings"})),
    "arb": ("catalogs.json.codec", frozenset({".arb"})),
    "chrome": ("catalogs.json.codec", frozenset()),
    "ipynb": ("markup.notebooks", frozenset({".ipynb"})),
}
"""Per format the module in this package, whose `CODECS` has it, and the suffixes of file names.

Formats without one are known by place or content (`recognition.py`): `.ts` is TypeScript's as well
as Qt's.
"""


class MissingExtra(Exception):
    """A format whose parser is not installed."""


def formats() -> dict[str, frozenset[str]]:
    """Return the suffixes of each format, of ours and of other packages."""
    return {**{name: suffixes for name, (_, suffixes) in _FORMATS.items()}, **_others_suffixes()}


def ours() -> frozenset[str]:
    """Return the names of the formats of this package."""
    return frozenset(_FORMATS)


@cache
def codec(name: str) -> Codec:
    """Return a codec by its name. Raises MissingExtra and DocumentError (`unsupported_format`)."""
    if (other := _others().get(name)) is not None:
        return other
    if name not in _FORMATS:
        known = ", ".join(sorted(formats()))
        raise DocumentError("unsupported_format", f"there is no format {name!r}; known: {known}")
    try:
        module = import_module(f"{__package__}.{_FORMATS[name][0]}")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the format {name} needs the package {error.name}: pip install 'dragoman[documents]'"
        ) from error
    found: Codec = module.CODECS[name]
    return found


def format_of(path: Path) -> str | None:
    """Return the format of a file by its place and content, or by its name; else None.

    Of its name the longest suffix that is known decides.
    """
    if (placed := format_by_place(path)) is not None:
        return placed
    lowered = path.name.lower()
    known = ((suffix, name) for name, suffixes in formats().items() for suffix in suffixes)
    found = [(len(suffix), name) for suffix, name in known if lowered.endswith(suffix)]
    return max(found)[1] if found else None


@cache
def _others() -> dict[str, Codec]:
    return dict(_loaded())


def _loaded() -> Iterator[tuple[str, Codec]]:
    for point in entry_points(group=ENTRY_POINTS):
        yield point.name, point.load()


def _others_suffixes() -> dict[str, frozenset[str]]:
    return {name: each.suffixes for name, each in _others().items()}
