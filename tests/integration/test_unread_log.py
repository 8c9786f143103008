"""A log that nobody reads costs lines and no job, and a closed terminal drains the worker."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
import redis

from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import committed, ended, job, publish
from support.services.redis_server import RedisServer

JOBS = 60


class UnreadWorker(WorkerProcess):
    """A worker whose stderr is a full pipe, or closed."""

    reading: int | None = None

    def start(self) -> Self:
        self.reading, full = os.pipe()
        os.set_blocking(full, False)
        with suppress(BlockingIOError):
            while True:
                os.write(full, bytes(4096))
        os.set_blocking(full, True)
        self._start(stdout=full, stderr=full)
        os.close(full)
        return self

    def _start(self, **how: Any) -> None:
        self.log.touch()
        env = {**os.environ, **self.env}
        stdin = subprocess.DEVNULL
        self._process = subprocess.Popen(
            self.argv, env=env, stdin=stdin, start_new_session=True, **how
        )

    def lose_reader(self) -> None:
        """Close the pipe's other end, as `| head` does."""
        if self.reading is not None:
            os.close(self.reading)


class MuteWorker(UnreadWorker):
    """A worker that was started without stdout and stderr."""

    def start(self) -> Self:
        self._start(preexec_fn=lambda: os.closerange(1, 3))
        return self


@pytest.mark.parametrize(
    ("kind", "number"), [(UnreadWorker, signal.SIGHUP), (MuteWorker, signal.SIGTERM)]
)
def test_jobs_complete_and_a_signal_drains_whoever_reads_the_log(
    kind: type[UnreadWorker],
    number: signal.Signals,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    name = topic()
    kafka.create_topic(f"{name}-dead", 1)
    settings = {"log.jobs": True, "limits.partition_span": JOBS}
    worker = kind(
        tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, topic=name, settings=settings
    )

    def all_committed() -> bool:
        done, end = committed(kafka.bootstrap, f"{name}-group", name, 1)
        return done == end

    def work(prefix: str) -> None:
        """Let more jobs complete than fit into the partition's span, after a rejected record."""
        jobs: list[bytes | dict[str, Any]] = [
            {"job_id": f"{prefix}{each}", "text": "a text", "target_lang": "de"}
            for each in range(3 * JOBS)
        ]
        publish(kafka.bootstrap, name, [b"rubbish", *jobs])
        worker.wait_for(all_committed, timeout_s=40, what="all committed")
        assert worker.get("/livez")[0] == 200

    with worker, redis.Redis.from_url(redis_server.url) as client:
        worker.ready(60)
        work("unread")
        worker.lose_reader()
        work("alone")
        wait_until(
            lambda: worker.metric("dragoman_log_lines_dropped_total"), timeout_s=20, what="counted"
        )
        slow = {"job_id": "slow", "text": "#!sleep 2\nslow", "target_lang": "de"}
        publish(kafka.bootstrap, name, [slow])
        wait_until(
            lambda: worker.metric("dragoman_items_in_flight"), timeout_s=20, what="in the engine"
        )
        for _ in range(1 + (number is signal.SIGHUP)):  # the shell and the kernel may each send it
            os.killpg(worker.pid, number)
        assert worker.wait(timeout_s=30) == 0
        assert ended(client, "slow")["status"] == "completed"
        assert job(client, "slow")["deliveries"] == "1", "the replica was drained"
