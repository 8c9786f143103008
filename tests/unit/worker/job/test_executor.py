"""Outcomes of one delivery: every verdict of the store, and every way a job can end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dragoman_schemas.results import JobStatus, TranslationResult
from dragoman_schemas.scripts import ClaimAnswer, Quarantine
from dragoman_schemas.wire import decode_result, encode_result, open_record
from dragoman_worker.errors import EngineDead, PermanentEngineError, UnknownProfile
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job.in_flight import JobInFlight, JobKey
from dragoman_worker.job.outcome import Completed, Outcome, Rejected, Released
from dragoman_worker.ports import CancelNotice, Capacity, Claim, ClaimRequest, Delivery
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.plain import PLAIN
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.local_jobs import LocalJobs
from support.processes.waiting import eventually

PLACE_OF_NOBODY = "dragoman.jobs/9/9"


async def execute(core: Core, value: bytes | None, **options: Any) -> Outcome:
    """Append the record, deliver it and execute it; the job leaves."""
    _, executor, _ = core.build()
    outcome, held = await executor.execute(await deliver(core, value, **options))
    if held is not None:
        core.in_flight.leave(held, None)
    assert len(core.in_flight) == 0
    assert core.permits.held_items == 0
    return outcome


async def deliver(core: Core, value: bytes | None, **options: Any) -> Delivery:
    core.consumer.append(value, **options)
    [delivery] = await core.consumer.poll(Capacity(1))
    return delivery


def completed(outcome: Outcome) -> TranslationResult:
    assert isinstance(outcome, Completed)
    return outcome.result


def rejected(outcome: Outcome, code: str) -> Rejected:
    assert isinstance(outcome, Rejected)
    assert outcome.failure.code.value == code
    return outcome


async def settled(core: Core, outcome: Outcome) -> None:
    """Write the outcome's state, as a worker's settle does."""
    assert isinstance(outcome, Completed | Rejected)
    assert outcome.result is not None
    assert outcome.claim is not None
    assert await core.store.finish(outcome.claim, outcome.result)


async def claimed_before(core: Core, value: bytes, origins: list[str]) -> None:
    """Leave claims outstanding, as crashed workers do."""
    envelope = open_record(value)
    for number, origin in enumerate(origins):
        await core.store.claim(
            ClaimRequest(
                Claim(envelope.job_id, envelope.fingerprint, f"crashed{number}"),
                origin=origin,
                queued_at="2030-01-01T00:00:00.000Z",
                quarantine=Quarantine.BY_ITSELF,
            )
        )


# --- run ------------------------------------------------------------------------------------------


async def test_a_job_is_claimed_translated_and_completed() -> None:
    core = Core()
    outcome = await execute(core, record(text=["one", ""], metadata={"k": "v"}))
    result = completed(outcome)
    assert isinstance(outcome, Completed)
    assert outcome.claim is not None
    assert (result.status, result.error, result.metadata) == ("completed", None, {"k": "v"})
    assert [item.text for item in result.translations] == ["ONE", ""]
    assert (result.attempts, result.deliveries, result.model) == (1, 1, "scripted")
    assert result.worker_id == "w1"
    assert result.usage.prompt_tokens == 1
    assert result.timing.started_at is not None
    assert core.state().status is JobStatus.RUNNING


async def test_a_failed_job_keeps_the_items_that_succeeded() -> None:
    core = Core()
    core.engine.script("two", PermanentEngineError("never"))
    outcome = rejected(await execute(core, record(text=["one", "two", "three"])), "engine_failed")
    assert outcome.result is not None
    assert outcome.result.status == "failed"
    assert [item.text for item in outcome.result.translations] == ["ONE", None, "THREE"]
    assert outcome.result.error is not None
    assert outcome.result.error.code == "engine_failed"
    assert outcome.claim is not None


async def test_the_claim_lasts_as_long_as_the_job_asks() -> None:
    core = Core()
    outcome = await execute(core, record(ttl_s=60))
    assert isinstance(outcome, Completed)
    assert outcome.claim is not None
    assert outcome.claim.ttl_s == 60


# --- the other verdicts ---------------------------------------------------------------------------


async def test_a_job_that_has_ended_is_not_run_again() -> None:
    core = Core()
    first = await execute(core, record())
    await settled(core, first)
    again = await execute(core, record())
    assert isinstance(again, Completed)
    assert again.claim is None
    assert again.result == completed(first)
    assert len(core.engine.requests) == 1


async def test_a_job_that_has_ended_is_announced_for_its_document() -> None:
    """The minimal result of a cancelled job, written by a client, does not know its document."""
    core = Core()
    core.store.stub("a1")
    core.store.cancel("a1")
    document = {"document_id": "d1", "index": 3, "total": 9}
    outcome = await execute(core, record(document=document))
    result = completed(outcome)
    assert result.status == "cancelled"
    assert result.document is not None
    assert (result.document.document_id, result.document.index) == ("d1", 3)
    assert core.engine.requests == []


async def test_without_stored_results_the_state_is_known_all_the_same() -> None:
    core = Core(store=LocalJobs(want_results=False))
    core.engine.script("one two", PermanentEngineError("never"))
    await settled(core, await execute(core, record()))
    assert completed(await execute(core, record())).status == "failed"


async def test_an_id_of_another_payload_is_a_conflict_and_the_first_is_untouched() -> None:
    core = Core()
    await execute(core, record(text="one"))
    before = core.state()
    outcome = rejected(await execute(core, record(text="other")), "conflict")
    assert (outcome.result, outcome.claim, outcome.job_id) == (None, None, "a1")
    assert core.state() == before
    assert [request.source for request in core.engine.requests] == ["one"]


async def test_a_cancel_that_came_before_the_run_is_finished_without_the_engine() -> None:
    core = Core()
    await claimed_before(core, record(), [PLACE_OF_NOBODY])
    core.store.cancel("a1")
    outcome = await execute(core, record())
    result = completed(outcome)
    assert (result.status, result.error and result.error.code) == ("cancelled", "cancelled")
    assert [item.error and item.error.code for item in result.translations] == ["cancelled"]
    assert core.engine.requests == []
    await settled(core, outcome)
    assert core.state().status is JobStatus.CANCELLED


async def test_a_record_that_was_in_flight_at_too_many_deaths_is_poisoned() -> None:
    core = Core()
    await claimed_before(core, record(), ["dragoman.jobs/0/0"] * 4)
    outcome = rejected(await execute(core, record()), "poisoned")
    assert core.engine.requests == []
    await settled(core, outcome)
    assert (core.state().status, core.state().claims) == (JobStatus.FAILED, {})


@pytest.mark.parametrize("crashes", [2, 3])
async def test_a_suspect_runs_with_nobody_else_in_the_engine(crashes: int) -> None:
    core = Core()
    await claimed_before(core, record("s1", "suspect text"), ["dragoman.jobs/0/0"] * crashes)
    _, executor, _ = core.build()
    released = core.engine.hold("suspect text")
    suspect = await deliver(core, record("s1", "suspect text"))
    other = await deliver(core, record("b1", "other text"))
    first = asyncio.create_task(executor.execute(suspect))
    await core.inside("suspect text")
    second = asyncio.create_task(executor.execute(other))
    for _ in range(20):
        await asyncio.sleep(0)
    assert core.engine.inside == ["suspect text"]
    released.set()
    for outcome, _ in await asyncio.gather(first, second):
        assert completed(outcome).status == "completed"
    assert core.engine.most_inside == 1


async def test_suspects_of_two_deaths_run_together_and_of_three_by_themselves() -> None:
    core = Core(permits=Permits(items=30, tokens=100_000))
    deaths = [2] * 20 + [3] * 2
    names = [f"s{number}" for number in range(len(deaths))]
    for offset, (name, times) in enumerate(zip(names, deaths, strict=True)):
        await claimed_before(core, record(name, name), [f"dragoman.jobs/0/{offset}"] * times)
    turns = [names[:16], names[16:20], ["s20"], ["s21"]]
    released = [core.engine.hold(*turn) for turn in turns]
    _, executor, _ = core.build()
    claim, answers = core.store.claim, asyncio.Event()

    async def taking(request: ClaimRequest) -> ClaimAnswer:
        await answers.wait()  # as Redis answers together what travels together
        return await claim(request)

    core.store.claim = taking  # type: ignore[method-assign]
    tasks = [
        asyncio.create_task(executor.execute(await deliver(core, record(name, name))))
        for name in names
    ]
    await eventually(
        lambda: core.permits.held_items == len(names), timeout_s=TIMEOUT_S, what="all claim"
    )
    answers.set()
    for turn, event in zip(turns, released, strict=True):
        await core.inside(*turn)
        event.set()
    for outcome, _ in await asyncio.gather(*tasks):
        assert completed(outcome).status == "completed"


async def test_a_member_that_died_with_another_worker_meanwhile_leaves_its_cohort() -> None:
    core = Core()
    value = record("s1", "suspect text")
    await claimed_before(core, value, ["dragoman.jobs/0/0"] * 2)
    levels: list[Quarantine] = []
    claim = core.store.claim

    async def taking(request: ClaimRequest) -> ClaimAnswer:
        levels.append(request.quarantine)
        if request.quarantine is Quarantine.COHORT:
            await claim(request._replace(claim=request.claim._replace(nonce="elsewhere")))
        return await claim(request)

    core.store.claim = taking  # type: ignore[method-assign]  # what another worker does meanwhile
    assert completed(await execute(core, value)).status == "completed"
    assert levels == [Quarantine.NONE, Quarantine.COHORT, Quarantine.BY_ITSELF]


async def test_a_suspect_whose_partition_went_while_it_waited_is_not_claimed() -> None:
    core = Core()
    value = record("s1", "suspect text")
    await claimed_before(core, value, ["dragoman.jobs/0/0"] * 2)
    inside = await core.permits.acquire("other", 1)
    _, executor, _ = core.build()
    task = asyncio.create_task(executor.execute(await deliver(core, value)))
    await eventually(lambda: core.permits.quarantined, timeout_s=TIMEOUT_S, what="a suspect")
    core.consumer.assign()
    core.permits.release(inside)
    outcome, _ = await task
    assert isinstance(outcome, Released)
    assert (len(core.state("s1").claims), core.state("s1").deliveries) == (2, 2)


async def test_a_deadline_that_passes_in_quarantine_ends_the_job() -> None:
    core = Core()
    soon = (datetime.now(UTC) + timedelta(milliseconds=200)).isoformat()
    value = record("s1", "suspect text", deadline=soon)
    await claimed_before(core, value, ["dragoman.jobs/0/0"] * 2)
    core.engine.hold("suspect text")
    assert completed(await execute(core, value)).status == "expired"


async def test_a_job_that_hangs_in_quarantine_is_not_asked_again_and_lets_others_in() -> None:
    core = Core(attempt_timeout_s=0.05)
    value = record("s1", "suspect text")
    await claimed_before(core, value, ["dragoman.jobs/0/0"] * 2)
    core.engine.hold("suspect text")
    outcome = rejected(await execute(core, value), "engine_failed")
    assert "retry.attempt_timeout_s" in outcome.failure.message
    assert outcome.attempts == 1
    assert completed(await execute(core, record("b1", "bystander"))).status == "completed"


async def test_claims_of_another_record_make_nobody_suspect() -> None:
    core = Core()
    await claimed_before(core, record(), [PLACE_OF_NOBODY] * 9)
    assert completed(await execute(core, record())).status == "completed"


# --- bad records ----------------------------------------------------------------------------------

UNREADABLE: dict[str, bytes | None] = {
    "tombstone": None,
    "empty": b"",
    "not UTF-8": b"\xff\xfe{}",
    "not JSON": b"{",
    "a list": b"[]",
    "deeply nested": b"[" * 900_000,
    "NaN": b'{"job_id":"a1","text":NaN,"target_lang":"de"}',
    "duplicate keys": b'{"job_id":"a1","job_id":"a2","text":"x","target_lang":"de"}',
    "no id": b'{"text":"x","target_lang":"de"}',
    "bad id": b'{"job_id":"a b","text":"x","target_lang":"de"}',
    "id of a wrong type": b'{"job_id":7,"text":"x","target_lang":"de"}',
}


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_a_record_without_a_readable_id_is_rejected_and_no_state_is_written(
    value: bytes | None,
) -> None:
    core = Core()
    outcome = rejected(await execute(core, value), "invalid_job")
    assert (outcome.result, outcome.claim, outcome.job_id) == (None, None, None)
    assert core.store.state("a1") is None
    assert outcome.failure.message


INVALID: dict[str, tuple[bytes, str, str]] = {
    "unknown field": (record(txt="x"), "invalid_job", "txt"),
    "wrong type": (record(text=7), "invalid_job", "text"),
    "513 items": (record(text=["x"] * 513), "invalid_job", "512"),
    "no text": (record(text=...), "invalid_job", "text"),
    "too large": (record(metadata={"k": "v" * 1_000_001}), "invalid_job", "1000000"),
    "unknown language": (record(target_lang="xx-nonsense"), "unsupported_language", "target_lang"),
    "newer schema": (record(schema=2), "unsupported_schema", "schema"),
    "stored glossary": (record(glossary_id="g1"), "unknown_glossary", "glossary_id"),
    "unknown profile": (record(profile="p1"), "unknown_profile", "profile"),
}


def choose(wanted: str | None) -> Profile:
    if wanted is not None:
        raise UnknownProfile(f"profile: there is no {wanted!r}")
    return PLAIN


@pytest.mark.parametrize(("value", "code", "named"), INVALID.values(), ids=INVALID.keys())
async def test_an_invalid_record_with_a_readable_id_is_claimed_and_fails(
    value: bytes, code: str, named: str
) -> None:
    core = Core(choose_profile=choose)
    outcome = rejected(await execute(core, value), code)
    assert named in outcome.failure.message
    assert outcome.claim is not None
    await settled(core, outcome)
    state = core.state()
    assert state.status is JobStatus.FAILED
    assert state.result is not None
    assert state.result.error is not None
    assert state.result.error.code == code
    assert core.engine.requests == []


KEPT: dict[str, Any] = {
    "metadata": {"to": "inbox"},
    "ttl_s": 600,
    "text": ["a", {"text": "bc", "id": "q"}],
}


@pytest.mark.parametrize("wrong", [{"txt": "x"}, {"target_lang": "xx-nonsense"}, {"schema": 2}])
async def test_an_invalid_job_keeps_its_metadata_its_ttl_and_the_places_of_its_items(
    wrong: dict[str, Any],
) -> None:
    core = Core()
    outcome = await execute(core, record(**KEPT, **wrong))
    assert isinstance(outcome, Rejected)
    await settled(core, outcome)
    result = core.state().result
    assert result is not None
    assert result.metadata == {"to": "inbox"}
    assert outcome.claim is not None
    assert outcome.claim.ttl_s == 600
    assert result.error is not None
    assert [
        (item.id, item.text, item.error and item.error.code, item.usage.source_chars)
        for item in result.translations
    ] == [(None, None, result.error.code, 1), ("q", None, result.error.code, 2)]


UNREADABLE_PARTS: dict[str, Any] = {
    "ttl_s": 59,
    "metadata": {"k": 1},
    "text": ["x"] * 513,
    "document": 7,
}


async def test_what_an_invalid_job_states_wrongly_is_left_out_of_its_result() -> None:
    core = Core()
    outcome = rejected(await execute(core, record(**UNREADABLE_PARTS)), "invalid_job")
    assert outcome.result is not None
    assert (outcome.result.metadata, outcome.result.translations) == (None, [])
    assert outcome.claim is not None
    assert outcome.claim.ttl_s == 86_400


async def test_an_invalid_record_cannot_spoil_a_job_that_owns_its_id() -> None:
    core = Core()
    await execute(core, record())
    rejected(await execute(core, record(txt="x")), "conflict")
    assert core.state().status is JobStatus.RUNNING


async def test_a_record_that_breaks_the_decoder_fails_as_internal() -> None:
    def broken(_: str | None) -> Profile:
        raise ZeroDivisionError("the text of a document")

    core = Core(choose_profile=broken)
    outcome = rejected(await execute(core, record()), "internal")
    assert "the text of a document" not in outcome.failure.message
    assert outcome.claim is not None


async def test_a_defect_during_translation_ends_the_job_as_internal() -> None:
    core = Core()
    for value in (record("a1", "two"), record("a2", ["one", "two", "three"])):
        core.engine.script("two", ZeroDivisionError("the text of a document"))
        outcome = rejected(await execute(core, value), "internal")
        assert "the text of a document" not in outcome.failure.message
        await settled(core, outcome)


async def test_the_engine_s_death_is_nobody_s_failure() -> None:
    core = Core()
    _, executor, _ = core.build()
    core.engine.script("one two", EngineDead("gone"))
    delivery = await deliver(core, record())
    with pytest.raises(EngineDead):
        await executor.execute(delivery)
    assert list(core.state().claims.values()) == ["dragoman.jobs/0/0"]


# --- deadline and cancel --------------------------------------------------------------------------


def soon(**delta: float) -> str:
    return (datetime.now(UTC) + timedelta(**delta)).isoformat()


async def test_a_job_past_its_deadline_expires_without_the_engine() -> None:
    core = Core()
    outcome = await execute(core, record(deadline=soon(seconds=-1)))
    result = completed(outcome)
    assert (result.status, result.error and result.error.code) == ("expired", "deadline_exceeded")
    assert core.engine.requests == []
    await settled(core, outcome)
    assert core.state().status is JobStatus.EXPIRED


async def test_a_deadline_during_the_run_keeps_finished_items() -> None:
    core = Core()
    core.engine.hold("two")
    result = completed(
        await execute(core, record(text=["one", "two"], deadline=soon(milliseconds=200)))
    )
    assert result.status == "expired"
    assert [item.text for item in result.translations] == ["ONE", None]
    assert result.translations[1].error is not None
    assert result.translations[1].error.code == "deadline_exceeded"
    assert result.timing.engine_ms > 0
    assert core.engine.aborted == ["two"]


async def test_a_cancel_during_the_run_keeps_finished_items_and_frees_the_engine() -> None:
    core = Core()
    _, executor, _ = core.build()
    core.engine.hold("two")
    task = asyncio.create_task(executor.execute(await deliver(core, record(text=["one", "two"]))))
    await core.inside("two")
    core.store.cancel("a1")
    assert core.in_flight.cancel(CancelNotice(job_id="a1")) == 1
    outcome, _ = await task
    result = completed(outcome)
    assert result.status == "cancelled"
    assert [item.text for item in result.translations] == ["ONE", None]
    assert core.engine.aborted == ["two"]
    assert core.permits.held_items == 0
    await settled(core, outcome)


class SlowToClaim(LocalJobs):
    """Lets the test act between the store's claim and the executor's receipt of the answer."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        reply = await super().claim(request)
        self._meanwhile()
        return reply


