"""Did every job that was put on a topic end, once and right? A worker, its topic and a ledger."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import redis
from confluent_kafka import Consumer, TopicPartition

from support.processes.child_process import ChildProcess
from support.processes.waiting import NotInTime, wait_until
from support.processes.worker_process import WorkerProcess
from support.services.plain_clients import TERMINAL, DeadLetter, publish, read_all

PATIENCE_S: Final = 60.0
"""For machines with little to spare; what holds at all holds within seconds."""


class JobLine:
    """One topic, one worker on it, and the views that a foreign program has of both.

    `settings` go to the worker (dotted names). The worker starts with `working`, which starts
    another one where the last has died, so that tests can share a line.
    """

    def __init__(
        self,
        folder: Path,
        *,
        kafka: str,
        redis_url: str,
        topic: str,
        partitions: int,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.kafka = kafka
        self.redis_url = redis_url
        self.topic = topic
        self.group = f"{topic}-group"
        self.dead = f"{topic}-dead"
        self.partitions = partitions
        self.redis = redis.Redis.from_url(redis_url)
        self.workers: list[WorkerProcess] = []
        self._folder = folder
        self._settings = settings or {}
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self.workers:
            _end(worker)
        self.redis.close()

    # --- the worker -------------------------------------------------------------------------------

    @property
    def worker(self) -> WorkerProcess:
        return self.workers[-1]

    def started(self, **env: str) -> WorkerProcess:
        """A new worker, which need not be ready yet."""
        made = WorkerProcess(
            self._folder,
            kafka=self.kafka,
            redis=self.redis_url,
            topic=self.topic,
            settings=self._settings,
            name=f"worker-{len(self.workers)}",
            env=env,
        )
        made.start()
        self.workers.append(made)
        return made

    def working(self) -> WorkerProcess:
        """The worker, started if none runs, ready to take jobs."""
        if not self.workers or not self.worker.running:
            self.started()
        return self.worker.ready(PATIENCE_S)

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self.worker.terminate()
        self.worker.wait(timeout_s=30)

    # --- jobs -------------------------------------------------------------------------------------

    def job(self, text: str = "Hello.", **more: Any) -> dict[str, Any]:
        """A job with an id that no other has."""
        job_id = f"{self.topic}.{next(self._numbers)}"
        return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en", **more}

    def put(self, count: int, fault: str = "") -> list[str]:
        """Publish jobs whose text is their id; the ids once the broker has acknowledged them."""
        jobs = [self.job() for _ in range(count)]
        for job in jobs:
            job["text"] = fault + job["job_id"]
        publish(self.kafka, self.topic, jobs)
        return [job["job_id"] for job in jobs]

    def statuses(self, ids: Sequence[str]) -> list[bytes | None]:
        """The status in Redis of each job."""
        with self.redis.pipeline(transaction=False) as pipe:
            for job_id in ids:
                pipe.hget(f"dragoman:job:{job_id}", "status")
            return pipe.execute()

    def check(self, ids: Sequence[str], *, timeout_s: float = PATIENCE_S) -> None:
        """All jobs complete with their own text, everything is committed, the worker lives."""
        self.wait_for_end(ids, timeout_s=timeout_s)
        assert Counter(self.statuses(ids)) == {b"completed": len(ids)}
        wrong = [job_id for job_id in ids if f'"[de] {job_id}"' not in self._result(job_id)]
        assert wrong == []
        self.wait_until_committed(timeout_s=timeout_s)

    def wait_for_end(self, ids: Sequence[str], *, timeout_s: float = PATIENCE_S) -> None:
        """Return once every job is terminal; fails at once when the worker dies."""

        def all_ended() -> bool:
            return set(self.statuses(ids)) <= TERMINAL

        try:
            self.worker.wait_for(all_ended, timeout_s=timeout_s, what="the end of every job")
        except NotInTime as error:
            open_ones = self.open(ids)
            raise NotInTime(
                f"{len(open_ones)} of {len(ids)} open: {open_ones[:5]}\n{error}"
            ) from None

    def open(self, ids: Iterable[str]) -> list[str]:
        """The jobs that are not terminal."""
        known = list(ids)
        return [
            job_id
            for job_id, status in zip(known, self.statuses(known), strict=True)
            if status not in TERMINAL
        ]

    def _result(self, job_id: str) -> str:
        raw: Any = self.redis.hget(f"dragoman:job:{job_id}", "result")
        return raw.decode() if raw else ""

    # --- offsets and letters ----------------------------------------------------------------------

    def committed_in(self, partition: int) -> int:
        """What the group has committed in one partition; 0 if nothing."""
        return self.places()[partition][0]

    def end_of(self, partition: int) -> int:
        """The end of the log of one partition."""
        return self.places()[partition][1]

    def places(self) -> list[tuple[int, int]]:
        """By partition: what the group has committed, and the end of the log."""
        consumer = Consumer({"bootstrap.servers": self.kafka, "group.id": self.group})
        try:
            asked = [TopicPartition(self.topic, number) for number in range(self.partitions)]
            return [
                (max(0, place.offset), consumer.get_watermark_offsets(place, timeout=10)[1])
                for place in consumer.committed(asked, timeout=10)
            ]
        finally:
            consumer.close()

    def wait_until_committed(
        self, *, timeout_s: float = PATIENCE_S, except_for: int | None = None
    ) -> None:
        """Return once the group has committed the end of the log of every partition (but one)."""

        def all_committed() -> bool:
            return all(
                done == end
                for number, (done, end) in enumerate(self.places())
                if number != except_for
            )

        try:
            self.worker.wait_for(all_committed, timeout_s=timeout_s, what="committed == end")
        except NotInTime as error:
            raise NotInTime(f"(committed, end) = {self.places()}\n{error}") from None

    def letters(self, count: int, *, timeout_s: float = PATIENCE_S) -> list[DeadLetter]:
        """The dead letters once there are so many."""
        wait_until(
            lambda: len(read_all(self.kafka, self.dead)) >= count,
            timeout_s=timeout_s,
            what=f"{count} dead letters",
        )
        return read_all(self.kafka, self.dead)


def _end(worker: ChildProcess) -> None:
    if worker.running:
        worker.kill()
    worker.stop()
