"""A batch that a proxy damages on its way is fetched again, and nothing is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes.job_line import JobLine
from support.services.mock_broker import MockBroker
from support.services.redis_server import RedisServer
from support.services.tcp_proxy import CorruptOneFetch, KafkaProxy

pytestmark = pytest.mark.chaos

PARTITIONS = 3


@pytest.fixture
def fault() -> CorruptOneFetch:
    return CorruptOneFetch(b'"target_lang"', times=2)


@pytest.fixture
def line(fault: CorruptOneFetch, redis_server: RedisServer, tmp_path: Path) -> Iterator[JobLine]:
    with MockBroker(1) as broker:
        broker.create_topic("jobs", PARTITIONS)
        broker.create_topic("jobs-dead", 1)
        with (
            KafkaProxy(int(broker.bootstrap.rpartition(":")[2]), fault) as proxy,
            JobLine(
                tmp_path,
                kafka=f"127.0.0.1:{proxy.port}",
                redis_url=redis_server.url,
                topic="jobs",
                partitions=PARTITIONS,
                settings={"kafka.session_timeout_s": 3},
            ) as made,
        ):
            broker.advertise(1, proxy.port)
            yield made


def test_a_batch_damaged_on_its_way_is_fetched_again_from_the_same_offset(
    line: JobLine, fault: CorruptOneFetch
) -> None:
    ids = line.put(60)
    line.working()
    line.check(ids)
    assert fault.corrupted == 2
    assert line.worker.metric("dragoman_resyncs_total") == 2
    assert line.worker.metric("dragoman_redeliveries_total") == 0
    assert line.worker.running
