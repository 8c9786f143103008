"""Front matter in YAML and TOML: which of its values are text, and how translations are spelled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman_documents.catalogs.key_patterns import is_selected
from dragoman_documents.catalogs.yaml.scanning import Scalar, scalars
from dragoman_documents.catalogs.yaml.spelling import spelled as spelled_scalar
from dragoman_documents.codec import Options
from dragoman_documents.markup.markdown.toml_strings import TomlString, strings
from dragoman_documents.markup.markdown.toml_strings import spelled as spelled_string
from dragoman_documents.markup.sites import site
from dragoman_documents.values import is_text

_FENCE: Final = re.compile(rb"\s*(---|\+\+\+)[ \t]*(?:\r\n|\r|\n)")
_ENDS: Final = {
    b"---": re.compile(rb"(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?=[\r\n]|\Z)"),
    b"+++": re.compile(rb"(?<=[\r\n])\+\+\+[ \t]*(?=[\r\n]|\Z)"),
}
_KEY: Final = {
    b"---": re.compile(rb"(?:\s|#[^\r\n]*)*+(?:\{|[^\s\[>|-][^\r\n]*?:(?:\s|\Z)|\Z)"),
    b"+++": re.compile(rb"(?:\s|#[^\r\n]*)*+(?:\[|[^\s=][^\r\n]*?=|\Z)"),
}
_BREAKS: Final = re.compile(r"[ \t]*[\r\n]+[ \t]*")
_BLANKS: Final = " \t\r\n"


class FrontMatter(NamedTuple):
    """Front matter at `[start:end)` of a document in UTF-8, without its fences."""

    start: int
    end: int
    is_toml: bool
    behind: int
    """Where its last fence ends."""


class Value(NamedTuple):
    """A text of front matter at `[start:end)` of the document in UTF-8."""

    start: int
    end: int
    text: str
    source: Scalar | TomlString

    def spelled(self, text: str) -> str:
        """Return the YAML or TOML of a translation."""
        if "\n" not in self.text:
            text = _BREAKS.sub(" ", text)
        text = text.strip(_BLANKS)
        if isinstance(self.source, TomlString):
            return spelled_string(self.source, text)
        return spelled_scalar(self.source, text)


def front_matter(source: bytes) -> FrontMatter | None:
    """Return the front matter of a document: it begins it, and its first line is a key."""
    opened = _FENCE.match(source)
    if opened is None:
        return None
    closed = _ENDS[opened[1]].search(source, opened.end())
    if closed is None or not _KEY[opened[1]].match(source[opened.end() : closed.start()]):
        return None
    return FrontMatter(opened.end(), closed.start(), opened[1] == b"+++", closed.end())


def values(source: bytes, found: FrontMatter, options: Options) -> list[Value]:
    """Return the texts of front matter. Raises DocumentError if it cannot be read.

    The keys are those of the site and of `Options.keys`; a list has the texts of its items.
    """
    text = source[found.start : found.end].decode()
    keys = (*site(options.site).metadata, *options.keys)
    chosen = [each for each in _all(text, keys, found) if _is_chosen(each, keys)]
    done, end, made = 0, found.start, list[Value]()
    for each in chosen:
        start = end + len(text[done : each.start].encode())
        end = start + len(text[each.start : each.end].encode())
        done = each.end
        made.append(Value(start, end, each.text, each))
    return made


def _all(
    text: str, keys: tuple[str, ...], found: FrontMatter
) -> Iterator[Scalar] | list[TomlString]:
    if found.is_toml:
        return strings(text)
    return scalars(text, (*keys, *(f"{key}.*" for key in keys)))


def _is_chosen(value: Scalar | TomlString, keys: tuple[str, ...]) -> bool:
    """Return whether a value is text, and is that of a chosen key or an item of its list."""
    path = value.path
    is_item = len(path) > 1 and path[-1].isdigit() and is_selected(path[:-1], keys)
    return (is_item or is_selected(path, keys)) and is_text(value.text)
