"""The table of rounds in Markdown, and progress lines while it is made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from support.odd.field import Round

_HEAD = (
    "| kind | records | bystanders done, s | all ended, s | restarts | longest stall, ms "
    "| of it CPU, ms | peak RSS, MiB | grown, MiB | ended | verdict |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def markdown(rounds: Sequence[Round]) -> str:
    """Return all rounds and a summary."""
    return "\n".join([_HEAD, *map(_line, rounds), "", summary(rounds), ""])


def summary(rounds: Sequence[Round]) -> str:
    """Return a summary of one sentence."""
    failed = [one for one in rounds if one.problems]
    waits = [one.bystanders_s for one in rounds if one.bystanders_s is not None]
    return (
        f"{len(rounds)} kinds, {len(failed)} failed; bystanders done within "
        f"{max(waits, default=0.0):.1f} s at most where they were done, "
        f"{sum(one.restarts for one in rounds)} restarts, longest stall "
        f"{max((one.lag_ms for one in rounds), default=0)} ms "
        f"({max((one.cpu_lag_ms for one in rounds), default=0)} ms of CPU), peak RSS "
        f"{max((one.peak_mib for one in rounds), default=0)} MiB."
    )


def say(line: str) -> None:
    """Print a line of progress at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def line_of(one: Round) -> str:
    """Return one round as a line of text."""
    verdict = "; ".join(one.problems) or "ok"
    return (
        f"{one.name[:48]:48} {_seconds(one.bystanders_s):>6} s  {one.lag_ms:>6} ms "
        f"({one.cpu_lag_ms} CPU)  +{one.growth_mib} MiB  {one.ended[:60]}  {verdict}"
    )


def write(rounds: Sequence[Round], out: Path | None) -> None:
    """Write the table so far to the file, if there is one."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(markdown(rounds), encoding="utf-8")


def _line(one: Round) -> str:
    cells = (
        one.name,
        one.records,
        _seconds(one.bystanders_s),
        _seconds(one.odd_s),
        one.restarts,
        one.lag_ms,
        one.cpu_lag_ms,
        one.peak_mib,
        one.growth_mib,
        one.ended,
        "; ".join(one.problems) or "ok",
    )
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"
