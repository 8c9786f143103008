"""What follows a finish publishes the result that stands, once it is durable."""

from __future__ import annotations

import pytest

from dragoman_schemas.results import JobStatus, TerminalStatus
from dragoman_schemas.wire import open_record
from dragoman_worker.errors import Conflict, PermanentEngineError, Unavailable
from dragoman_worker.job.outcome import Completed, Rejected
from dragoman_worker.job.settling import Settler
from dragoman_worker.ports import Delivery
from support.builders.store_calls import claim_of, request, result
from support.fakes.core import Core, record
from support.fakes.local_jobs import JobState, LocalJobs
from support.fakes.scripted_engine import Says
from support.fakes.traced import traced

DOCUMENT = {"document_id": "d1", "index": 3, "total": 9}


async def test_event_progress_results_and_duplicates_are_told_the_result_that_stands() -> None:
    """Another worker failed the job first; ours completes it, and is refused."""
    ours = Core(worker_id="ours")
    theirs = Core(worker_id="theirs", store=ours.store)
    theirs.engine.script("one two", PermanentEngineError("never"))
    released = ours.engine.hold("one two")
    for _ in range(3):  # two exact duplicates wait for the first
        ours.consumer.append(record(document=DOCUMENT))
    theirs.consumer.append(record(document=DOCUMENT))
    async with ours.working():
        await ours.inside("one two")
        await theirs.run_all()
        ours.store.events.clear()
        released.set()
        await ours.all_completed()
    assert ours.state().status is JobStatus.FAILED
    assert ours.store.events == [("a1", "failed")] * 3
    assert ours.store.documents["d1"].completed == set()
    assert ours.results.results == [ours.state().result] * 3
    assert len(ours.engine.requests) == 1


async def test_an_id_that_ran_out_and_was_used_again_is_a_conflict() -> None:
    """The record becomes a dead letter; only its own record publishes the other job's result."""
    now = [1_000.0]
    core = Core(store=LocalJobs(live_ttl_s=60, clock=lambda: now[0]))
    released = core.engine.hold("one two")
    core.consumer.append(record(document=DOCUMENT))
    async with core.working():
        await core.inside("one two")
        now[0] += 61
        wanted = request(fingerprint="0" * 64, origin="dragoman.jobs/7/7")
        other = claim_of(wanted, await core.store.claim(wanted))
        await core.store.finish(other, result(text="OTHER", fingerprint="0" * 64))
        core.store.events.clear()
        released.set()
        await core.all_completed()
    assert [letter.code for letter in core.dead_letters.letters] == ["conflict"]
    assert core.texts() == ["OTHER"]
    assert (core.store.events, core.store.documents, core.results.results) == ([], {}, [])


async def test_a_failed_job_whose_id_was_used_again_has_its_one_dead_letter() -> None:
    now = [1_000.0]
    core = Core(store=LocalJobs(live_ttl_s=60, clock=lambda: now[0]))
    held = core.engine.hold("one two")
    core.consumer.append(record())
    async with core.working():
        await core.inside("one two")
        core.engine.script("one two", PermanentEngineError("never"))
        now[0] += 61
        await core.store.claim(request(fingerprint="0" * 64))
        core.engine.script("one two", PermanentEngineError("never"))
        held.set()
        await core.all_completed()
    assert len(core.dead_letters.letters) == 1
    assert core.state().status is JobStatus.RUNNING
    assert core.store.events == []


@pytest.mark.parametrize(
    "document",
    [
        {"document_id": "d1", "index": 9_999_999, "total": 10_000_000},
        {"document_id": "d1", "index": 1_000_000, "total": 1_000_000},
        {"document_id": "d1", "index": -1, "total": 1},
        {"document_id": "d" * 111, "index": 0, "total": 1},
        {"document_id": "d 1", "index": 0, "total": 1},
        {"document_id": "d1", "index": 2**60, "total": 2**61},
    ],
    ids=repr,
)
async def test_a_place_in_a_document_beyond_the_bounds_sets_no_bit(document: object) -> None:
    """Bit 9,999,999 of a fresh document keeps 2.5 MB in Redis for a week."""
    core = Core()
    core.consumer.append(record(document=document))
    await core.run_all()
    assert [letter.code for letter in core.dead_letters.letters] == ["invalid_job"]
    assert core.store.documents == {}


