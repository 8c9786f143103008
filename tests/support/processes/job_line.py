"""A worker, its topic, and checks that every published job ended once and correctly."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import redis

from support.processes.child_process import ChildProcess
from support.processes.waiting import NotInTime, wait_until
from support.processes.worker_process import ForkedWorker, WorkerProcess
from support.services.plain_clients import TERMINAL, DeadLetter, offsets_of, publish, read_all

PATIENCE_S: Final = 60.0
"""Bound of every wait; what holds at all holds within seconds on a quiet machine."""


class JobLine:
    """One topic, one worker on it, and what a program without our packages sees of both.

    `settings` go to the worker (dotted names). `working` starts a worker, and another one after the
    last has died, so that tests can share a line.
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
            _stop(worker)
        self.redis.close()

    # --- the worker -------------------------------------------------------------------------------

    @property
    def worker(self) -> WorkerProcess:
        return self.workers[-1]

    def started(self, **env: str) -> WorkerProcess:
        """Start a worker without waiting until it is ready.

        With `env` it is the command, with a supervisor; otherwise a forked replica.
        """
        kind = WorkerProcess if env else ForkedWorker
        made = kind(
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
        """Return the worker once it claims jobs; start one if none runs."""
        if not self.workers or not self.worker.running:
            self.started()
        return self.worker.ready(PATIENCE_S)

    def stop(self) -> None:
        """Send SIGTERM and wait until it has exited."""
        self.worker.terminate()
        self.worker.wait(timeout_s=30)

    # --- jobs -------------------------------------------------------------------------------------

    def job(self, text: str = "Hello.", **more: Any) -> dict[str, Any]:
        """Return a job with a unique id."""
        job_id = f"{self.topic}.{next(self._numbers)}"
        return {"job_id": job_id, "text": text, "target_lang": "de", "source_lang": "en", **more}

    def put(self, count: int, fault: str = "") -> list[str]:
        """Publish jobs whose text is their id; return the ids once the broker has acknowledged."""
        jobs = [self.job() for _ in range(count)]
        for job in jobs:
            job["text"] = fault + job["job_id"]
        publish(self.kafka, self.topic, jobs)
        return [job["job_id"] for job in jobs]

    def statuses(self, ids: Sequence[str]) -> list[bytes | None]:
        """Return the status in Redis of each job."""
        with self.redis.pipeline(transaction=False) as pipe:
            for job_id in ids:
                pipe.hget(f"dragoman:job:{job_id}", "status")
            return pipe.execute()

    def check(self, ids: Sequence[str], *, timeout_s: float = PATIENCE_S) -> None:
        """Check that all jobs complete with their own text and that everything is committed."""
        self.wait_for_end(ids, timeout_s=timeout_s)
        assert Counter(self.statuses(ids)) == {b"completed": len(ids)}
        wrong = [job_id for job_id in ids if f'"[de] {job_id}"' not in self._result(job_id)]
        assert wrong == []
        self.wait_until_committed(timeout_s=timeout_s)

    def wait_for_end(self, ids: Sequence[str], *, timeout_s: float = PATIENCE_S) -> None:
        """Wait until every job is terminal; raises NotInTime at once when the worker dies."""

        def all_ended() -> bool:
            return set(self.statuses(ids)) <= TERMINAL

        try:
            self.worker.wait_for(all_ended, timeout_s=timeout_s, what="the end of every job")
        except NotInTime as error:
            unfinished = self.open(ids)
            raise NotInTime(
                f"{len(unfinished)} of {len(ids)} open: {unfinished[:5]}\n{error}"
            ) from None

    def open(self, ids: Iterable[str]) -> list[str]:
        """Return the jobs that are not terminal."""
        known = list(ids)
        return [
            job_id
            for job_id, status in zip(known, self.statuses(known), strict=True)
            if status not in TERMINAL
        ]

    def _result(self, job_id: str) -> str:
        raw: Any = self.redis.hget(f"dragoman:job:{job_id}", "result")
        return raw.decode() if raw else ""

    # --- offsets and dead letters -----------------------------------------------------------------

    def committed_in(self, partition: int) -> int:
        """Return the committed offset of one partition, 0 without one."""
        return self.places()[partition][0]

    def end_of(self, partition: int) -> int:
        """Return the end of the log of one partition."""
        return self.places()[partition][1]

    def places(self) -> list[tuple[int, int]]:
        """Return per partition the committed offset and the end of the log."""
        return offsets_of(self.kafka, self.group, self.topic, self.partitions)

    def wait_until_committed(
        self, *, timeout_s: float = PATIENCE_S, except_for: int | None = None
    ) -> None:
        """Wait until the group has committed the end of every partition's log (but one)."""

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

    def dead_letters(self, count: int, *, timeout_s: float = PATIENCE_S) -> list[DeadLetter]:
        """Wait for at least `count` dead letters and return all of them."""
        wait_until(
            lambda: len(read_all(self.kafka, self.dead)) >= count,
            timeout_s=timeout_s,
            what=f"{count} dead letters",
        )
        return read_all(self.kafka, self.dead)


def _stop(worker: ChildProcess) -> None:
    if worker.running:
        worker.kill()
    worker.stop()
