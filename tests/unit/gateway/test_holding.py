"""Requests are held while their job runs; leaving and asking again never pay twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman_producer.errors import BrokerUnreachable, StoreUnreachable
from dragoman_producer.handle import JobHandle
from dragoman_producer.state import JobState
from dragoman_producer.testing import InMemoryClient
from dragoman_schemas.jobs import TranslationJob
from dragoman_schemas.results import JobStatus
from support.fakes.played_gateway import PlayedGateway, write_keys

ASKED = {"text": "Hello.", "source_lang": "EN", "target_lang": "DE"}


class Queue(InMemoryClient):
    """A client whose jobs stay queued until `run_all`; it tells when one is submitted."""

    def __init__(self, *, state: JobState | None = None, fails: int = 0) -> None:
        super().__init__(held=True)
        self.arrived = asyncio.Event()
        self._first_state = state
        self._fails = fails

    async def submit(self, job: TranslationJob, **more: Any) -> JobHandle:
        if self._fails:
            self._fails -= 1
            raise BrokerUnreachable("Kafka at secret-host:9092 could not be reached")
        handle = await super().submit(job, **more)
        self.arrived.set()
        return handle

    async def state(self, job_id: str) -> JobState | None:
        found = await super().state(job_id)
        return found or self._first_state


async def test_a_request_is_held_until_its_job_ends() -> None:
    queue = Queue()
    async with PlayedGateway(queue) as gateway:
        asked = asyncio.create_task(gateway.post("/v2/translate", ASKED))
        await queue.arrived.wait()
        assert not asked.done()
        await queue.run_all()
        status, _ = await asked
    assert status == 200


async def test_equal_requests_at_once_are_one_job() -> None:
    queue = Queue()
    async with PlayedGateway(queue) as gateway:
        asked = [asyncio.create_task(gateway.post("/v2/translate", ASKED)) for _ in range(20)]
        await queue.arrived.wait()
        await queue.run_all()
        answers = await asyncio.gather(*asked)
    assert {status for status, _ in answers} == {200}
    assert len(queue.submitted) == 1


async def test_a_client_that_leaves_and_asks_again_meets_the_same_job() -> None:
    queue = Queue()
    async with PlayedGateway(queue) as gateway:
        for _ in range(3):
            queue.arrived.clear()
            with pytest.raises(TimeoutError):
                await gateway.post("/v2/translate", ASKED, timeout=aiohttp.ClientTimeout(total=0.3))
        await gateway.front.emptied(10)  # the gateway notices that they left
        await queue.run_all()
        status, _ = await gateway.post("/v2/translate", ASKED)
    assert status == 200
    assert len(queue.submitted) == 1


async def test_a_client_that_leaves_while_its_job_is_published_does_not_stop_that() -> None:
    class Slow(Queue):
        async def submit(self, job: TranslationJob, **more: Any) -> JobHandle:
            entered.set()
            await released.wait()
            return await super().submit(job, **more)

    entered, released = asyncio.Event(), asyncio.Event()
    queue = Slow()
    async with PlayedGateway(queue) as gateway:
        asked = asyncio.create_task(gateway.post("/v2/translate", ASKED))
        await entered.wait()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await gateway.front.emptied(10)
        released.set()
        await asyncio.wait_for(queue.arrived.wait(), 10)
    assert len(queue.submitted) == 1


async def test_when_the_hold_is_over_the_caller_is_told_to_ask_again() -> None:
    queue = Queue()
    async with PlayedGateway(queue, hold_s=0.1) as gateway:
        async with gateway.http.post("/v2/translate", json=ASKED) as response:
            status, again = response.status, response.headers["Retry-After"]
            body = await response.json()
        await queue.run_all()
        found, _ = await gateway.post("/v2/translate", ASKED)
    assert (status, again, found) == (503, "1", 200)
    assert body == {"message": "The service is busy; the request continues. Ask again."}
    assert len(queue.submitted) == 1


@pytest.mark.parametrize("status", ["queued", "running"])
async def test_a_job_of_another_gateway_is_awaited_and_not_submitted(status: str) -> None:
    queue = Queue(state=JobState(status))
    now = datetime.now(UTC)
    async with PlayedGateway(queue, hold_s=0.1, queued_at=now) as gateway:
        found, _ = await gateway.post("/v2/translate", ASKED)
    assert (found, queue.submitted) == (503, [])


async def test_a_job_whose_gateway_died_before_it_was_published_is_submitted() -> None:
    queue = Queue(state=JobState(JobStatus.QUEUED))
    before = datetime.now(UTC) - timedelta(seconds=61)
    async with PlayedGateway(queue, hold_s=0.1, queued_at=before) as gateway:
        for _ in range(3):
            await gateway.post("/v2/translate", ASKED)
    assert len(queue.submitted) == 1


async def test_a_job_that_was_cancelled_is_submitted_again() -> None:
    queue = Queue()
    async with PlayedGateway(queue, hold_s=0.1) as gateway:
        await gateway.post("/v2/translate", ASKED)
        await queue.cancel_job(queue.submitted[0].job_id)
        first, _ = await gateway.post("/v2/translate", ASKED)  # tells of the cancelled run
        await gateway.post("/v2/translate", ASKED)
        await queue.run_all()
        last, _ = await gateway.post("/v2/translate", ASKED)
    assert (first, last) == (503, 200)
    assert len(queue.submitted) == 2


async def test_a_broker_that_is_away_is_told_without_its_address() -> None:
    queue = Queue(fails=1)
    async with PlayedGateway(queue, hold_s=0.1) as gateway:
        async with gateway.http.post("/v2/translate", json=ASKED) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "5")
            assert "secret-host" not in await response.text()
        await gateway.post("/v2/translate", ASKED)
    assert len(queue.submitted) == 1


async def test_a_redis_that_is_away_is_told() -> None:
    class Away(InMemoryClient):
        async def state(self, job_id: str) -> JobState | None:
            raise StoreUnreachable(f"Redis is away ({job_id})")

    async with PlayedGateway(Away()) as gateway:
        status, body = await gateway.post("/v2/translate", ASKED)
    assert status == 503
    assert body == {"message": "The translation queue cannot be reached. Ask again."}


async def test_a_deadline_is_in_the_job_and_not_in_its_id() -> None:
    async with PlayedGateway() as one, PlayedGateway(text_deadline_s=60) as other:
        await one.post("/v2/translate", ASKED)
        await other.post("/v2/translate", ASKED)
        (first,), (second,) = one.client.submitted, other.client.submitted
    assert first.job_id == second.job_id
    assert first.deadline is not None
    assert second.deadline is not None
    assert first.deadline > second.deadline


async def test_while_it_drains_held_requests_are_answered() -> None:
    queue = Queue()
    async with PlayedGateway(queue) as gateway:
        asked = asyncio.create_task(gateway.post("/v2/translate", ASKED))
        await queue.arrived.wait()
        gateway.front.draining = True
        await gateway.jobs.close()
        status, _ = await asked
        await gateway.front.emptied(10)
    assert status == 503


async def test_a_submission_that_takes_long_counts_into_the_hold() -> None:
    class Slow(Queue):
        async def submit(self, job: TranslationJob, **more: Any) -> JobHandle:
            await asyncio.sleep(0.3)
            return await super().submit(job, **more)

    queue = Slow()
    async with PlayedGateway(queue, hold_s=0.1) as gateway:
        status, _ = await gateway.post("/v2/translate", ASKED)
        await asyncio.wait_for(queue.arrived.wait(), 10)
    assert (status, len(queue.submitted)) == (503, 1)


async def test_a_job_has_room_of_its_key_until_it_ends_also_if_its_caller_left(
    tmp_path: Path,
) -> None:
    keys = write_keys(tmp_path, "s3cret\nmax_in_flight = 1")
    queue, headers = Queue(), {"Authorization": "DeepL-Auth-Key s3cret"}
    async with PlayedGateway(queue, keys_file=keys, patience_s=0.1) as gateway:
        soon = aiohttp.ClientTimeout(total=0.3)
        with pytest.raises(TimeoutError):
            await gateway.post("/v2/translate", ASKED, headers=headers, timeout=soon)
        other = {**ASKED, "text": "Another text."}
        full, _ = await gateway.post("/v2/translate", other, headers=headers)
        await queue.run_all()
        same, _ = await gateway.post("/v2/translate", ASKED, headers=headers)
        queue.arrived.clear()
        later = asyncio.create_task(gateway.post("/v2/translate", other, headers=headers))
        await queue.arrived.wait()
        await queue.run_all()
        free, _ = await later
    assert (full, same, free) == (429, 200, 200)
