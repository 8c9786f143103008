"""Parts of an invalid job that its result keeps: places of the items, metadata, TTL, document.

Each part is read by itself and is None or empty where it is invalid. Nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from dragoman_schemas.jobs import (
    MAX_ITEM_ID,
    MAX_ITEMS,
    MAX_METADATA_BYTES,
    MAX_METADATA_ENTRIES,
    DocumentRef,
    Ttl,
)

Fields = Mapping[str, object]
_TTL: Final = TypeAdapter[int](Ttl, config=ConfigDict(strict=True))


def readable_items(fields: Fields) -> Iterator[tuple[str | None, str]]:
    """Yield each item's id and text, '' for an unreadable text; nothing above the limit."""
    text = fields.get("text")
    forms = [text] if isinstance(text, str | dict) else text
    if not isinstance(forms, list) or len(forms) > MAX_ITEMS:
        return
    for form in forms:
        item = form if isinstance(form, dict) else {"text": form}
        item_id, item_text = item.get("id"), item.get("text")
        known = isinstance(item_id, str) and len(item_id) <= MAX_ITEM_ID
        yield item_id if known else None, item_text if isinstance(item_text, str) else ""


def readable_ttl_s(fields: Fields) -> int | None:
    """Return the TTL of the result."""
    try:
        return _TTL.validate_python(fields.get("ttl_s"))
    except ValidationError:
        return None


def readable_document(fields: Fields) -> DocumentRef | None:
    """Return the place in a document, whose progress would otherwise never be complete."""
    try:
        return DocumentRef.model_validate(fields.get("document"))
    except ValidationError:
        return None


def readable_metadata(fields: Fields) -> dict[str, str] | None:
    """Return the metadata, by which producers assign results."""
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict) or len(metadata) > MAX_METADATA_ENTRIES:
        return None
    if not all(isinstance(value, str) for value in metadata.values()):
        return None
    size = sum(len(f"{name}{value}".encode()) for name, value in metadata.items())
    return metadata if size <= MAX_METADATA_BYTES else None
