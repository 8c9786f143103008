"""Characters that each key asked for, by month: counted here, summed in Redis once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from dragoman_connections.redis_access.calls import Command
from dragoman_gateway.errors import ApiError
from dragoman_gateway.keys import Key
from dragoman_producer.errors import DragomanError
from dragoman_schemas.names import Keys

EVERY_S: Final = 1.0
_KEPT_S: Final = 62 * 86_400


class CountsLink(Protocol):
    """What is needed of a RedisLink."""

    async def ask(self, *command: Any) -> Any: ...

    async def send(self, *calls: Sequence[Command]) -> list[list[Any]]: ...

    def checked(self, reply: Any) -> Any: ...


class _Month(NamedTuple):
    key_id: str
    month: str


class KeyUsage:
    """Counts what is submitted. Without Redis the counts wait here, and the last sums count."""

    def __init__(self, link: CountsLink, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self._pending: Counter[_Month] = Counter()
        self._sums: dict[_Month, int] = {}

    def add(self, key: Key, characters: int) -> None:
        """Count characters of a job that is submitted."""
        self._pending[_now(key)] += characters

    async def of(self, key: Key) -> int:
        """Return the characters of this month. Raises DragomanError if Redis is needed and away."""
        month = _now(key)
        if month not in self._sums:
            found = await self._link.ask("HGET", self._name(month), "characters")
            self._sums[month] = int(found) if isinstance(found, bytes) else 0
        return self._sums[month] + self._pending[month]

    async def check(self, key: Key, characters: int) -> None:
        """Raise ApiError (456) if the key's quota does not allow so many more characters."""
        limit = key.characters_per_month
        if limit is not None and await self.of(key) + characters > limit:
            raise ApiError(456, f"Quota exceeded: {limit} characters a month.")

    async def forever(self) -> None:
        """Sum what was counted, once a second."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        """Sum what was counted; keep what Redis did not take."""
        counted, self._pending = self._pending, Counter()
        for month, characters in counted.items():
            name = self._name(month)
            add = ("HINCRBY", name, "characters", characters)
            try:
                ((total, _),) = await self._link.send([add, ("EXPIRE", name, _KEPT_S)])
                self._sums[month] = int(self._link.checked(total))
            except DragomanError:
                self._pending[month] += characters

    def _name(self, month: _Month) -> str:
        return f"{self._keys.prefix}gateway:usage:{month.key_id}:{month.month}"


def _now(key: Key) -> _Month:
    return _Month(key.id, datetime.now(UTC).strftime("%Y%m"))