async def test_a_cancel_between_the_claim_and_the_run_cancels_the_job() -> None:
    core = Core()
    core.store = SlowToClaim(lambda: core.in_flight.cancel(CancelNotice(job_id="a1")))
    core.engine.hold("one two")
    assert completed(await execute(core, record())).status == "cancelled"


async def test_a_cancelled_document_cancels_its_jobs_before_they_run() -> None:
    core = Core()
    core.store.cancel_document("d1")
    document = {"document_id": "d1", "index": 0, "total": 2}
    assert completed(await execute(core, record(document=document))).status == "cancelled"
    assert core.engine.requests == []


# --- replay ---------------------------------------------------------------------------------------


async def test_a_replay_reopens_a_failed_job_and_finishes_as_that_replay() -> None:
    core = Core()
    core.engine.script("one two", PermanentEngineError("never"))
    await settled(core, await execute(core, record()))
    again = await execute(core, record(), headers=[("dragoman-replay", b"1")])
    await settled(core, again)
    assert (core.state().status, core.state().replays) == (JobStatus.COMPLETED, 1)
    assert core.state().deliveries == 2


async def test_a_late_copy_of_an_older_run_finishes_as_the_replay_that_is_under_way() -> None:
    core = Core()
    await execute(core, record(), headers=[("dragoman-replay", b"3")])
    outcome = await execute(core, record())
    assert isinstance(outcome, Completed)
    assert outcome.claim is not None
    assert outcome.claim.replay == 3
    await settled(core, outcome)


