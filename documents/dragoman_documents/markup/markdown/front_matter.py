"""Front matter in YAML, TOML, JSON and lines: which values are text, how they are spelled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple

from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.catalogs.yaml.scanning import Scalar, scalars
from dragoman_documents.catalogs.yaml.spelling import spelled as spelled_scalar
from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.markup.markdown.attributes import has_prose
from dragoman_documents.markup.markdown.metadata_lines import LineValue, end_of_lines, line_values
from dragoman_documents.markup.markdown.toml_strings import TomlString, strings
from dragoman_documents.markup.markdown.toml_strings import spelled as spelled_string
from dragoman_documents.markup.sites import site
from dragoman_documents.values import is_text

_FENCE: Final = re.compile(rb"(?:[ \t]*[\r\n])*+(---|\+\+\+)[ \t]*(?:\r\n|\r|\n)")
_ENDS: Final = {
    b"---": re.compile(rb"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?=[\r\n]|\Z)"),
    b"+++": re.compile(rb"(?<=[\r\n])\+\+\+[ \t]*(?=[\r\n]|\Z)"),
}
_KEY: Final = {
    b"---": re.compile(rb"(?:\s|#[^\r\n]*)*+(?:\{|[^\s\[>|-][^\r\n]*?:(?:\s|\Z)|\Z)"),
    b"+++": re.compile(rb"(?:\s|#[^\r\n]*)*+(?:\[|[^\s=][^\r\n]*?=|\Z)"),
}
_JSON: Final = re.compile(rb"\{\s*\"")
_LINES: Final = re.compile(rb"[ ]{0,3}[A-Za-z0-9_-]+:|\.\.[ ]|<!--[ \t]*\r?\n\.\.[ ]")
_NO_TEXT: Final = re.compile(r"_|authors?\Z|\d+\Z")
"""Keys of names and comments, and items of lists, which readers hardly see."""
_BREAKS: Final = re.compile(r"(?<![ \t])[ \t]*[\r\n]+[ \t]*")
_BLANKS: Final = " \t\r\n"

Syntax = Literal["yaml", "toml", "lines"]


class FrontMatter(NamedTuple):
    """Front matter at `[start:end)` of a document in UTF-8, without its fences."""

    start: int
    end: int
    syntax: Syntax
    behind: int
    """Where its last fence ends."""


class Value(NamedTuple):
    """A text of front matter at `[start:end)` of the document in UTF-8."""

    start: int
    end: int
    text: str
    source: Scalar | TomlString | LineValue

    def spelled(self, text: str) -> str:
        """Return a translation as front matter spells it."""
        if "\n" not in self.text:
            text = _BREAKS.sub(" ", text)
        text = text.strip(_BLANKS)
        if isinstance(self.source, TomlString):
            return spelled_string(self.source, text)
        if isinstance(self.source, LineValue):
            return self.source.spelled(text)
        return spelled_scalar(self.source, text)


def front_matter(source: bytes, name: str | None) -> FrontMatter | None:
    """Return the front matter of a site's document: it begins it, and its first line is a key."""
    opened = _FENCE.match(source)
    if opened is None:
        return _json(source) or _lines(source, name)
    closed = _ENDS[opened[1]].search(source, opened.end())
    if closed is None or not _KEY[opened[1]].match(source[opened.end() : closed.start()]):
        return None
    syntax: Syntax = "toml" if opened[1] == b"+++" else "yaml"
    return FrontMatter(opened.end(), closed.start(), syntax, closed.end())


def _json(source: bytes) -> FrontMatter | None:
    """Return the object that begins a document, as Hugo reads it; YAML can hold it."""
    if _JSON.match(source) is None:
        return None
    text = source.decode()
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if text[end:].partition("\n")[0].strip():
        return None  # the beginning of a sentence
    behind = len(text[:end].encode())
    return FrontMatter(0, behind, "yaml", behind)


def _lines(source: bytes, name: str | None) -> FrontMatter | None:
    """Return the metadata in lines that begins a document."""
    if _LINES.match(source) is None:
        return None
    text = source.decode()
    end = len(text[: end_of_lines(text, name)].encode())
    return FrontMatter(0, end, "lines", end) if end else None


class Values(NamedTuple):
    """The texts of front matter."""

    chosen: list[Value]
    left: list[int]
    """Where values with several words stand that no key chose."""


def values(source: bytes, found: FrontMatter, options: Options) -> Values:
    """Return the texts of front matter. Raises DocumentError if it cannot be read.

    The keys are those of the site and of `Options.keys`; a list has the texts of its items.
    """
    text = source[found.start : found.end].decode()
    keys = (*site(options.site).metadata, *options.keys)
    if found.syntax == "lines":
        keys = tuple(each.lower() for each in keys)
    done, end, made = 0, found.start, Values([], [])
    for each in _all(text, found):
        start = end + len(text[done : each.start].encode())
        end = start + len(text[each.start : each.end].encode())
        done = each.end
        if _is_chosen(each, keys):
            made.chosen.append(Value(start, end, each.text, each))
        elif not any(map(_NO_TEXT.match, each.path[-1:])) and has_prose(each.text, least=3):
            made.left.append(start)
    return made


def paths(source: bytes, found: FrontMatter) -> Iterator[Sequence[str]]:
    """Yield the path of each string in front matter, and of its list if it is an item of one.

    Nothing in front matter that cannot be read.
    """
    text = source[found.start : found.end].decode()
    with suppress(DocumentError):
        for each in _all(text, found):
            yield each.path
            if len(each.path) > 1 and each.path[-1].isdigit():
                yield each.path[:-1]


def _all(text: str, found: FrontMatter) -> Iterable[Scalar | TomlString | LineValue]:
    if found.syntax == "lines":
        return line_values(text)
    return strings(text) if found.syntax == "toml" else scalars(text, ())


def _is_chosen(value: Scalar | TomlString | LineValue, keys: tuple[str, ...]) -> bool:
    """Return whether a value is text, and is that of a chosen key or an item of its list."""
    path = value.path
    is_item = len(path) > 1 and path[-1].isdigit() and is_selected(path[:-1], keys)
    return (is_item or is_selected(path, keys)) and is_text(value.text)
