"""What does a person type to measure? `dragoman-worker tune` and `dragoman-worker bench`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_connections.secrets import masked_setting
from dragoman_connections.settings import SettingsError
from dragoman_worker.cli.options import Config, Set, fail, say, settings_or_exit

if TYPE_CHECKING:
    from dragoman_worker.tuning.measure.session import Request

Jobs = Annotated[
    Path | None,
    typer.Option(
        "--jobs",
        help="JSONL, a job a line. Without it: the topic's last records, read in no group.",
    ),
]
SampleSize = Annotated[int, typer.Option("--sample", min=1, help="Jobs to measure with.")]
Seconds = Annotated[
    float, typer.Option("--seconds-per-point", min=0.1, help="Counted at each point, once warm.")
]
WarmSeconds = Annotated[
    float,
    typer.Option("--warm-s", min=0.0, help="At least so long before it counts; longer as needed."),
]
Budget = Annotated[
    float | None,
    typer.Option("--budget-s", min=0.0, help="Begin nothing that would not end within so long."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object a line, the last the result.")
]


def tune(
    config: Config = None,
    set_: Set = None,
    jobs: Jobs = None,
    sample: SampleSize = 2_000,
    out: Annotated[Path, typer.Option("--out", help="Where all is written.")] = Path("tuned"),
    seconds_per_point: Seconds = 10.0,
    warm_s: WarmSeconds = 1.0,
    budget_s: Budget = None,
    stages: Annotated[
        str | None,
        typer.Option(
            "--stages",
            help="After the sweep, of batched_tokens, memory, fp8, replicas, verify; all of them.",
        ),
    ] = None,
    allow: Annotated[
        str | None,
        typer.Option(
            "--allow", help="Of replicas, fp8: what may be tried. Replicas where they may gain."
        ),
    ] = None,
    sequences: Annotated[
        str | None, typer.Option("--sequences", help="Only these, as in 8,16,32.")
    ] = None,
    max_sequences: Annotated[
        int | None, typer.Option("--max-sequences", min=1, help="Sweep up to so many.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure this model with your own jobs, and write the settings that fit.

    Sequences are doubled until more of them only cost latency; then one thing at a time is tried.
    Every point is kept in OUT/rows.jsonl: the same command goes on where it was stopped.
    """
    from dragoman_worker.cli.choosing import Wish, wishes_of
    from dragoman_worker.cli.tune_session import tuned

    wish = Wish(sequences, max_sequences, stages, allow)
    try:
        wishes = wishes_of(wish)
    except SettingsError as error:
        fail(2, str(error))
    request = _request(
        config, set_, jobs, sample, out, (seconds_per_point, warm_s, budget_s), as_json=as_json
    )
    _run(lambda: tuned(request, wishes), out)


def bench(
    config: Config = None,
    set_: Set = None,
    jobs: Jobs = None,
    sample: SampleSize = 2_000,
    out: Annotated[Path, typer.Option("--out", help="Where all is written.")] = Path("bench"),
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            help="Of one, static, published, default, given, all, replicas; those that fit.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Times each is run.")] = 3,
    seconds_per_point: Seconds = 10.0,
    warm_s: WarmSeconds = 1.0,
    budget_s: Budget = None,
    as_json: AsJson = False,
) -> None:
    """Compare the ways of feeding this model's engine, with your own jobs.

    One at a time, static batches, the published setting, continuous with default settings and with
    yours, all at once as LLM.generate does, and replicas if engine.replicas says so.
    """
    from dragoman_worker.cli.bench_session import benched
    from dragoman_worker.cli.choosing import strategies_of

    try:
        wanted = strategies_of(strategies)
    except SettingsError as error:
        fail(2, str(error))
    request = _request(
        config, set_, jobs, sample, out, (seconds_per_point, warm_s, budget_s), as_json=as_json
    )
    _run(lambda: benched(request, wanted, rounds), out)


def _request(
    config: Path | None,
    set_: list[str] | None,
    jobs: Path | None,
    sample: int,
    out: Path,
    pace: tuple[float, float, float | None],
    *,
    as_json: bool,
) -> Request:
    from dragoman_worker import log
    from dragoman_worker.tuning.measure.harness import Pace
    from dragoman_worker.tuning.measure.session import Request

    seconds, warm_s, budget_s = pace
    settings = settings_or_exit(config, set_)
    log.configure(settings.log, worker_id=settings.worker_id)  # stdout is for what was asked for
    return Request(
        settings=settings,
        jobs=jobs,
        sample=sample,
        out=out,
        pace=Pace(seconds, warm_s, float("inf") if budget_s is None else budget_s),
        as_json=as_json,
    )


def _run(work: Callable[[], Awaitable[int]], out: Path) -> None:
    from dragoman_worker.errors import WorkerError
    from dragoman_worker.tuning.measure.session import CannotMeasure, run_until_stopped

    try:
        status = run_until_stopped(work)
    except SettingsError as error:
        fail(2, str(error))
    except (WorkerError, CannotMeasure) as error:
        fail(1, str(error))
    except OSError as error:
        fail(1, _file_error(error, out))
    except KeyboardInterrupt:
        say(f"stopped; {out / 'rows.jsonl'} keeps what was measured, and this goes on from there:")
        shown = map(masked_setting, sys.argv[1:])
        sys.stderr.write(f"  {shlex.join(['dragoman-worker', *shown])}\n")
        raise SystemExit(130) from None
    raise SystemExit(status)


def _file_error(error: OSError, out: Path) -> str:
    where = f"{error.filename}" if error.filename else f"--out {out}"
    if isinstance(error, BrokenPipeError):
        where = "standard output"
    why = error.strerror or type(error).__name__
    return f"{where}: {why}; mend that and run it again; what was measured stays in {out}"