async def test_a_job_that_waits_for_its_settlement_holds_no_texts_but_its_result() -> None:
    core = Core()
    _, executor, _ = core.build()
    _, job = await executor.execute(await deliver(core, record(text=["one", "two"])))
    assert job is not None
    assert (job.plan, job.decoded, job.answer, job.envelope.fields) == (None, None, None, {})
    assert job.claim is not None


# --- duplicates in flight -------------------------------------------------------------------------


async def test_exact_duplicates_in_flight_cost_one_inference_and_share_its_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()
    _, executor, _ = core.build()
    looked_for: list[JobKey] = []
    find = core.in_flight.find

    def seen(key: JobKey) -> JobInFlight | None:
        looked_for.append(key)
        return find(key)

    monkeypatch.setattr(core.in_flight, "find", seen)
    released = core.engine.hold("one two")
    tasks = [
        asyncio.create_task(executor.execute(await deliver(core, record()))) for _ in range(100)
    ]
    await core.inside("one two")
    # One that is read later is no duplicate in flight.
    await eventually(lambda: len(looked_for) == 100, timeout_s=TIMEOUT_S, what="all are read")
    released.set()
    leader, held = await tasks[0]
    assert held is not None
    core.in_flight.leave(held, completed(leader))
    for outcome, other in await asyncio.gather(*tasks[1:]):
        assert isinstance(outcome, Completed)
        assert (outcome.result, outcome.claim, other) == (completed(leader), None, None)
    assert len(core.engine.requests) == 1
    assert core.state().deliveries == 1


