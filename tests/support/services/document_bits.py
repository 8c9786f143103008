"""Reads a document's progress as a program in any language would: docs/reference/results.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BITS_OF_A_FIELD = 8_192


def indexes(fields: Mapping[bytes, bytes]) -> set[int]:
    """Return the indexes whose bits are set in the fields of a hash of bits."""
    return {
        int(field) * _BITS_OF_A_FIELD + 8 * place + bit
        for field, bits in fields.items()
        for place, byte in enumerate(bits)
        for bit in range(8)
        if byte & 0x80 >> bit
    }


def progress(client: Any, document_id: str) -> tuple[set[int], set[int]]:
    """Return the indexes of the jobs that have ended, and of the completed ones."""
    key = f"dragoman:document:{document_id}:bits"
    return indexes(client.hgetall(f"{key}:ended")), indexes(client.hgetall(f"{key}:completed"))
