"""What do `dragoman topics create` and `topics show` do? They look after Kafka's topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dragoman_producer.cli import options
from dragoman_producer.cli.options import Connection
from dragoman_producer.cli.terminal import ALL_WELL, FAILED, PARTLY, put, put_json, run, say

if TYPE_CHECKING:
    from dragoman_producer.operations.topics import PartitionState, TopicMade


def create(
    *,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, help="At most so many workers share a topic.")
    ] = 12,
    retention: Annotated[
        int | None,
        typer.Option(
            "--retention", metavar="SECONDS", min=60, help="Default: redis.live_ttl_s, 7 days."
        ),
    ] = None,
    dead_letter_retention: Annotated[
        int,
        typer.Option(
            "--dead-letter-retention", metavar="SECONDS", min=60, help="Default: 30 days."
        ),
    ] = 30 * 86_400,
    replication: Annotated[
        int, typer.Option("--replication", min=-1, help="Copies of a topic; -1: the broker's own.")
    ] = -1,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Make the topics of the settings. Those that exist are reported and left as they are."""

    async def work() -> int:
        from dragoman_producer.operations import topics  # keeps --help fast

        settings = Connection(config, kafka, redis).settings()
        if retention is not None and retention > settings.redis.live_ttl_s:
            say(
                f"dragoman topics create: --retention {retention} is more than redis.live_ttl_s "
                f"({settings.redis.live_ttl_s}): set that higher, or jobs outlive their keys"
            )
        plan = topics.TopicPlan(partitions, replication, retention, dead_letter_retention)
        made = await topics.create_topics(settings, plan)
        for topic in made:
            _tell_made(topic, as_json=as_json)
        return PARTLY if any(topic.too_few for topic in made) else ALL_WELL

    run(work())


def show(
    *,
    as_json: options.AsJson = False,
    config: options.Config = None,
    kafka: options.Kafka = None,
    redis: options.Redis = None,
) -> None:
    """Print every partition: its offsets, and how far the workers' group is behind."""

    async def work() -> int:
        from dragoman_producer.broker import hidden_topic  # keeps --help fast
        from dragoman_producer.operations import topics

        settings = Connection(config, kafka, redis).settings()
        found = await topics.show_topics(settings)
        if not as_json and found:
            put(_row("TOPIC", "PARTITION", "FIRST", "NEXT", "COMMITTED", "LAG"))
        for partition in found:
            _tell_partition(partition, as_json=as_json)
        missing = topics.missing_topics(settings, found)
        for name in missing:
            say(f"dragoman topics show: {hidden_topic(name, 'DESCRIBE')}")
        return FAILED if missing and not found else PARTLY if missing else ALL_WELL

    run(work())


def _tell_made(topic: TopicMade, *, as_json: bool) -> None:
    if as_json:
        put_json({"topic": topic.name, "created": topic.created, "partitions": topic.partitions})
    else:
        put(f"{topic.name}\t{'created' if topic.created else 'exists'}\t{topic.partitions}")
    if topic.too_few:
        say(
            f"topic {topic.name} has {topic.partitions} partitions, {topic.wanted} were asked for: "
            f"at most {topic.partitions} workers can share it; kafka-topics.sh --alter adds more"
        )


def _tell_partition(state: PartitionState, *, as_json: bool) -> None:
    if as_json:
        put_json(
            {
                "topic": state.topic,
                "partition": state.partition,
                "first_offset": state.first_offset,
                "next_offset": state.next_offset,
                "committed": state.committed,
                "lag": state.lag,
            }
        )
        return
    committed = "-" if state.committed is None else state.committed
    put(
        _row(
            state.topic,
            state.partition,
            state.first_offset,
            state.next_offset,
            committed,
            state.lag,
        )
    )


def _row(topic: str, *numbers: object) -> str:
    return f"{topic:<32}" + "".join(f"{number!s:>12}" for number in numbers)
