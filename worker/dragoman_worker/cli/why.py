"""What does a person type to learn why it is no faster? `dragoman-worker why`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman_connections.settings import DragomanSettings, SettingsError, load_settings
from dragoman_worker.cli.options import Config, Set, fail, named, say

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman_worker.tuning.why import Limit, Report

WATCH_S: Final = 5.0
"""Half of the window by which a worker judges."""

Url = Annotated[
    str | None,
    typer.Option("--url", help="Where the worker tells; http.host and http.port if not given."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Watch = Annotated[bool, typer.Option("--watch", help="Ask every 5 s, until Ctrl-C.")]


def why(
    config: Config = None,
    set_: Set = None,
    url: Url = None,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Say what limits the running worker's throughput now, and which setting would change it."""
    from dragoman_worker.tuning.why import NoAnswer, ask  # noqa: PLC0415  `--help` needs none

    place = url or _place(config, set_)
    while True:
        try:
            _show(ask(place), as_json=as_json, brief=watch)
        except SettingsError as error:
            fail(2, str(error))
        except NoAnswer as error:
            if not watch:
                fail(1, str(error))
            say(str(error))
        if not watch:
            return
        try:
            time.sleep(WATCH_S)
        except KeyboardInterrupt:
            return


def _place(config: Config, set_: Set) -> str:
    """Of all settings only these two: nobody needs a model to ask."""
    from dragoman_worker.settings import HttpSettings  # noqa: PLC0415

    class Place(DragomanSettings):
        http: HttpSettings = HttpSettings()

    try:
        http = load_settings(Place, config, named(set_)).http
    except SettingsError as error:
        fail(2, str(error))
    if http.port == 0:
        fail(
            2, "http.port is 0, any free one: give --url with the port that the worker's log tells"
        )
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(http.host, http.host)  # noqa: S104
    return f"http://{host}:{http.port}"


def _show(report: Report, *, as_json: bool, brief: bool) -> None:
    if as_json:
        print(json.dumps(report.as_json()), flush=True)  # noqa: T201  it is what was asked for
        return
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(f"{report.whole.cause}: {report.whole.sentence}")
    if brief:
        return
    console.print(f"To change: {report.whole.change}")
    _table(console, report)


def _table(console: Console, report: Report) -> None:
    """A reading a line; a column for the whole, and one for each of several replicas.

    Columns that the terminal has no room for come in a table below.
    """
    several = len(report.replicas) > 1
    limits = {"all": report.whole, **report.replicas} if several else {"": report.whole}
    if several:
        console.print()
        for name, limit in report.replicas.items():
            console.print(f"replica {name}: {limit.cause}{f', {limit.feed}' if limit.feed else ''}")
    columns = [
        (name, *(_cell(limit, reading, form) for _, reading, form in _ROWS))
        for name, limit in limits.items()
    ]
    room = console.width - _GAP - max(len(label) for label, *_ in _ROWS)
    for part in _parts(columns, room):
        console.print()
        _print_part(console, part, show_header=several)


def _parts(columns: Sequence[Sequence[str]], room: int) -> Iterator[Sequence[Sequence[str]]]:
    """As many columns at a time as fit, and at least one."""
    part: list[Sequence[str]] = []
    left = room
    for column in columns:
        width = _GAP + max(map(len, column))
        if part and width > left:
            yield part
            part, left = [], room
        part.append(column)
        left -= width
    yield part


def _print_part(console: Console, part: Sequence[Sequence[str]], *, show_header: bool) -> None:
    from rich.table import Table  # noqa: PLC0415

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
    ("  at Redis or Kafka", "storing", "{:,.0f}"),
    ("items with a permit", "held", "{:,.0f}"),
    ("  may have one", "items", "{:,.0f}"),
    ("sequences running", "running", "{:,.1f}"),
    ("  max_num_seqs", "max_num_seqs", "{:,.0f}"),
    ("  waiting inside", "waiting", "{:,.1f}"),
    ("KV cache in use", "kv_cache_usage", "{:.0%}"),
    ("  preempted a second", "preemptions_per_s", "{:.1f}"),
    ("items a second", "items_per_s", "{:,.1f}"),
    ("GPU busy", "gpu_busy", "{:.0%}"),
    ("event loop's CPU", "loop_busy", "{:.0%}"),
    ("  late, s", "loop_late_s", "{:.3f}"),
    ("time without jobs", "empty", "{:.0%}"),
    ("time starved", "starved", "{:.0%}"),
    ("of the last, s", "seconds", "{:.0f}"),
)


def _cell(limit: Limit, reading: str, form: str) -> str:
    value = limit.numbers.get(reading)
    return "-" if value is None else form.format(value)
