"""The `dragoman topics create` and `topics show` commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dragoman_connections.terminal import counted
from dragoman_producer.cli import options
from dragoman_producer.cli.options import ConnectionOptions
from dragoman_producer.cli.terminal import (
    FAILURE,
    PARTIAL,
    SUCCESS,
    duration,
    flushed,
    print_json,
    print_line,
    print_note,
    run,
)

if TYPE_CHECKING:
    from dragoman_producer.operations.backlog import Backlog
    from dragoman_producer.operations.topics import PartitionState, TopicMade

_EVERY_S: Final = 5.0


def create(
    *,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            min=1,
            metavar="N",
            help="Partitions per topic: the most workers that can share it.",
        ),
    ] = 12,
    retention: Annotated[
        int | None,
        typer.Option(
            "--retention",
            metavar="SECONDS",
            min=60,
            help="Keep records this long; default: redis.live_ttl_s, 7 days.",
        ),
    ] = None,
    dead_letter_retention: Annotated[
        int,
        typer.Option(
            "--dead-letter-retention",
            metavar="SECONDS",
            min=60,
            help="Keep dead letters this long; default: 30 days.",
            show_default=False,
        ),
    ] = 30 * 86_400,
    replication: Annotated[
        int,
        typer.Option(
            "--replication",
            metavar="N",
            min=-1,
            help="Replication factor; -1: the broker's default.",
        ),
    ] = -1,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Create the topics that the settings name; existing topics are not changed.

    Exit status 3: an existing topic has fewer partitions than --partitions.
    """

    async def work() -> int:
        from dragoman_producer.operations import topics  # keeps --help fast

        settings = ConnectionOptions(config, kafka, redis).settings()
        if retention is not None and retention > settings.redis.live_ttl_s:
            print_note(
                f"dragoman topics create: --retention {retention} exceeds redis.live_ttl_s "
                f"({settings.redis.live_ttl_s}): raise that setting, or jobs outlive their keys"
            )
        plan = topics.TopicPlan(partitions, replication, retention, dead_letter_retention)
        made = await topics.create_topics(settings, plan)
        for topic in made:
            _print_topic(topic, as_json=as_json)
        return PARTIAL if any(topic.too_few for topic in made) else SUCCESS

    run(work())


def show(
    *,
    watch: Annotated[
        bool, typer.Option("--watch", help="Print the lag, rate and ETA every 5 s, until Ctrl-C.")
    ] = False,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print the offsets and the lag of every partition, then jobs left, rate and ETA.

    The rate is what live workers announce; with --watch it is measured since the last line.
    """
    connection = ConnectionOptions(config, kafka, redis)
    run(_watch(connection, as_json=as_json) if watch else _show(connection, as_json=as_json))


async def _show(connection: ConnectionOptions, *, as_json: bool) -> int:
    from dragoman_producer.broker import hidden_topic  # keeps --help fast
    from dragoman_producer.operations import topics
    from dragoman_producer.operations.backlog import announced

    settings = connection.settings()
    found = await topics.show_topics(settings)
    _print_partitions(found, as_json=as_json)
    missing = topics.missing_topics(settings, found)
    for name in missing:
        print_note(f"dragoman topics show: {hidden_topic(name, 'DESCRIBE')}")
    if found:
        print_note(_told(await announced(settings, found)))
    return FAILURE if missing and not found else PARTIAL if missing else SUCCESS


async def _watch(connection: ConnectionOptions, *, as_json: bool) -> int:
    from contextlib import aclosing

    from dragoman_producer.operations.backlog import watched  # keeps --help fast

    async with aclosing(watched(connection.settings(), _EVERY_S)) as found:
        async for backlog in found:
            if as_json:
                print_json(backlog.fields())
            else:
                print_line(_told(backlog))
            flushed()
    return SUCCESS


def _told(backlog: Backlog) -> str:
    jobs = f"{counted(backlog.lag, 'job')} left"
    if not backlog.jobs_per_s:
        why = "nothing was settled" if backlog.is_measured else "no live worker announces a rate"
        return f"{jobs}, rate unknown: {why}" if backlog.lag else jobs
    rate = f"{backlog.jobs_per_s:,.1f} jobs/s"
    return f"{jobs}, {rate}, ETA {duration(backlog.eta_s or 0.0)}" if backlog.lag else jobs


def _print_topic(topic: TopicMade, *, as_json: bool) -> None:
    if as_json:
        print_json({"topic": topic.name, "created": topic.created, "partitions": topic.partitions})
    else:
        print_line(f"{topic.name}\t{'created' if topic.created else 'exists'}\t{topic.partitions}")
    if topic.too_few:
        print_note(
            f"topic {topic.name} has {counted(topic.partitions, 'partition')}, not {topic.wanted}, "
            f"so at most {counted(topic.partitions, 'worker')} can share it; "
            "kafka-topics.sh --alter adds more"
        )


def _print_partitions(found: Sequence[PartitionState], *, as_json: bool) -> None:
    """Print a table as narrow as its cells, or objects."""
    if as_json:
        for state in found:
            _print_state(state)
        return
    rows = [("TOPIC", "PARTITION", "FIRST", "NEXT", "COMMITTED", "LAG")] if found else []
    rows += [
        (
            state.topic,
            str(state.partition),
            str(state.first_offset),
            str(state.next_offset),
            "-" if state.committed is None else str(state.committed),
            str(state.lag),
        )
        for state in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for topic, *numbers in rows:
        cells = (each.rjust(width) for each, width in zip(numbers, widths[1:], strict=True))
        print_line("  ".join([topic.ljust(widths[0]), *cells]))


def _print_state(state: PartitionState) -> None:
    print_json(
        {
            "topic": state.topic,
            "partition": state.partition,
            "first_offset": state.first_offset,
            "next_offset": state.next_offset,
            "committed": state.committed,
            "lag": state.lag,
        }
    )
