"""Odd records do not affect other records; `make odd` and `make fuzz` run all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.odd.cases import cases
from support.odd.field import Field, Round
from support.odd.kept import keep
from support.odd.random_records import Draws
from support.odd.table import line_of
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis, pytest.mark.chaos]
# One per group, and those that once stopped or blocked the worker.
KINDS = (
    "mail like items",
    "protected overlaps",
    "timestamp microseconds",
    "timestamp the largest on rubbish",
    "null header value on rubbish",
    "null header value on an invalid job",
    "header name not UTF-8",
    "replay header 2^53-1",
    "tombstone without key",
    "one record of 400 MB in zstd",
    "40 jobs of 512 items with 8 KiB of context",
    "key of 500 KB on rubbish",
    "key: a result that is no JSON",
    "key: numbers that are none",
    "key of type string",
)
ROUNDS = 4


@pytest.fixture(scope="module")
def field(
    kafka: KafkaBroker, redis_installed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Field]:
    with (
        RedisServer(binary=redis_installed) as server,
        Field(kafka, server, tmp_path_factory.mktemp("odd")) as made,
    ):
        yield made


def judged(row: Round) -> None:
    row.judge(by_clock=False)
    assert not row.problems, line_of(row)


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_record_has_its_required_outcome_and_delays_no_other(
    field: Field, kind: str
) -> None:
    judged(field.run(kind, cases()[kind]()))


def test_random_records_have_outcomes_and_delay_no_other(field: Field, tmp_path: Path) -> None:
    draws = Draws(seed=20)
    for number in range(ROUNDS):
        some = draws.cases(6)
        keep(tmp_path / "round.json", some, seed=20)  # for --replay of run_fuzz.py
        judged(field.run(f"round {number}", *some))
