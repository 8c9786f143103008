"""The progress of documents, as this version and the last one write it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import redis

from support.chaos.ledger import Ledger
from support.chaos.load import document_of
from support.chaos.sent import Kind
from support.chaos.system import End


def untold(client: redis.Redis, run: str, ledger: Ledger, ends: Mapping[str, End | None]) -> int:
    """Return how many plain jobs have ended without a bit in the progress of their document."""
    ended: dict[str, set[int]] = defaultdict(set)
    for _, sent in ledger.entries(0):
        if sent.kind is Kind.PLAIN and sent.job_id and ends.get(sent.job_id):
            document = document_of(run, sent.number)
            ended[document["document_id"]].add(document["index"])
    return sum(len(indexes - _marked(client, name)) for name, indexes in ended.items())


def _marked(client: redis.Redis, document_id: str) -> set[int]:
    chunks: Any = client.hgetall(f"dragoman:document:{document_id}:bits:ended")
    before: Any = client.get(f"dragoman:document:{document_id}:ended")
    marked = _bits(before or b"")
    for number, bits in chunks.items():
        marked |= {(int(number) << 13) + index for index in _bits(bits)}
    return marked


def _bits(text: bytes) -> set[int]:
    return {
        8 * place + bit
        for place, byte in enumerate(text)
        for bit in range(8)
        if byte & (0x80 >> bit)
    }
