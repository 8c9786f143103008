"""How many jobs a document has, as far as Redis tells."""

from __future__ import annotations

from typing import Final

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.store import JobStore
from dragoman_schemas.wire import decode_result

_AT_ONCE: Final = 500
_BITS: Final = 13
"""A field of the bits of a document has 8,192 of them (contract, Redis)."""


async def document_total(settings: DragomanSettings, document_id: str) -> int:
    """Return the number of jobs that a result of the document names, else that keys show.

    Raises StoreUnreachable and StoreRefused.
    """
    store = JobStore(settings.redis, connect_timeout_s=settings.connect_timeout_s)
    try:
        ended = await store.ended_bits(document_id)
        least = _highest(ended) + 1
        first = max(0, least - _AT_ONCE)
        while True:
            ids = [f"{document_id}.{index}" for index in range(first, first + _AT_ONCE)]
            known = 0
            for index, state in enumerate(await store.read(ids), first):
                if state is None or isinstance(state, Exception):
                    continue
                known = index + 1
                if state.result and (total := _total_in(state.result)):
                    return total
            if not known:
                return least
            least, first = max(least, known), first + _AT_ONCE
    finally:
        await store.close()


def _total_in(result: bytes) -> int | None:
    try:
        document = decode_result(result).document
    except ValueError:
        return None
    return None if document is None else document.total


def _highest(fields: dict[bytes, bytes]) -> int:
    """Return the number of the highest bit that is set, -1 if none is."""
    highest = -1
    for name, value in fields.items():
        stripped = value.rstrip(b"\0")
        if stripped and name.isdigit():
            last = stripped[-1]
            bit = 8 * (len(stripped) - 1) + 7 - ((last & -last).bit_length() - 1)
            highest = max(highest, (int(name) << _BITS) + bit)
    return highest
