"""The `dragoman audit` command: check that every record is accounted for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    SUCCESS,
    meter,
    print_json,
    print_line,
    print_note,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.operations.accounting import Broken
    from dragoman_producer.operations.audit import AuditReport

_WIDTH: Final = 60


def audit(
    *,
    show: Annotated[
        int,
        typer.Option(
            "--show",
            metavar="N",
            min=0,
            help="Print at most N broken records; --json prints them all.",
        ),
    ] = 20,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Check that every record is accounted for exactly once.

    Reads the topics, Redis and the dead letters, and changes nothing. Exit status 1: a record is
    lost, stuck, deleted unread or without its dead letter, or a topic is missing.
    """
    connection = ConnectionOptions(config, kafka, redis)
    reported = 0

    def broken(one: Broken) -> None:
        nonlocal reported
        reported += 1
        if as_json:
            print_json(_fields(one))
        elif reported <= show:
            print_line(f"{one.account}\t{one.job_id or '-'}\t{one.place}\t{one.why}")

    async def work() -> int:
        from dragoman_producer.operations.audit import audit as run_audit  # keeps --help fast

        settings = connection.settings()
        with meter() as progress:
            report = await run_audit(settings, broken, progress)
        if reported > show and not as_json:
            print_note(f"{reported - show:,} more are not shown; use --show N or --json")
        _print_report(report, as_json=as_json)
        return SUCCESS if report.balances else FAILURE

    run(work())


def _print_report(report: AuditReport, *, as_json: bool) -> None:
    from dragoman_producer.broker import hidden_topic  # keeps --help fast

    for name in report.missing_topics:
        print_note(f"dragoman audit: {hidden_topic(name, 'READ')}")
    for unread in report.deleted_unread:
        print_note(
            f"{unread.topic}/{unread.partition}: retention deleted "
            f"{counted(unread.count, 'record')} from offset {unread.first} before they were settled"
        )
    if as_json:
        print_json(_summary(report))
    else:
        _print_table(report)


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
        "dead_letters_aged_out": report.dead_letters_aged_out,
        "deleted_unread": sum(unread.count for unread in report.deleted_unread),
        "workers": [each._asdict() for each in report.workers],
        "seconds": round(report.seconds, 3),
    }


def _print_table(report: AuditReport) -> None:
    from rich.table import Table

    from dragoman_connections.consoles import SafeConsole
    from dragoman_producer.operations.accounting import BREAKS, Account

    table = Table(width=_WIDTH)
    table.add_column("account")
    table.add_column("records", justify="right")
    table.add_column("result")
    for account in Account:
        count = report.counts.get(account.value, 0)
        bad = account in BREAKS and count
        table.add_row(account.value, f"{count:,}", "BROKEN" if bad else "", end_section=False)
    table.add_section()
    table.add_row("all", f"{report.records:,}", "balances" if report.balances else "BROKEN")
    SafeConsole(width=_WIDTH).print(table)
    if report.workers:
        jobs = sum(each.jobs_per_s for each in report.workers)
        print_note(f"{counted(len(report.workers), 'live worker')}, {jobs:,.1f} jobs/s")
    rate = report.records / report.seconds if report.seconds else 0.0
    print_note(
        f"{counted(report.records, 'record')} and {counted(report.dead_letters, 'dead letter')} in "
        f"{report.seconds:.1f} s ({rate:,.0f} records/s)"
    )
