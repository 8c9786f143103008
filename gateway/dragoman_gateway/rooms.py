"""Fair use: each key has room for so many requests and characters, and a rate of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from dragoman_gateway.errors import ApiError
from dragoman_gateway.keys import Key

PATIENCE_S: Final = 2.0
"""A client of DeepL's backs off for long after a 429, so a moment's crowd is not one."""


class _Waiting(NamedTuple):
    characters: int
    key: Key
    admitted: asyncio.Future[None]


class _Room:
    """What one key has in flight, and who waits for it, first come first served."""

    def __init__(self) -> None:
        self.requests = self.characters = 0
        self.waiting: deque[_Waiting] = deque()
        self.next_at = 0.0
        """When the rate of the key allows another request."""

    def take(self, key: Key, characters: int) -> bool:
        """Take room if there is some; a request that is larger than the room has it alone."""
        fits = self.characters + characters <= key.max_characters_in_flight or not self.requests
        if self.requests >= key.max_in_flight or not fits:
            return False
        self.requests += 1
        self.characters += characters
        return True

    def leave(self, characters: int) -> None:
        """Give room back."""
        self.requests -= 1
        self.characters -= characters
        self.admit()

    def admit(self) -> None:
        """Let those in who wait and fit, first come first served."""
        while self.waiting:
            first = self.waiting[0]
            if not first.admitted.done():  # not cancelled
                if not self.take(first.key, first.characters):
                    return
                first.admitted.set_result(None)
            self.waiting.popleft()


class Rooms:
    """The rooms of all keys. None of them waits for another's."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._rooms: dict[str, _Room] = {}

    @asynccontextmanager
    async def enter(self, key: Key, characters: int) -> AsyncIterator[None]:
        """Hold room for a request. Raises ApiError (429) if there is none for a while."""
        room = self._rooms.setdefault(key.id, _Room())
        await self._paced(room, key)
        if room.waiting or not room.take(key, characters):
            await self._admitted(room, _Waiting(characters, key, asyncio.Future()))
        try:
            yield
        finally:
            room.leave(characters)
            if not room.requests and not room.waiting and key.requests_per_s is None:
                self._rooms.pop(key.id, None)

    async def _paced(self, room: _Room, key: Key) -> None:
        """Wait for the key's rate."""
        if key.requests_per_s is None:
            return
        now = asyncio.get_running_loop().time()
        at = max(now, room.next_at)
        if at - now > self._patience_s:
            raise _too_many(at - now)
        room.next_at = at + 1 / key.requests_per_s
        await asyncio.sleep(at - now)

    async def _admitted(self, room: _Room, waiting: _Waiting) -> None:
        room.waiting.append(waiting)
        try:
            async with asyncio.timeout(self._patience_s):
                await waiting.admitted
        except BaseException as error:
            if waiting.admitted.done() and not waiting.admitted.cancelled():
                room.leave(waiting.characters)
            elif waiting in room.waiting:
                room.waiting.remove(waiting)
                room.admit()  # those behind it may fit
            if isinstance(error, TimeoutError):
                raise _too_many(1) from None
            raise


def _too_many(seconds: float) -> ApiError:
    return ApiError(429, "Too many requests of this key at once.", max(1, round(seconds)))