async def test_a_duplicate_of_a_job_given_up_is_worked_on_itself() -> None:
    core = Core()
    _, executor, _ = core.build()
    leader, duplicate = await deliver(core, record()), await deliver(core, record())
    _, held = await executor.execute(leader)
    assert held is not None
    task = asyncio.create_task(executor.execute(duplicate))
    await asyncio.sleep(0)
    assert not task.done()
    core.in_flight.leave(held, None)
    outcome, _ = await task
    assert isinstance(outcome, Completed)
    assert outcome.claim is not None
    assert len(core.engine.requests) == 2


async def test_the_same_id_with_another_payload_is_no_duplicate() -> None:
    core = Core()
    _, executor, _ = core.build()
    released = core.engine.hold("one")
    first = asyncio.create_task(executor.execute(await deliver(core, record(text="one"))))
    await core.inside("one")
    outcome, _ = await executor.execute(await deliver(core, record(text="other")))
    rejected(outcome, "conflict")
    released.set()
    await first


# --- giving up ------------------------------------------------------------------------------------


async def test_a_job_that_has_not_entered_the_engine_is_released_by_a_drain_untaken() -> None:
    core = Core()
    core.permits.drain()
    assert isinstance(await execute(core, record()), Released)
    assert core.store.state("a1") is None


