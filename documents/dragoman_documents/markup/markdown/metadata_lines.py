"""Metadata in lines at the start of a document: of MultiMarkdown, as MkDocs and Pelican read it,
and of Nikola."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman_documents.markup.markdown.titles import decoded, spelled_title
from dragoman_documents.markup.sites import site

_VALUE: Final = r"(?P<value>[^\r\n]*+(?:(?:\r\n|\r|\n)(?:[ ]{4}|\t)[ \t]*[^\s][^\r\n]*+)*+)"
_LINE: Final = re.compile(rf"[ ]{{0,3}}(?P<key>[A-Za-z0-9_-]+):[ \t]*{_VALUE}(?:\r\n|\r|\n|\Z)")
_NIKOLA: Final = re.compile(
    r"\.\.[ ](?P<key>[A-Za-z0-9_-]+):[ \t]*(?P<value>[^\r\n]*+)(?:\r\n|\r|\n|\Z)"
)
_COMMENT: Final = re.compile(r"<!--[ \t]*(?:\r\n|\r|\n)")
_BLANK: Final = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_KNOWN: Final = frozenset({
    "title", "date", "slug", "author", "authors", "tags", "category", "template", "summary",
})  # fmt: skip
_LEAST: Final = 2
"""Lines that are metadata where no site says so."""


class LineValue(NamedTuple):
    """A value at `[start:end)` of metadata in lines."""

    start: int
    end: int
    text: str
    path: tuple[str, ...]
    """Its key in lower case: keys are compared so."""
    raw: str

    def spelled(self, text: str) -> str:
        """Return a translation with the line breaks of the source."""
        return spelled_title(text, self.raw, "plain")


def end_of_lines(text: str, name: str | None) -> int:
    """Return where the metadata in lines of a document of a site ends; 0 if it has none.

    A site of Python-Markdown takes any line `Name: value` at the start for metadata.
    """
    if name is not None and site(name).dialect == "python-markdown":
        return max((each.end() for each in _matches(text)), default=0)
    found = list(_matches(text))
    if len(found) < _LEAST or not any(each["key"].lower() in _KNOWN for each in found):
        return 0
    end = found[-1].end()
    if found[0].re is not _NIKOLA and (name is not None or not _BLANK.match(text, end)):
        return 0
    return end


def line_values(text: str) -> Iterator[LineValue]:
    """Yield the values of metadata in lines."""
    for each in _matches(text):
        end = each.start("value") + len(each["value"].rstrip(" \t"))
        raw = each["value"].strip()
        key = each["key"].lower()
        yield LineValue(end - len(raw), end, decoded(raw, "plain"), (key,), raw)


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield the lines of metadata at the start of a text, each with those that continue it."""
    comment = _COMMENT.match(text)
    place = comment.end() if comment else 0
    pattern = _NIKOLA if comment or text.startswith("..") else _LINE
    while place < len(text) and (found := pattern.match(text, place)) is not None:
        yield found
        place = found.end()
