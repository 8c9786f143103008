"""An engine that dies at the moment in which a job would enter it makes nobody suspect."""

from __future__ import annotations

import asyncio

from dragoman_schemas.scripts import ClaimAnswer
from dragoman_schemas.wire import open_record
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.outcome import Outcome, Released
from dragoman_worker.ports import Capacity, Claim, ClaimRequest, Delivery
from support.fakes.core import Core, record
from support.fakes.local_jobs import LocalJobs


class ClosingStore(LocalJobs):
    """The engine dies while a claim is under way."""

    permits: Permits | None = None

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        reply = await super().claim(request)
        if self.permits is not None:
            self.permits.close()
        return reply


async def delivered(core: Core) -> Delivery:
    core.consumer.append(record())
    [delivery] = await core.consumer.poll(Capacity(1))
    return delivery


async def closed_as_its_turn_comes(core: Core) -> Outcome:
    """Execute the job behind one in the engine, which leaves it in the step in which it dies."""
    _, executor, _ = core.build()
    inside = await core.permits.acquire("somebody", 1)
    job = asyncio.create_task(executor.execute(await delivered(core)))
    for _ in range(100):  # as far as it comes
        await asyncio.sleep(0)
    assert not job.done()
    core.permits.release(inside)
    core.permits.close()
    outcome, _ = await job
    return outcome


async def test_a_job_let_in_as_the_engine_dies_is_released_without_a_claim() -> None:
    core = Core(permits=Permits(items=1, tokens=100_000))
    assert isinstance(await closed_as_its_turn_comes(core), Released)
    assert core.store.state("a1") is None
    assert core.permits.held_items == 0


async def test_a_suspect_whose_turn_comes_as_the_engine_dies_is_released_without_a_claim() -> None:
    core = Core()
    envelope = open_record(record())
    for nonce in ("crashed0", "crashed1"):
        await core.store.claim(
            ClaimRequest(
                Claim("a1", envelope.fingerprint, nonce),
                origin="dragoman.jobs/0/0",
                queued_at="2030-01-01T00:00:00.000Z",
            )
        )
    assert isinstance(await closed_as_its_turn_comes(core), Released)
    assert core.state().deliveries == 2
    assert sorted(core.state().claims) == ["crashed0", "crashed1"]


async def test_a_job_claimed_as_the_engine_dies_gives_its_claim_back() -> None:
    store = ClosingStore()
    core = Core(store=store)
    store.permits = core.permits
    _, executor, _ = core.build()
    outcome, _ = await executor.execute(await delivered(core))
    assert isinstance(outcome, Released)
    assert core.state().claims == {}
    assert core.engine.requests == []
