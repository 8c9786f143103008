"""Options that `tune` and `bench` share, and how a measurement ends as an exit status."""

from __future__ import annotations

import inspect
import math
import shlex
import sys
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dragoman_connections.secrets import masked_setting
from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import print_to
from dragoman_schemas.nearest import did_you_mean
from dragoman_worker.cli.options import Config, Set, fail, notify, settings_or_exit

if TYPE_CHECKING:
    from dragoman_worker.tuning.measure.session import MeasureRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureOptions:
    """Parsed values of the shared options; Typer reads the types and defaults from here."""

    config: Config = None
    set_: Set = None
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs",
            metavar="FILE",
            help="JSONL file with one job per line; default: the newest records of the topic, "
            "read without joining the consumer group.",
        ),
    ] = None
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=1, help="Number of jobs to measure with.")
    ] = 2_000
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for all results.")] = (
        Path("out")
    )
    seconds_per_point: Annotated[
        float,
        typer.Option(
            "--seconds-per-point",
            metavar="SECONDS",
            min=0.1,
            help="Length of each measurement after the warm-up.",
        ),
    ] = 10.0
    warm_s: Annotated[
        float,
        typer.Option(
            "--warm-s",
            metavar="SECONDS",
            min=0.0,
            help="Minimum warm-up before each measurement; prolonged as needed.",
        ),
    ] = 1.0
    budget_s: Annotated[
        float | None,
        typer.Option(
            "--budget-s",
            metavar="SECONDS",
            min=0.0,
            help="Start no measurement that could exceed this total time.",
        ),
    ] = None
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object per line; the last is the result."),
    ] = False

    def request(self) -> MeasureRequest:
        """Return the request to measure; exit with status 2 if the settings are invalid."""
        from dragoman_worker import log
        from dragoman_worker.tuning.measure.harness import PointSeconds
        from dragoman_worker.tuning.measure.session import MeasureRequest

        given = {"--seconds-per-point": self.seconds_per_point, "--warm-s": self.warm_s}
        for option, seconds in given.items():
            if not math.isfinite(seconds):
                fail(2, f"{option} {seconds}: give a number of seconds")
        settings = settings_or_exit(self.config, self.set_)
        log.configure(settings.log, worker_id=settings.worker_id)  # to stderr, not stdout
        budget_s = float("inf") if self.budget_s is None else self.budget_s
        return MeasureRequest(
            settings=settings,
            jobs=self.jobs,
            sample=self.sample,
            out=self.out,
            pace=PointSeconds(self.seconds_per_point, self.warm_s, budget_s),
            as_json=self.as_json,
        )


def with_measure_options(out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the shared options in place of its first parameter.

    `out` is the default of `--out`. The command takes a MeasureOptions, then its own options as
    keywords.
    """
    types = get_type_hints(MeasureOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=Path(out) if field.name == "out" else field.default,
            annotation=types[field.name],
        )
        for field in fields(MeasureOptions)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def wrapped(**values: Any) -> None:
            options = MeasureOptions(**{one.name: values.pop(one.name) for one in shared})
            command(options, **values)

        wrapped.__signature__ = inspect.Signature([*shared, *own])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def run_measurement(work: Callable[[], Awaitable[int]], out: Path) -> None:
    """Run `work` and exit with its status, or print why it failed and how to go on."""
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
        notify(f"stopped; {out / 'rows.jsonl'} keeps the measured points; to continue, run:")
        shown = map(masked_setting, sys.argv[1:])
        print_to(sys.stderr, f"  {shlex.join(['dragoman-worker', *shown])}")
        raise SystemExit(130) from None
    raise SystemExit(status)


def _file_error(error: OSError, out: Path) -> str:
    where = f"{error.filename}" if error.filename else f"--out {out}"
    if isinstance(error, BrokenPipeError):
        where = "standard output"
    why = error.strerror or type(error).__name__
    return f"{where}: {why}; fix this and run the command again; {out} keeps the measured points"


def named_words(option: str, text: str, known: Collection[str]) -> frozenset[str]:
    """Return the words of a comma-separated option. Raises SettingsError for one not known."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            hint = did_you_mean(word, known)
            names = ", ".join(known)
            raise SettingsError(f"{option}: there is no {word!r}{hint}; give some of {names}")
    return frozenset(words)
