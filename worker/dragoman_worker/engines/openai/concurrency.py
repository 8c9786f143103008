"""How many requests one server gets at once, and how long each may take. Pure."""

from __future__ import annotations

from typing import Final

_FIRST: Final = 8
_WINDOW_S: Final = 2.0
"""Shortest time over which throughput is compared; short answers of a large model take as long."""
_RISE: Final = 1.5
_BETTER: Final = 1.05
"""More requests must raise throughput by this factor, or the limit stays where it was."""
_THROTTLED: Final = 0.7
_FORGET: Final = 0.99
"""The best throughput fades by this factor per window: the server may have got faster."""

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


class Concurrency:
    """A limit that rises while more requests mean more tokens per second, and falls on 429.

    A server whose own counts are read needs no such search: it is given `most` at once, and the
    worker's admission follows the counts.
    """

    def __init__(self, most: int, *, searches: bool) -> None:
        self.limit = min(_FIRST, most) if searches else most
        self.most = most
        self._searches = searches
        self._began: float | None = None
        self._tokens = 0
        self._answers = 0
        self._saturated = False
        self._best = 0.0
        self._before = self.limit

    def answered(self, tokens: int, in_flight: int, now: float) -> None:
        """Count an answer; `in_flight` are the requests at the server, with this one."""
        if not self._searches:
            if self.limit < self.most:  # after a 429: carefully up again
                self._answers += 1
                if self._answers >= self.limit:
                    self._answers, self.limit = 0, self.limit + 1
            return
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
