"""How many requests one server gets at once, and how long each may take. Pure."""

from __future__ import annotations

import math
from typing import Final, Protocol

_FIRST: Final = 8
_WINDOW_S: Final = 2.0
"""Shortest time over which throughput is compared; short answers of a large model take as long."""
_RISE: Final = 1.5
_BETTER: Final = 1.05
"""More requests must raise throughput by this factor, or the limit stays where it was."""
_THROTTLED: Final = 0.7
_FORGET: Final = 0.99
"""The best throughput fades by this factor per window: the server may have got faster."""

_STEP: Final = 0.125
"""By which a full server is tried with more, in shares of the limit."""
_LEAST_PAUSE_S: Final = 2.0
"""Between two steps up: as many readings, a second apart, as show that a server is full."""
_MOST_PAUSE_S: Final = 120.0
"""Between two steps that failed: each costs a full server two seconds of requests one by one."""
_MOST_HELD_S: Final = 1.5
"""Longest that a group waits, as where answers are long: 32 steps of a full 8B take a second."""

_BASE_S: Final = 60.0
"""Room for a queue at the server."""
_SLOWEST_S: Final = 0.5
"""Per token, before any answer: a laptop's CPU with a model of 8B."""
_LEAST_S: Final = 0.05
_PATIENCE: Final = 10.0
"""Times the mean pace so far."""
_PROMPT_SHARE: Final = 0.1
"""Cost of a token of the prompt in tokens of the answer."""
_SMOOTHING: Final = 0.1


class Concurrency(Protocol):
    """How many requests a server gets at once; `most` is never exceeded."""

    most: int

    @property
    def limit(self) -> int:
        """How many it gets at once now."""
        ...

    def room(self, in_flight: int, now: float) -> int:
        """Return how many more requests the server may get now."""
        ...

    def answered(self, tokens: int, in_flight: int, now: float) -> None:
        """Count an answer; `in_flight` are the requests at the server, with this one."""
        ...

    def throttled(self) -> None:
        """Count a reply that asks for fewer requests."""
        ...


class SearchedConcurrency:
    """A limit that rises while more requests mean more tokens per second, and falls on 429."""

    def __init__(self, most: int) -> None:
        self.limit = min(_FIRST, most)
        self.most = most
        self._began: float | None = None
        self._tokens = 0
        self._answers = 0
        self._saturated = False
        self._best = 0.0
        self._before = self.limit

    def room(self, in_flight: int, now: float) -> int:
        """Return how many more requests the server may get now."""
        return max(0, self.limit - in_flight)

    def answered(self, tokens: int, in_flight: int, now: float) -> None:
        """Count an answer; `in_flight` are the requests at the server, with this one."""
        if self._began is None:
            self._began = now
        self._tokens += tokens
        self._answers += 1
        self._saturated = self._saturated or in_flight >= self.limit
        elapsed = now - self._began
        if elapsed >= _WINDOW_S and self._answers >= self.limit:
            self._compare(self._tokens / elapsed)
            self._began, self._tokens, self._answers, self._saturated = now, 0, 0, False

    def throttled(self) -> None:
        """Count a reply that asks for fewer requests."""
        self.limit = max(1, int(self.limit * _THROTTLED))
        self._began, self._tokens, self._answers, self._saturated = None, 0, 0, False
        self._best = 0.0

    def _compare(self, rate: float) -> None:
        if not self._saturated:
            return  # too few requests came: the rate says nothing about the limit
        if rate > self._best * _BETTER:
            self._best, self._before = rate, self.limit
            self.limit = min(self.most, max(self.limit + 1, int(self.limit * _RISE)))
        else:
            self.limit = self._before
            self._best *= _FORGET


class CountedConcurrency:
    """The limit of a server whose own counts are read: as many requests as it runs at once.

    Requests beyond those would wait at the server and enter it one by one, each into a step that
    would otherwise have decodes only, which costs vLLM its CUDA graph (ADR 27). So they wait here,
    and enter in groups: a full server gets none until a `share` of its requests has ended. How many
    it runs at once is seen while some wait there. It is tried with more from time to time.
    """

    def __init__(self, most: int, share: float) -> None:
        self.most = most
        self._runs = most
        """Requests at once, as far as is known."""
        self._throttled_to = most
        self._answers = 0
        self._share = share
        self._full_since: float | None = None
        self._ran_with_others_waiting: int | None = None
        """At the last reading, if some waited then."""
        self._trying = False
        self._pause_s = _LEAST_PAUSE_S
        self._next_try = math.inf

    @property
    def limit(self) -> int:
        """How many it gets at once now."""
        return min(self._runs, self._throttled_to)

    def room(self, in_flight: int, now: float) -> int:
        """Return how many more requests the server may get now: none until a group may enter."""
        room = max(0, self.limit - in_flight)
        if room == 0:
            if self._full_since is None:
                self._full_since = now
            return 0
        if self._full_since is not None:
            if room < self._share * self.limit and now - self._full_since < _MOST_HELD_S:
                return 0
            self._full_since = None
        return room

    def counted(self, running: int, waiting: int, now: float) -> None:
        """Take the server's counts: what it runs while others wait there is all that it can run."""
        before = self._ran_with_others_waiting
        self._ran_with_others_waiting = running if waiting else None
        if not self._share or not running:
            return
        if waiting:
            if before is not None and running <= before:  # it is no longer being filled
                self._is_full_with(before, now)
        elif self._full_since is not None and now >= self._next_try:
            self._try_with_more(now)

    def answered(self, tokens: int, in_flight: int, now: float) -> None:
        """Count an answer: after a 429 the limit rises carefully."""
        if self._throttled_to == self.most:
            return
        self._answers += 1
        if self._answers >= self._throttled_to:
            self._answers, self._throttled_to = 0, self._throttled_to + 1

    def throttled(self) -> None:
        """Count a reply that asks for fewer requests."""
        self._throttled_to = max(1, int(self.limit * _THROTTLED))

    def _is_full_with(self, running: int, now: float) -> None:
        if self._trying:
            self._trying = False
            self._pause_s = min(_MOST_PAUSE_S, 2 * self._pause_s)
        self._runs = min(self.most, running)
        self._next_try = now + self._pause_s

    def _try_with_more(self, now: float) -> None:
        if self._trying:  # the last step found room
            self._pause_s = _LEAST_PAUSE_S
        step = max(1, int(max(_STEP, 2 * self._share) * self.limit))
        self._runs = min(self.most, self.limit + step)
        self._trying = True
        self._next_try = now + _LEAST_PAUSE_S


class AnswerPace:
    """Seconds per token of the answers so far, smoothed."""

    def __init__(self) -> None:
        self._per_token: float | None = None

    def took(self, seconds: float, tokens: int) -> None:
        """Count an answer."""
        pace = seconds / max(1, tokens)
        before = pace if self._per_token is None else self._per_token
        self._per_token = before + _SMOOTHING * (pace - before)

    def limit_s(self, prompt_tokens: int, max_tokens: int) -> float:
        """Return the seconds after which a request without an answer has failed."""
        pace = self._per_token
        per_token = _SLOWEST_S if pace is None else max(_LEAST_S, _PATIENCE * pace)
        return _BASE_S + per_token * (max_tokens + _PROMPT_SHARE * prompt_tokens)
