"""Edits of a review, as the page lets a person download them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

SCHEMA: Final = 1
_MOST_BYTES: Final = 256 * 1024 * 1024


class BadEdits(Exception):
    """A file that does not hold edits of a review; its message says what and where."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A person's text for a segment, or their approval of the one it has."""

    document: str
    segment: int
    digest: str
    """Of the source text, see `page.digest`: an edit for another text is not applied."""
    text: str
    approved: bool


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of one page."""

    run: str
    target_lang: str
    edits: tuple[Edit, ...]


def parse(content: bytes) -> Edits:
    """Return the edits in a downloaded file. Raises BadEdits."""
    if len(content) > _MOST_BYTES:
        raise BadEdits(f"it is larger than {_MOST_BYTES >> 20} MiB; give edits of a review page")
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        raise BadEdits("it is not JSON; give a file that a review page downloaded") from None
    if not isinstance(read, dict) or read.get("schema") != SCHEMA:
        raise BadEdits(f"it has no `schema` {SCHEMA}; give a file that a review page downloaded")
    given = read.get("edits")
    if not isinstance(given, list):
        raise BadEdits("`edits` is not a list")
    edits = tuple(_edit(each, number) for number, each in enumerate(given, start=1))
    return Edits(_text(read, "run", "the file"), _text(read, "target_lang", "the file"), edits)


def _edit(given: Any, number: int) -> Edit:
    where = f"edit {number}"
    if not isinstance(given, dict):
        raise BadEdits(f"{where} is not an object")
    segment = given.get("segment")
    if not isinstance(segment, int) or isinstance(segment, bool) or segment < 0:
        raise BadEdits(f"{where}: `segment` is not a number of 0 or more")
    texts = (_text(given, name, where) for name in ("document", "digest", "text"))
    document, digest, text = texts
    return Edit(document, segment, digest, text, given.get("approved") is True)


def _text(given: dict[str, Any], name: str, where: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or _has_lone_surrogate(value):
        raise BadEdits(f"{where}: `{name}` is not a text")
    return value


def _has_lone_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