async def test_a_job_of_a_revoked_partition_is_released_unclaimed() -> None:
    core = Core()
    _, executor, _ = core.build()
    delivery = await deliver(core, record())
    core.consumer.revoke()
    outcome, _ = await executor.execute(delivery)
    assert isinstance(outcome, Released)
    assert core.store.state("a1") is None
    assert core.permits.held_items == 0


async def test_one_cancelled_by_the_worker_leaves_its_claim_to_be_released() -> None:
    core = Core()
    _, executor, _ = core.build()
    core.engine.hold("one two")
    task = asyncio.create_task(executor.execute(await deliver(core, record())))
    await core.inside("one two")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [claim] = core.in_flight.claims()
    await core.store.release(claim)
    assert (core.state().status, core.state().claims) == (JobStatus.QUEUED, {})


async def test_a_claim_whose_reply_was_lost_can_still_be_released() -> None:
    class Losing(LocalJobs):
        async def claim(self, request: ClaimRequest) -> ClaimAnswer:
            await super().claim(request)
            await asyncio.Event().wait()
            raise AssertionError

    core = Core(store=Losing())
    _, executor, _ = core.build()
    task = asyncio.create_task(executor.execute(await deliver(core, record())))
    await eventually(lambda: core.store.state("a1"), timeout_s=TIMEOUT_S, what="the claim")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    [claim] = core.in_flight.claims()
    assert set(core.state().claims) == {claim.nonce}


