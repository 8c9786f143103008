"""Choice of the number of sequences by the published method: sweep until throughput degrades.

Pure functions over measured points; every result quotes the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_worker.tuning.measure.results import Row

GAIN: Final = 0.05
"""Minimum gain in tokens/s over the best point so far for which a step pays."""
WORSE: Final = 0.10
"""Increase in decode time per token or in p99 from which a step without a gain degrades."""
WITHIN: Final = 0.03
"""Distance from the best within which the fewest sequences are chosen; the rest is noise."""
PATIENCE: Final = 2
"""Degrading steps in a row that end the sweep; a single one may be noise."""

RULE: Final = (
    f"Sequences are doubled until {PATIENCE} steps in a row degrade: less than {GAIN:.0%} more "
    f"output tokens/s than the best point so far, and decode time per token or p99 more than "
    f"{WORSE:.0%} above that point's, or fewer tokens/s than {1 - GAIN:.0%} of it. Chosen is the "
    f"smallest number within {WITHIN:.0%} of the best."
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One point: output tokens/s, decode seconds per token, p99 latency of a job in seconds."""

    sequences: int
    tokens_per_s: float
    decode_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class ChosenPoint:
    """The chosen point, the reason, and whether the sweep saw throughput stop growing."""

    sequences: int
    why: str
    degraded: bool


def pays(best: Measured, new: Measured) -> bool:
    """Return whether the step from the best point so far gained enough."""
    return new.tokens_per_s >= (1 + GAIN) * best.tokens_per_s


def degrades(best: Measured, new: Measured) -> bool:
    """Return whether the step lost throughput, or cost latency without a gain."""
    if pays(best, new):
        return False
    if new.tokens_per_s < (1 - GAIN) * best.tokens_per_s:
        return True
    return new.decode_s > (1 + WORSE) * best.decode_s or new.p99_s > (1 + WORSE) * best.p99_s


def has_degraded(points: Sequence[Measured]) -> bool:
    """Return whether the sweep may end; `points` are in the order of measurement."""
    in_a_row, best = 0, points[0]
    for point in points[1:]:
        in_a_row = in_a_row + 1 if degrades(best, point) else 0
        if point.tokens_per_s > best.tokens_per_s:
            best = point
    return in_a_row >= PATIENCE


def choose(points: Sequence[Measured]) -> ChosenPoint:
    """Choose the fewest sequences within `WITHIN` of the best. Raises ValueError without points."""
    best = max(points, key=lambda point: point.tokens_per_s)
    enough = (1 - WITHIN) * best.tokens_per_s
    chosen = min((p for p in points if p.tokens_per_s >= enough), key=lambda p: p.sequences)
    return ChosenPoint(chosen.sequences, _why(points, best, chosen), has_degraded(points))


def why_keep(as_given: Row, as_chosen: Row) -> str | None:
    """Return why the given settings are kept, or None if the chosen ones replace them.

    Both rows were measured in engines of their own. The given settings are kept if they write more
    tokens/s, or as many with no higher p99. Lower latency alone justifies no loss of throughput:
    fewer sequences nearly always have the lower p99.
    """
    given, chosen = _as_run(as_given), _as_run(as_chosen)
    more = chosen.tokens_per_s < (1 - WITHIN) * given.tokens_per_s
    as_much = given.tokens_per_s >= (1 - WITHIN) * chosen.tokens_per_s
    if not more and not (as_much and given.p99_s <= chosen.p99_s):
        return None
    return (
        f"The chosen settings write {chosen.tokens_per_s:,.0f} tokens/s with a p99 of"
        f" {chosen.p99_s:.2f} s, and the given settings {given.tokens_per_s:,.0f} with"
        f" {given.p99_s:.2f} s. The file keeps the given settings."
    )


def measured(row: Row) -> Measured:
    """Return a row of the sweep as a point."""
    return Measured(
        sequences=row["drive"]["items"],
        tokens_per_s=row["output_tokens_per_s"],
        decode_s=(row["decode_ms_per_token"] or 0.0) / 1000,
        p99_s=(row["latency_ms"] or {}).get("p99", 0.0) / 1000,
    )


def _as_run(row: Row) -> Measured:
    """Return a row that was measured under the worker's own admission as a point."""
    return measured({**row, "drive": {"items": row["limits"]["max_num_seqs"]}})


def _why(points: Sequence[Measured], best: Measured, chosen: Measured) -> str:
    share = chosen.tokens_per_s / best.tokens_per_s if best.tokens_per_s else 1.0
    text = f"{chosen.sequences} sequences write {chosen.tokens_per_s:,.0f} tokens/s, "
    if chosen.sequences != best.sequences:
        text += f"{share:.1%} of the best ({best.tokens_per_s:,.0f} at {best.sequences})"
    else:
        text += "the most that was measured"
    larger = [point for point in points if point.sequences > chosen.sequences]
    more = min(larger, default=None, key=_sequences)
    if more is None:
        return text + "; no larger number was measured"
    gain = more.tokens_per_s / chosen.tokens_per_s - 1 if chosen.tokens_per_s else 0.0
    slower = more.p99_s / chosen.p99_s - 1 if chosen.p99_s else 0.0
    return f"{text}; {more.sequences} would change tokens/s by {gain:+.1%} and p99 by {slower:+.0%}"


def _sequences(point: Measured) -> int:
    return point.sequences
