"""What has far too many members is refused by their number, before each of them is validated.

Validation reports every wrong member, and a record of a megabyte can hold a hundred thousand:
they would take it seconds. Lists need no such check; validation stops at their first wrong entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

MOST_FIELDS: Final = 64
"""Of one object: more than any has, and room to name the first unknown ones."""

SMALLEST_CROWD: Final = 6 * MOST_FIELDS
"""Bytes below which no record holds too many members: the shortest is `"a":1,`."""

MOST_ITEMS: Final = 512
MOST_TERMS: Final = 200
MOST_METADATA: Final = 64

_OBJECTS: Final[Mapping[str, int]] = {
    "sampling": MOST_FIELDS,
    "quality": MOST_FIELDS,
    "document": MOST_FIELDS,
    "text": MOST_FIELDS,
    "glossary": MOST_TERMS,
    "metadata": MOST_METADATA,
}


def crowd(fields: Mapping[str, object]) -> str | None:
    """One line about the first object of a job that has too many members, None if none has."""
    if len(fields) > MOST_FIELDS:
        return f"has {len(fields)} fields, at most {MOST_FIELDS} are read"
    for path, value, most in _objects(fields):
        if len(value) > most:
            return f"{path}: has {len(value)} items, at most {most} are allowed"
    return None


def _objects(fields: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object], int]]:
    for name, most in _OBJECTS.items():
        value = fields.get(name)
        if isinstance(value, dict):
            yield name, value, most
    texts = fields.get("text")
    if isinstance(texts, list):
        for number, item in enumerate(texts[:MOST_ITEMS]):
            if isinstance(item, dict):
                yield f"text[{number}]", item, MOST_FIELDS
