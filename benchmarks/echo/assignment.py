"""CPU that a group's leader needs to assign the partitions, by the size of the group.

usage: assignment.py [--members 4,16,100,400] [--out rows.jsonl]

aiokafka's sticky assignor, which the workers use; nothing else. `begins` is a new group,
`joins` the rebalance after one more member has joined: the others keep their partitions. CPU
seconds of one process; the leader of a group is a worker, whose event loop is blocked for as long.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from harness import append, table

TOPIC = "jobs"


class Topic:
    """Part of aiokafka's cluster metadata that the assignor reads: one topic."""

    def __init__(self, partitions: int) -> None:
        self._partitions = set(range(partitions))

    def topics(self) -> set[str]:
        return {TOPIC}

    def partitions_for_topic(self, topic: str) -> set[int]:
        del topic
        return self._partitions


def shared_out(members: Mapping[str, Any], partitions: int) -> tuple[dict[str, Any], float]:
    began = time.process_time()
    assignment: dict[str, Any] = StickyPartitionAssignor.assign(Topic(partitions), members)
    return assignment, time.process_time() - began


def member_metadata(partitions: list[TopicPartition]) -> Any:
    """Return the metadata that a member sends about its partitions."""
    return StickyPartitionAssignor._metadata({TOPIC}, partitions, 1)  # noqa: SLF001


def still_assigned(each: Any) -> list[TopicPartition]:
    """Return the partitions that an assignment gives to a member."""
    return [TopicPartition(topic, number) for topic, own in each.assignment for number in own]


def measure(members: int, partitions: int) -> dict[str, Any]:
    """Measure a new group of the given size, and one more member that joins it."""
    new = {f"member-{number}": member_metadata([]) for number in range(members)}
    assignment, begins = shared_out(new, partitions)
    again = {name: member_metadata(still_assigned(each)) for name, each in assignment.items()}
    again["member-new"] = member_metadata([])
    after, joins = shared_out(again, partitions)
    kept = sum(
        len({*still_assigned(assignment[name])} & {*still_assigned(after[name])})
        for name in assignment
    )
    return {
        "members": members,
        "partitions": partitions,
        "begins_s": begins,
        "joins_s": joins,
        "moved": partitions - kept,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", default="4,16,100,400")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = [measure(int(number), 2 * int(number)) for number in given.members.split(",")]
    for row in rows:
        append(given.out, row)
    print(table(rows, "members", ("partitions", "begins_s", "joins_s", "moved")))


if __name__ == "__main__":
    main()
