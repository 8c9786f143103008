"""How many sequences at once are enough? The published method: sweep, and stop where it degrades.

Pure functions over what was measured; the rule is told with every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

GAIN: Final = 0.05
"""A step that brings less than this over the best so far does not pay."""
WORSE: Final = 0.10
"""So much more decode time a token, or p99, without a gain, is what more sequences then cost."""
WITHIN: Final = 0.03
"""The chosen point is the least that comes so near the best: the rest is noise or latency."""
PATIENCE: Final = 2
"""Steps in a row that degrade end the sweep: one alone may be noise."""

RULE: Final = (
    f"Sequences are doubled until {PATIENCE} steps in a row degrade: less than {GAIN:.0%} more "
    f"output tokens/s than the best point so far, and decode time a token or p99 more than "
    f"{WORSE:.0%} above that point's, or fewer tokens/s than {1 - GAIN:.0%} of it. Chosen is the "
    f"smallest number within {WITHIN:.0%} of the best."
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One point of the sweep: tokens/s written, seconds of decoding a token, p99 of a job in s."""

    sequences: int
    tokens_per_s: float
    decode_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen point, why, and whether the sweep saw throughput stop growing at all."""

    sequences: int
    why: str
    degraded: bool


def pays(best: Measured, new: Measured) -> bool:
    """Whether the step from the best point so far brought enough."""
    return new.tokens_per_s >= (1 + GAIN) * best.tokens_per_s


def degrades(best: Measured, new: Measured) -> bool:
    """Whether the step cost latency and brought nothing, or brought less than nothing."""
    if pays(best, new):
        return False
    if new.tokens_per_s < (1 - GAIN) * best.tokens_per_s:
        return True
    return new.decode_s > (1 + WORSE) * best.decode_s or new.p99_s > (1 + WORSE) * best.p99_s


def has_degraded(points: Sequence[Measured]) -> bool:
    """Whether the sweep, in the order in which it was measured, may end here."""
    in_a_row, best = 0, points[0]
    for point in points[1:]:
        in_a_row = in_a_row + 1 if degrades(best, point) else 0
        if point.tokens_per_s > best.tokens_per_s:
            best = point
    return in_a_row >= PATIENCE


def choose(points: Sequence[Measured]) -> Choice:
    """The smallest number of sequences within `WITHIN` of the best. Raises ValueError of none."""
    best = max(points, key=lambda point: point.tokens_per_s)
    enough = (1 - WITHIN) * best.tokens_per_s
    chosen = min((p for p in points if p.tokens_per_s >= enough), key=lambda p: p.sequences)
    return Choice(chosen.sequences, _why(points, best, chosen), has_degraded(points))


def _why(points: Sequence[Measured], best: Measured, chosen: Measured) -> str:
    share = chosen.tokens_per_s / best.tokens_per_s if best.tokens_per_s else 1.0
    said = f"{chosen.sequences} sequences write {chosen.tokens_per_s:,.0f} tokens/s, "
    if chosen.sequences != best.sequences:
        said += f"{share:.1%} of the best ({best.tokens_per_s:,.0f} at {best.sequences})"
    else:
        said += "the most that was measured"
    more = min((p for p in points if p.sequences > chosen.sequences), default=None, key=_sequences)
    if more is None:
        return said + "; no larger number was measured"
    gain = more.tokens_per_s / chosen.tokens_per_s - 1 if chosen.tokens_per_s else 0.0
    slower = more.p99_s / chosen.p99_s - 1 if chosen.p99_s else 0.0
    return f"{said}; {more.sequences} would change tokens/s by {gain:+.1%} and p99 by {slower:+.0%}"


def _sequences(point: Measured) -> int:
    return point.sequences
