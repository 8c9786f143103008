"""Limits of members per object, checked before each member is validated.

Validation reports every invalid member. A record of 1 MB can hold a hundred thousand, which would
take seconds. Lists need no such check: validation stops at their first invalid entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

MAX_FIELDS: Final = 64
"""Of one object: more than any valid one has, so that unknown names are still reported."""

MIN_CHECKED_BYTES: Final = 6 * MAX_FIELDS
"""Size below which no record holds too many members: the shortest member is `"a":1,`."""

MAX_ITEMS: Final = 512
MAX_TERMS: Final = 200
MAX_METADATA: Final = 64

_OBJECTS: Final[Mapping[str, int]] = {
    "sampling": MAX_FIELDS,
    "quality": MAX_FIELDS,
    "document": MAX_FIELDS,
    "text": MAX_FIELDS,
    "glossary": MAX_TERMS,
    "metadata": MAX_METADATA,
}


def too_many_members(fields: Mapping[str, object]) -> str | None:
    """Return one line about the first object of a job with too many members, or None."""
    if len(fields) > MAX_FIELDS:
        return f"has {len(fields)} fields, at most {MAX_FIELDS} are read"
    for path, value, limit in _objects(fields):
        if len(value) > limit:
            return f"{path}: has {len(value)} items, at most {limit} are allowed"
    return None


def _objects(fields: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object], int]]:
    for name, limit in _OBJECTS.items():
        value = fields.get(name)
        if isinstance(value, dict):
            yield name, value, limit
    texts = fields.get("text")
    if isinstance(texts, list):
        for number, item in enumerate(texts[:MAX_ITEMS]):
            if isinstance(item, dict):
                yield f"text[{number}]", item, MAX_FIELDS
