"""The `why` command: reports what limits a running worker's throughput."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman_connections.settings import (
    DragomanSettings,
    SettingsError,
    load_settings,
    parse_pairs,
)
from dragoman_connections.terminal import print_to
from dragoman_worker.cli.options import AsJson, Config, Set, fail, notify

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman_worker.tuning.why import Limit, LimitsReport

WATCH_S: Final = 5.0
"""Interval of `--watch`: half of the window over which a worker judges its load."""

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Address of the worker's HTTP pages. Without it, http.host and http.port are used.",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="Report every 5 s until Ctrl-C.")]


def why(
    config: Config = None,
    set_: Set = None,
    url: Url = None,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Show what limits a running worker's throughput and which setting changes it.

    Exit status 1: no worker answers.
    """
    from dragoman_worker.tuning.why import NoAnswer, ask

    address = url or _address(config, set_)
    while True:
        try:
            _show(ask(address), as_json=as_json, brief=watch)
        except SettingsError as error:
            fail(2, str(error))
        except NoAnswer as error:
            if not watch:
                fail(1, str(error))
            notify(str(error))
        if not watch:
            return
        try:
            time.sleep(WATCH_S)
        except KeyboardInterrupt:
            return


def _address(config: Config, set_: Set) -> str:
    """Return the worker's address; of all settings only `http.*` is read and validated."""
    from dragoman_worker.settings import HttpSettings

    class Address(DragomanSettings):
        http: HttpSettings = HttpSettings()

    try:
        http = load_settings(Address, config, parse_pairs(set_)).http
    except SettingsError as error:
        fail(2, str(error))
    if http.port == 0:
        fail(2, "http.port is 0 (any free port): give --url with the port from the worker's log")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(http.host, http.host)  # noqa: S104
    return f"http://{host}:{http.port}"


def _show(report: LimitsReport, *, as_json: bool, brief: bool) -> None:
    if as_json:
        print_to(sys.stdout, json.dumps(report.as_json()), flush=True)
        return
    from dragoman_connections.consoles import SafeConsole

    console = SafeConsole(highlight=False, markup=False, emoji=False)
    console.print(f"{report.whole.cause}: {report.whole.sentence}")
    if brief:
        return
    console.print(f"To change: {report.whole.change}")
    _table(console, report)


def _table(console: Console, report: LimitsReport) -> None:
    """Print one row per figure, one column for all replicas and one for each of several.

    Columns that do not fit the terminal are printed in a further table below.
    """
    several = len(report.replicas) > 1
    limits = {"all": report.whole, **report.replicas} if several else {"": report.whole}
    if several:
        console.print()
        for name, limit in report.replicas.items():
            gpus = ", ".join(report.gpus.get(name, ()))
            place = f" (GPU {gpus})" if gpus else ""
            feed = f", {limit.feed}" if limit.feed else ""
            console.print(f"replica {name}{place}: {limit.cause}{feed}")
    columns = [
        (name, *(_cell(limit, key, form) for _, key, form in _ROWS))
        for name, limit in limits.items()
    ]
    width = console.width - _GAP - max(len(label) for label, *_ in _ROWS)
    for part in _parts(columns, width):
        console.print()
        _print_part(console, part, show_header=several)


def _parts(columns: Sequence[Sequence[str]], width: int) -> Iterator[Sequence[Sequence[str]]]:
    """Yield as many columns at a time as fit into `width`, at least one."""
    part: list[Sequence[str]] = []
    left = width
    for column in columns:
        needed = _GAP + max(map(len, column))
        if part and needed > left:
            yield part
            part, left = [], width
        part.append(column)
        left -= needed
    yield part


def _print_part(console: Console, part: Sequence[Sequence[str]], *, show_header: bool) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), show_header=show_header)
    table.add_column("replica", overflow="fold")
    for name, *_ in part:
        table.add_column(name, justify="right", overflow="fold")
    for number, (label, *_) in enumerate(_ROWS, 1):
        table.add_row(label, *(column[number] for column in part))
    console.print(table)


_GAP: Final = 2
_ROWS: Final = (
    ("jobs queued", "queued", "{:,.0f}"),
    ("jobs in flight", "in_flight", "{:,.0f}"),
    ("  waiting for Redis or Kafka", "storing", "{:,.0f}"),
    ("items with a permit", "held", "{:,.0f}"),
    ("  limit", "items", "{:,.0f}"),
    ("sequences running", "running", "{:,.1f}"),
    ("  max_num_seqs", "max_num_seqs", "{:,.0f}"),
    ("  waiting in the engine", "waiting", "{:,.1f}"),
    ("KV cache in use", "kv_cache_usage", "{:.0%}"),
    ("  preempted per second", "preemptions_per_s", "{:.1f}"),
    ("items per second", "items_per_s", "{:,.1f}"),
    ("GPU busy", "gpu_busy", "{:.0%}"),
    ("event loop's CPU", "loop_busy", "{:.0%}"),
    ("  late, s", "loop_late_s", "{:.3f}"),
    ("time without jobs", "empty", "{:.0%}"),
    ("time starved", "starved", "{:.0%}"),
    ("of the last, s", "seconds", "{:.0f}"),
)


def _cell(limit: Limit, name: str, form: str) -> str:
    value = limit.numbers.get(name)
    return "-" if value is None else form.format(value)