# --- results --------------------------------------------------------------------------------------


async def test_a_result_survives_its_way_through_the_wire() -> None:
    core = Core()
    document = {"document_id": "d1", "index": 0, "total": 1}
    result = completed(await execute(core, record(document=document, metadata={})))
    assert decode_result(encode_result(result)) == result
    written = json.loads(encode_result(result))
    assert written["schema"] == 1
    assert written["document"] == document
    assert written["metadata"] == {}
    timing = written["timing"]
    assert min(timing["queue_ms"], timing["engine_ms"], timing["total_ms"]) >= 0


async def test_a_clock_that_ran_backwards_makes_no_time_negative() -> None:
    core = Core()
    core.store.stub("a1")
    core.state().queued_at = "2999-01-01T00:00:00.000Z"
    timing = completed(await execute(core, record())).timing
    assert (timing.queue_ms, timing.total_ms) == (0, 0)


async def test_a_time_written_by_a_foreign_client_that_nobody_can_read_does_no_harm() -> None:
    core = Core()
    core.store.stub("a1")
    core.state().queued_at = "yesterday"
    assert completed(await execute(core, record())).status == "completed"


# --- nothing before the claim raises --------------------------------------------------------------


class Panic(BaseException):
    """What a Rust extension raises when it panics: no Exception."""


