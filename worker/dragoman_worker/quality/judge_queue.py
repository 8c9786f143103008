"""Requests to the judge process: batches, and those that were lost with a process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

MOST_TEXTS: Final = 64
"""Texts per batch: more do not make it cheaper, and the first one waits for the last."""
MOST_BYTES: Final = 256 * 1024
"""Bytes per batch: it is judged within some tens of milliseconds, unless one text is larger."""


class JudgeRequest:
    """One request and the future of its answer, which is None if there can be none."""

    __slots__ = ("answer", "lost", "payload", "since", "texts")

    def __init__(self, payload: bytes, texts: int, loop: asyncio.AbstractEventLoop) -> None:
        self.payload = payload
        self.texts = texts
        self.since = loop.time()
        self.lost = False
        """Whether it was in a batch that was lost."""
        self.answer: asyncio.Future[Any] = loop.create_future()

    def resolve(self, answer: Any) -> None:
        """Set the answer unless the caller has gone."""
        if not self.answer.done():
            self.answer.set_result(answer)


class RequestQueue:
    """Requests in the order of their arrival; those of a lost batch first, and one by one.

    A request that is lost twice has no answer: it is the one that kills the process, or hangs.
    """

    def __init__(self) -> None:
        self._waiting: deque[JudgeRequest] = deque()
        self._suspects: deque[JudgeRequest] = deque()
        self.batch: list[JudgeRequest] = []
        """The requests that are judged now."""

    @property
    def has_suspects(self) -> bool:
        """Whether requests of a lost batch are to be judged one by one."""
        return bool(self._suspects)

    @property
    def empty(self) -> bool:
        """Whether no request waits; there may be a batch."""
        return not self._waiting and not self._suspects

    def add(self, request: JudgeRequest) -> None:
        """Append a request."""
        self._waiting.append(request)

    def next_batch(self) -> list[JudgeRequest]:
        """Take the next batch, without the requests whose callers have gone; it may be empty."""
        batch: list[JudgeRequest] = []
        texts = size = 0
        source = self._suspects or self._waiting
        most = 1 if source is self._suspects else MOST_TEXTS
        while source and len(batch) < most:
            request = source[0]
            if not request.answer.done():
                texts, size = texts + request.texts, size + len(request.payload)
                if batch and (texts > MOST_TEXTS or size > MOST_BYTES):
                    break
                batch.append(request)
            source.popleft()
        self.batch = batch
        return batch or (self.next_batch() if source is not self._waiting else [])

    def answered(self, answers: Sequence[Any]) -> None:
        """Resolve the requests of the batch."""
        batch, self.batch = self.batch, []
        for request, answer in zip(batch, answers, strict=True):
            request.resolve(answer)

    def batch_lost(self) -> None:
        """Have the requests of the batch judged one by one; None answers those lost before."""
        batch, self.batch = self.batch, []
        again = [request for request in batch if not request.lost]
        for request in batch:
            if request.lost:
                request.resolve(None)
            request.lost = True
        self._suspects.extendleft(reversed(again))

    def expire(self, before: float) -> None:
        """Answer the waiting requests that arrived `before` this time of the loop with None."""
        for queue in (self._suspects, self._waiting):
            while queue and (queue[0].since < before or queue[0].answer.done()):
                queue.popleft().resolve(None)

    def resolve_all(self) -> None:
        """Answer every request with None."""
        requests: Iterable[JudgeRequest] = (*self.batch, *self._suspects, *self._waiting)
        for request in requests:
            request.resolve(None)
        self.batch = []
        self._suspects.clear()
        self._waiting.clear()
