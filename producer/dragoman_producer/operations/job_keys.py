"""Keys of many jobs, read in batches and without their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman_connections.settings import DragomanSettings
from dragoman_producer.redis_link import RedisLink, is_wrong_type
from dragoman_producer.reopening import remove_cancellations
from dragoman_schemas import box, names

_FIELDS: Final = [
    names.FIELD_STATUS,
    names.FIELD_FINGERPRINT,
    names.FIELD_REPLAYS,
    names.FIELD_FINISHED_AT,
]
_FOREIGN_OWNER: Final = "another program"


@dataclass(frozen=True, slots=True)
class JobKey:
    """A job's key without its result; ``fingerprint`` is None until a worker claims a record."""

    status: str
    fingerprint: str | None = None
    replays: int = 0
    finished_at: str | None = None

    def belongs_to(self, fingerprint: str) -> bool:
        """Return whether a record of this fingerprint would be the same job."""
        return self.fingerprint is None or self.fingerprint == fingerprint

    @property
    def is_stub(self) -> bool:
        """Whether the key is only a client's stub: no worker has claimed a record of it."""
        return self.status == "queued" and self.fingerprint is None


class JobKeys:
    """Reads keys, by one HMGET each, which works with a Redis Cluster too."""

    def __init__(self, settings: DragomanSettings) -> None:
        self._link = RedisLink(settings.redis, connect_timeout_s=settings.connect_timeout_s)
        self._keys = names.Keys(settings.redis.key_prefix)

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()

    async def read(self, job_ids: Sequence[str]) -> list[JobKey | None]:
        """Read the keys in the order of the ids, by one pipeline per server; None without a key.

        A key of another type, or with fields that Dragoman does not write, belongs to another
        program. Raises StoreUnreachable and StoreRefused.
        """
        calls = [[("HMGET", self._keys.job(job_id), *_FIELDS)] for job_id in job_ids]
        replies = await self._link.send(*calls) if calls else []
        return [self._job_key(reply) for (reply,) in replies]

    async def box_bound(self) -> int | None:
        """Return what a publisher may have in a partition of a box; None where there is no box."""
        ((reply,),) = await self._link.send([box.ask(self._keys)])
        return box.bound_in(reply)

    async def reopen(self, document_id: str) -> None:
        """Remove the cancellation of a document. Raises StoreUnreachable and StoreRefused."""
        await remove_cancellations(self._link, [self._keys.document_cancel(document_id)])

    def _job_key(self, reply: Any) -> JobKey | None:
        if is_wrong_type(reply):
            return JobKey("", _FOREIGN_OWNER)
        fields = self._link.checked(reply)
        if fields[0] is None:
            return None
        try:
            return _parsed(*fields)
        except ValueError:  # not UTF-8, or not a number
            return JobKey("", _FOREIGN_OWNER)


def _parsed(
    status: bytes, fingerprint: bytes | None, replays: bytes | None, finished_at: bytes | None
) -> JobKey:
    return JobKey(
        status=status.decode(),
        fingerprint=fingerprint.decode() if fingerprint else None,
        replays=int(replays or 0),
        finished_at=finished_at.decode() if finished_at else None,
    )