BROKEN = [ZeroDivisionError("the text of a document"), Panic("the text of a document")]


@pytest.mark.parametrize("timestamp_ms", [-(2**63), -1, 253_402_300_800_000, 2**63 - 1])
async def test_any_timestamp_is_a_time_of_the_years_that_can_be_told(timestamp_ms: int) -> None:
    core = Core()
    _, executor, _ = core.build()
    delivery = (await deliver(core, record()))._replace(timestamp_ms=timestamp_ms)
    outcome, _ = await executor.execute(delivery)
    result = completed(outcome)
    assert result.timing.queued_at is not None
    assert 1970 <= datetime.fromisoformat(result.timing.queued_at).year <= 9999
    assert result.timing.total_ms >= 0


@pytest.mark.parametrize("error", BROKEN)
async def test_a_defect_while_a_record_is_read_is_a_dead_letter(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_worker.job.preparation.open_record", _raising(error))
    outcome = rejected(await execute(Core(), record()), "internal")
    assert "the text" not in outcome.failure.message
    assert "_raising" in outcome.failure.message
    assert (outcome.job_id, outcome.result) == (None, None)


@pytest.mark.parametrize("error", BROKEN)
async def test_a_defect_while_a_job_is_planned_ends_it_under_its_id(error: BaseException) -> None:
    core = Core(choose_profile=_raising(error))
    outcome = rejected(await execute(core, record()), "internal")
    assert outcome.claim is not None
    assert outcome.result is not None
    assert outcome.result.status == "failed"
    assert core.engine.requests == []


@pytest.mark.parametrize("error", BROKEN)
async def test_a_defect_between_plan_and_claim_ends_the_job_under_its_id(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Core()
    monkeypatch.setattr(core.permits, "acquire", _raising(error))
    outcome = rejected(await execute(core, record()), "internal")
    assert outcome.claim is not None
    assert outcome.result is not None
    assert core.engine.requests == []


@pytest.mark.parametrize("error", BROKEN)
async def test_a_claim_that_cannot_be_made_is_a_dead_letter(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_worker.job.executor.ClaimRequest", _raising(error))
    outcome = rejected(await execute(Core(), record()), "internal")
    assert (outcome.job_id, outcome.claim) == ("a1", None)


async def test_a_failure_whose_result_cannot_be_made_ends_with_the_least_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()
    monkeypatch.setattr("dragoman_worker.job.reporter._timing", _raising(ZeroDivisionError()))
    outcome = rejected(await execute(core, record()), "internal")
    assert outcome.claim is not None
    assert outcome.result is not None
    assert outcome.result.fingerprint == open_record(record()).fingerprint
    assert decode_result(encode_result(outcome.result)) == outcome.result


async def test_a_planner_that_is_told_to_stop_is_no_defect() -> None:
    core = Core(choose_profile=_raising(KeyboardInterrupt()))
    _, executor, _ = core.build()
    delivery = await deliver(core, record())
    with pytest.raises(KeyboardInterrupt):
        await executor.execute(delivery)


def _raising(error: BaseException) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        raise error

    return call


async def test_no_two_claims_share_a_nonce_even_where_processes_are_forked() -> None:
    """A fork copies what the module holds: each executor has to draw for itself."""
    claims: list[str] = []

    class Store(LocalJobs):
        async def claim(self, request: ClaimRequest) -> ClaimAnswer:
            claims.append(request.claim.nonce)
            return await super().claim(request)

    for _ in range(3):
        core = Core(store=Store())
        core.consumer.append(record("a1"))
        core.consumer.append(record("a2"))
        await core.run_all()
    assert len(set(claims)) == len(claims) == 6
