"""What does `dragoman audit` do? It tells whether every record is accounted for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.meter import meter
from dragoman_producer.cli.options import Connection
from dragoman_producer.cli.terminal import ALL_WELL, FAILED, put, put_json, run, say

if TYPE_CHECKING:
    from dragoman_producer.operations.accounting import Broken
    from dragoman_producer.operations.audit import AuditReport

_WIDTH: Final = 60


def audit(
    *,
    show: Annotated[
        int,
        typer.Option("--show", metavar="N", min=0, help="Name at most so many; --json names all."),
    ] = 20,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Check that every record of the jobs' topics is accounted for exactly once. Status 1: not so.

    Reads the topics, Redis and the dead letters, and changes nothing.
    """
    connection = Connection(config, kafka, redis)
    told = 0

    def broken(one: Broken) -> None:
        nonlocal told
        told += 1
        if as_json:
            put_json(_fields(one))
        elif told <= show:
            put(f"{one.account}\t{one.job_id or '-'}\t{one.place}\t{one.why}")

    async def work() -> int:
        from dragoman_producer.operations.audit import audit as run_audit  # keeps --help fast

        settings = connection.settings()
        with meter() as progress:
            report = await run_audit(settings, broken, progress)
        if told > show and not as_json:
            say(f"{told - show:,} more are not shown; --show N or --json names them")
        _tell(report, as_json=as_json)
        return ALL_WELL if report.balances else FAILED

    run(work())


def _tell(report: AuditReport, *, as_json: bool) -> None:
    from dragoman_producer.broker import hidden_topic  # keeps --help fast

    for name in report.missing_topics:
        say(f"dragoman audit: {hidden_topic(name, 'READ')}")
    for unread in report.deleted_unread:
        say(
            f"{unread.topic}/{unread.partition}: {unread.count:,} records from offset "
            f"{unread.first} were deleted by retention before they were worked on"
        )
    if as_json:
        put_json(_summary(report))
    else:
        _put_table(report)


def _fields(one: Broken) -> dict[str, Any]:
    return {
        "account": one.account.value,
        "job_id": one.job_id,
        "place": one.place,
        "why": one.why,
    }


def _summary(report: AuditReport) -> dict[str, Any]:
    from dragoman_producer.operations.accounting import Account

    return {
        "account": "summary",
        "balances": report.balances,
        "records": report.records,
        **{account.value: report.counts.get(account.value, 0) for account in Account},
        "dead_letters": report.dead_letters,
        "dead_letters_aged_out": report.letters_aged_out,
        "deleted_unread": sum(unread.count for unread in report.deleted_unread),
        "seconds": round(report.seconds, 3),
    }


def _put_table(report: AuditReport) -> None:
    from rich.console import Console
    from rich.table import Table

    from dragoman_producer.operations.accounting import BREAKS, Account

    table = Table(width=_WIDTH)
    table.add_column("account")
    table.add_column("records", justify="right")
    table.add_column("")
    for account in Account:
        count = report.counts.get(account.value, 0)
        bad = account in BREAKS and count
        table.add_row(account.value, f"{count:,}", "BROKEN" if bad else "", end_section=False)
    table.add_section()
    table.add_row("all", f"{report.records:,}", "balances" if report.balances else "BROKEN")
    Console(width=_WIDTH).print(table)
    rate = report.records / report.seconds if report.seconds else 0.0
    say(
        f"{report.records:,} records and {report.dead_letters:,} dead letters in "
        f"{report.seconds:.1f} s ({rate:,.0f} records/s)"
    )