async def test_a_lone_surrogate_from_the_engine_fails_its_item_alone() -> None:
    core = Core()
    core.engine.script("bad", *[Says("a\ud800")] * 3)
    core.consumer.append(record("a1", text=["good", "bad"]))
    core.consumer.append(record("a2"))
    await core.run_all()
    assert [letter.code for letter in core.dead_letters.letters] == ["engine_failed"]
    assert core.texts("a1") == ["GOOD", None]
    assert core.state("a2").status is JobStatus.COMPLETED


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_a_result_that_cannot_be_encoded_fails_its_job_alone(status: TerminalStatus) -> None:
    """Whatever wrote it: the store refuses it behind the executor's own handling of defects."""
    core = Core()
    wanted = request()
    claim = claim_of(wanted, await core.store.claim(wanted))
    broken = result(status, text="a\ud800", warnings=["b\udfff"])
    outcome: Completed | Rejected = Completed(broken, claim, claim.ttl_s)
    if status == "failed":
        outcome = Rejected(PermanentEngineError("c\ud800"), broken, claim, job_id="a1")
    settler = Settler(
        store=core.store,
        dead_letters=core.dead_letters,
        results=None,
        outages=core.outages,
        metrics=core.metrics,
    )
    place = Delivery("dragoman.jobs", 0, 0, 1, None, record(), (), 0)
    stands = await settler.settle(place, outcome)
    assert stands is not None
    assert (stands.status, stands.translations, stands.warnings) == ("failed", [], [])
    assert len(core.dead_letters.letters) == 1
    assert core.store.events == [("a1", "failed")]


async def test_a_run_that_a_replay_has_overtaken_tells_nothing() -> None:
    core = Core()
    released = core.engine.hold("one two")
    core.consumer.append(record())
    async with core.working():
        await core.inside("one two")
        fingerprint = open_record(record()).fingerprint
        await core.store.claim(request(fingerprint=fingerprint, replay=1, origin="other/0/0"))
        released.set()
        await core.all_completed()
    assert core.state().status is JobStatus.RUNNING
    assert (core.store.events, core.results.results, core.dead_letters.letters) == ([], [], [])


async def test_an_end_that_another_wrote_is_confirmed_before_the_offset_moves() -> None:
    """A client's cancel, or another worker's finish, may be in one server's memory only."""
    core, diary = traced()
    core.store.stub("a1")
    core.store.cancel("a1")
    diary.fail("confirm", *[Unavailable("too few servers confirmed")] * 3)
    core.consumer.append(record())
    await core.run_all()
    assert diary.steps == ["claim", "confirm", "announce", "result", "complete"]
    assert not diary.failures["confirm"]


@pytest.mark.parametrize("leaves", ["nothing", "the claim"])
async def test_an_end_that_a_fail_over_lost_is_made_again(
    leaves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, diary = traced()
    core.consumer.append(record())
    await core.run_all()
    core.restart()
    confirm = core.store.confirm

    async def failed_over(job_id: str) -> bool:
        monkeypatch.setattr(core.store, "confirm", confirm)
        if leaves == "nothing":
            del core.store._jobs[job_id]
        else:
            core.state().status, core.state().result = JobStatus.RUNNING, None
        return False

    monkeypatch.setattr(core.store, "confirm", failed_over)
    diary.steps.clear()
    core.consumer.append(record())
    await core.run_all()
    assert diary.steps == ["claim", "claim", "finish", "announce", "result", "complete"]
    assert core.state().status is JobStatus.COMPLETED
    assert core.texts() == ["ONE TWO"]


async def test_a_done_job_whose_key_became_something_else_is_a_conflict() -> None:
    core, diary = traced()
    core.consumer.append(record())
    await core.run_all()
    core.restart()
    diary.fail("confirm", Conflict("the key holds something that is no job"))
    core.consumer.append(record())
    await core.run_all()
    assert [letter.code for letter in core.dead_letters.letters] == ["conflict"]


async def test_a_terminal_key_without_a_result_counts_as_its_status() -> None:
    """A canceller in another language wrote the status alone."""
    core = Core()
    released = core.engine.hold("one two")
    core.consumer.append(record(document=DOCUMENT))
    async with core.working():
        await core.inside("one two")
        state: JobState = core.state()
        state.status, state.result = JobStatus.CANCELLED, None
        released.set()
        await core.all_completed()
    [published] = core.results.results
    assert (published.status, published.translations) == ("cancelled", [])
    assert core.store.documents["d1"].ended == {3}
    assert core.store.documents["d1"].completed == set()
