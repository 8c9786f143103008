"""Are the chosen settings to replace the given ones? Both were measured in engines of their own."""

from __future__ import annotations

from dragoman_worker.tuning.knee import WITHIN, Measured
from dragoman_worker.tuning.measure.results import Row


def why_keep(as_given: Row, as_chosen: Row) -> str | None:
    """Why the settings as given are kept, if they are: they write more, or as much no later.

    The sweep is one engine's word, and fewer sequences nearly always have the lower p99: latency
    alone buys no loss of throughput.
    """
    given, chosen = _as_run(as_given), _as_run(as_chosen)
    more = chosen.tokens_per_s < (1 - WITHIN) * given.tokens_per_s
    as_much = given.tokens_per_s >= (1 - WITHIN) * chosen.tokens_per_s
    if not more and not (as_much and given.p99_s <= chosen.p99_s):
        return None
    return (
        f"Verified in an engine of their own the chosen settings write "
        f"{chosen.tokens_per_s:,.0f} tokens/s with a p99 of {chosen.p99_s:.2f} s; the settings "
        f"as given {given.tokens_per_s:,.0f} with {given.p99_s:.2f} s. The file keeps those."
    )


def measured(row: Row) -> Measured:
    """A row of the sweep as the rule sees it."""
    return Measured(
        sequences=row["drive"]["items"],
        tokens_per_s=row["output_tokens_per_s"],
        decode_s=(row["decode_ms_per_token"] or 0.0) / 1000,
        p99_s=(row["latency_ms"] or {}).get("p99", 0.0) / 1000,
    )


def _as_run(row: Row) -> Measured:
    """A row under the worker's own admission as the rule sees it."""
    return measured({**row, "drive": {"items": row["limits"]["max_num_seqs"]}})
