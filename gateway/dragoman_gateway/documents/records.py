"""What Redis holds of each document, and who translates it now."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from dragoman_connections.redis_access.calls import Command
from dragoman_schemas import scripts
from dragoman_schemas.names import Keys

LEASE_S: Final = 30.0
SAME_S: Final = 600
"""Within which the same upload of a key is the same document."""
_WAITING_FIELDS: Final = ("key", "status", "created", "owner", "lease_until")
ENDED: Final = frozenset({"done", "error"})


class RecordsLink(Protocol):
    """What is needed of a RedisLink."""

    async def ask(self, *command: Any) -> Any: ...
    async def send(self, *calls: Sequence[Command]) -> list[list[Any]]: ...
    def checked(self, reply: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document."""

    id: str
    key: str
    status: str
    asked: Mapping[str, Any]
    """What its caller asked for."""
    fields: Mapping[str, str]

    def number(self, name: str) -> int:
        """Return a count."""
        return int(self.fields.get(name) or 0)


class UnendedDocument(NamedTuple):
    """A document that has not ended."""

    id: str
    key: str
    created: str
    free: bool


class DocumentRecords:
    """Reads and writes records; those of a document that is translated only by its gateway."""

    def __init__(self, link: RecordsLink, keys: Keys, owner: str, keep_s: int) -> None:
        self._link = link
        self._keys = keys
        self._owner = owner
        self._keep_s = keep_s

    async def create(
        self, document_id: str, key: str, asked: Mapping[str, Any], **more: str
    ) -> None:
        """Write the record of a new document."""
        name = self._keys.gateway_document(document_id)
        fields = {
            "key": key, "status": "queued", "created": f"{time.time():.3f}",
            "asked": json.dumps(asked), **more,
        }  # fmt: skip
        pairs = [part for pair in fields.items() for part in pair]
        replies = await self._link.send([("HSET", name, *pairs), ("EXPIRE", name, self._keep_s)])
        for reply in replies[0]:
            self._link.checked(reply)

    async def read(self, document_id: str) -> DocumentRecord | None:
        """Return a record; None if there is none."""
        found = await self._link.ask("HGETALL", self._keys.gateway_document(document_id))
        pairs = found.items() if isinstance(found, dict) else zip(*[iter(found)] * 2, strict=True)
        fields = {name.decode(): value.decode("utf-8", "replace") for name, value in pairs}
        if not {"key", "status", "asked"} <= fields.keys():
            return None
        asked = json.loads(fields["asked"])
        return DocumentRecord(document_id, fields["key"], fields["status"], asked, fields)

    async def look(self, ids: Sequence[str]) -> tuple[list[UnendedDocument], dict[str, str]]:
        """Return the documents that have not ended, and the statuses of all that have a record."""
        calls = [[("HMGET", self._keys.gateway_document(each), *_WAITING_FIELDS)] for each in ids]
        replies = await self._link.send(*calls) if calls else []
        waiting: list[UnendedDocument] = []
        statuses: dict[str, str] = {}
        for document_id, (reply,) in zip(ids, replies, strict=True):
            key, status, created, _, until = self._link.checked(reply)
            if key is None or status is None:
                continue
            statuses[document_id] = status.decode()
            if statuses[document_id] not in ENDED:
                free = int(until or 0) <= time.time() * 1000
                waiting.append(
                    UnendedDocument(document_id, key.decode(), (created or b"").decode(), free)
                )
        return waiting, statuses

    async def hold(self, document_id: str, fields: Mapping[str, str | int] | None = None) -> bool:
        """Take or keep a document, and write fields; return False if it is another gateway's."""
        return await self._lease(document_id, LEASE_S, fields or {})

    async def give_back(self, document_id: str, fields: Mapping[str, str | int]) -> bool:
        """Write fields and end the lease."""
        return await self._lease(document_id, 0.0, fields)

    async def _lease(
        self, document_id: str, seconds: float, fields: Mapping[str, str | int]
    ) -> bool:
        now = round(time.time() * 1000)
        arguments = scripts.lease_args(
            owner=self._owner, now_ms=now, until_ms=now + round(1000 * seconds),
            ttl_ms=1000 * self._keep_s, fields=fields,
        )  # fmt: skip
        key = self._keys.gateway_document(document_id)
        reply = await self._link.ask("EVALSHA", scripts.LEASE.sha1, 1, key, *arguments)
        return bool(reply[0])

    async def same(self, digest: str, document_id: str) -> str | None:
        """Return the document of an equal upload of late; None if this is the first, noted now."""
        name = self._keys.gateway_document(f"same:{digest}")
        if await self._link.ask("SET", name, document_id, "NX", "EX", SAME_S):
            return None
        found = await self._link.ask("GET", name)
        before = found.decode() if found else ""
        record = await self.read(before) if before else None
        if record is not None and record.status != "error":
            return before
        await self._link.ask("SET", name, document_id, "EX", SAME_S)
        return None

    async def downloaded(self, record: DocumentRecord) -> None:
        """Note a download: an equal upload is a new document from now on."""
        digest = record.fields.get("digest", "")
        await self._link.ask("DEL", self._keys.gateway_document(f"same:{digest}"))
