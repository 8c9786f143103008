"""Outages of Kafka and Redis in the middle of long commands: all wait for their end by one rule."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from dragoman_producer.errors import Unreachable

T = TypeVar("T")

PATIENCE_S: Final = 300.0
"""How long Kafka or Redis may be away before a command gives up; giving it again resumes."""
_PAUSE_S: Final = 1.0


class Outage:
    """What a command knows of outages; shared by all its work, made inside its event loop."""

    def __init__(
        self,
        tell: Callable[[str], object],
        *,
        patience_s: float = PATIENCE_S,
        until: float | None = None,
    ) -> None:
        """`tell` is called once per outage; `until` is a time of the loop that ends all waiting."""
        self._tell = tell
        self._patience_s = patience_s
        self._until = until
        self._since: float | None = None
        self._reached = False

    def reached(self) -> None:
        """Note that the services answered. Until they do, waiting would hide a wrong address."""
        self._since, self._reached = None, True

    async def outlasts(self, error: Unreachable) -> bool:
        """Wait a little; return False if it is not worth to try again."""
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
            if self._reached:
                self._tell(str(error))
        end = self._since + (self._patience_s if self._reached else 0.0)
        if now >= (end if self._until is None else min(end, self._until)):
            return False
        await asyncio.sleep(_PAUSE_S)
        return True

    async def over(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work that may be repeated until the services answer. Raises what `work` raises."""
        while True:
            try:
                done = await work()
            except Unreachable as error:
                if not await self.outlasts(error):
                    raise
            else:
                self.reached()
                return done
