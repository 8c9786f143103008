"""How long a request may take, from the tokens it asks for and the pace of answers so far."""

from __future__ import annotations

from typing import Final

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
