"""Every record is settled in the one legal order, whatever fails and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from dragoman_schemas.results import JobStatus
from dragoman_schemas.scripts import ClaimAnswer
from dragoman_worker.errors import EngineDead, Halt, PermanentEngineError, Unavailable
from dragoman_worker.flow.permits import Permits
from dragoman_worker.job import worker as worker_module
from dragoman_worker.job.worker import Worker, WorkerState
from dragoman_worker.ports import CancelNotice, ClaimRequest
from support.fakes.core import TIMEOUT_S, Core, record
from support.fakes.local_kafka import MemoryConsumer
from support.fakes.traced import traced
from support.processes.waiting import eventually

# --- the order of settle --------------------------------------------------------------------------


async def test_a_completed_job_is_written_told_and_only_then_committed() -> None:
    core, diary = traced()
    core.consumer.append(record())
    await core.run_all()
    assert diary.steps == ["claim", "finish", "announce", "result", "complete"]
    assert core.texts() == ["ONE TWO"]
    assert [result.status for result in core.results.results] == ["completed"]


async def test_a_failed_job_s_dead_letter_comes_first() -> None:
    core, diary = traced()
    core.engine.script("one two", PermanentEngineError("never"))
    core.consumer.append(record(), headers=[("traceparent", b"t")])
    await core.run_all()
    assert diary.steps == ["claim", "dead-letter", "finish", "announce", "result", "complete"]
    [letter] = core.dead_letters.letters
    assert (letter.code, letter.message, letter.job_id) == ("engine_failed", "never", "a1")
    assert (letter.attempts, letter.deliveries) == (1, 1)
    assert letter.delivery.value == record()
    assert letter.first_seen == core.state().started_at
    assert core.state().status is JobStatus.FAILED


async def test_an_unreadable_record_goes_to_the_dead_letters_and_is_committed() -> None:
    core, diary = traced()
    core.consumer.append(b"{")
    await core.run_all()
    assert diary.steps == ["dead-letter", "complete"]
    assert core.dead_letters.letters[0].job_id is None


async def test_a_conflict_goes_to_the_dead_letters_and_leaves_the_first_result() -> None:
    core, diary = traced()
    released = core.engine.hold("one")
    core.consumer.append(record(text="one"))
    core.consumer.append(record(text="other"))
    async with core.working():
        await eventually(
            lambda: core.dead_letters.letters, timeout_s=TIMEOUT_S, what="the dead letter"
        )
        released.set()
        await core.all_completed()
    assert [letter.code for letter in core.dead_letters.letters] == ["conflict"]
    assert core.texts() == ["ONE"]
    assert diary.steps.count("finish") == 1


async def test_a_job_that_had_ended_is_told_again_and_committed() -> None:
    core, diary = traced()
    core.consumer.append(record())
    await core.run_all()
    diary.steps.clear()
    core.restart()
    core.consumer.append(record())
    await core.run_all()
    assert diary.steps == ["claim", "confirm", "announce", "result", "complete"]
    assert len(core.engine.requests) == 1


async def test_a_cancelled_job_needs_no_dead_letter() -> None:
    core, diary = traced()
    core.engine.hold("two")
    core.consumer.append(record(text=["one", "two"]))
    async with core.working():
        await core.inside("two")
        await eventually(lambda: core.store.listening, timeout_s=TIMEOUT_S, what="a listener")
        core.store.cancel("a1")
        await core.all_completed()
    assert core.state().status is JobStatus.CANCELLED
    assert core.texts() == ["ONE", None]
    assert "dead-letter" not in diary.steps


# --- crashes between any two steps ----------------------------------------------------------------

ARROWS = {
    "completed": ["claim", "after-claim", "finish", "after-finish", "result", "after-result"],
    "failed": [
        *("claim", "after-claim", "dead-letter", "after-dead-letter"),
        *("finish", "after-finish", "result", "after-result"),
    ],
}
CRASHES = [(status, arrow) for status, arrows in ARROWS.items() for arrow in arrows]


@pytest.mark.parametrize(("status", "arrow"), CRASHES)
async def test_a_crash_at_any_step_is_made_good_by_the_next_worker(status: str, arrow: str) -> None:
    core, diary = traced()
    if status == "failed":
        core.engine.script("one two", PermanentEngineError("never"))
    diary.fail(arrow, Halt("crash"))
    core.consumer.append(record())
    with pytest.raises(Halt, match="crash"):
        await core.run_all()
    assert "complete" not in diary.steps
    assert core.consumer.committed() == 0
    if status == "failed":
        core.engine.script("one two", PermanentEngineError("never"))
    core.restart()
    diary.steps.clear()
    await core.run_all()
    assert core.state().status == status
    assert core.state().claims == {}
    assert diary.steps[-2:] == ["result", "complete"]
    if status == "failed":
        assert core.dead_letters.letters


async def test_a_halt_of_one_job_completes_none_beside_it() -> None:
    core, diary = traced()
    core.engine.hold("other text")
    diary.fail("finish", Halt("crash"))
    core.consumer.append(record("b1", "other text"))
    core.consumer.append(record())
    with pytest.raises(Halt):
        await core.run_all()
    assert core.consumer.committed() == 0


# --- outages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["claim", "finish", "after-finish", "result", "after-result"])
async def test_an_outage_holds_the_offset_and_costs_no_attempt(step: str) -> None:
    core, diary = traced()
    diary.fail(step, Unavailable("down"), Unavailable("down"))
    core.consumer.append(record())
    await core.run_all()
    assert diary.steps[-2:] == ["result", "complete"]
    assert core.texts() == ["ONE TWO"]
    assert len(core.engine.requests) == 1
    result = core.state().result
    assert result is not None
    assert (result.attempts, result.deliveries) == (1, 1)


@pytest.mark.parametrize("step", ["dead-letter", "after-dead-letter"])
async def test_an_outage_of_the_broker_holds_a_failed_job_s_state(step: str) -> None:
    core, diary = traced()
    core.engine.script("one two", PermanentEngineError("never"))
    diary.fail(step, Unavailable("down"))
    core.consumer.append(record())
    await core.run_all()
    assert diary.steps.index("finish") > diary.steps.index("dead-letter")
    assert core.state().status is JobStatus.FAILED


async def test_an_outage_that_lasts_completes_nothing() -> None:
    core, diary = traced(grace_s=0.0)
    diary.fail("finish", *[Unavailable("down")] * 10_000)
    core.consumer.append(record())
    async with core.working():
        await eventually(
            lambda: len(diary.failures["finish"]) < 9_999, timeout_s=TIMEOUT_S, what="tries"
        )
    assert core.consumer.committed() == 0
    assert "complete" not in diary.steps
    assert core.state().status is JobStatus.QUEUED


# --- duplicates and documents ---------------------------------------------------------------------


async def test_a_hundred_exact_duplicates_cost_one_inference() -> None:
    core, diary = traced(max_in_flight_jobs=200)
    released = core.engine.hold("one two")
    for _ in range(100):
        core.consumer.append(record())
    async with core.working():
        await core.inside("one two")
        released.set()
        await core.all_completed()
    assert len(core.engine.requests) == 1
    assert diary.steps.count("finish") == 1
    assert core.state().deliveries == 1


async def test_progress_of_a_document_counts_every_job_that_ended() -> None:
    core = Core()
    core.engine.script("bad text", PermanentEngineError("never"))
    for index, text in enumerate(["one", "bad text", "three"]):
        document = {"document_id": "d1", "index": index, "total": 3}
        core.consumer.append(record(f"d1.{index}", text, document=document))
    await core.run_all()
    progress = core.store.documents["d1"]
    assert (progress.ended, progress.completed) == ({0, 1, 2}, {0, 2})


async def test_bad_records_do_no_harm_to_their_neighbours() -> None:
    core = Core()
    bad = [
        None,
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 900_000,
        record("bad", target_lang="xx-nonsense"),
    ]
    for number, value in enumerate(bad):
        core.consumer.append(value)
        core.consumer.append(record(f"good{number}", f"text {'abcdefgh'[number]}"))
    await core.run_all()
    assert len(core.dead_letters.letters) == len(bad)
    for number in range(len(bad)):
        assert core.state(f"good{number}").status is JobStatus.COMPLETED


# --- bounds ---------------------------------------------------------------------------------------


async def test_no_more_jobs_are_in_flight_than_the_bound() -> None:
    core = Core(max_in_flight_jobs=4)
    texts = [f"text {letter}" for letter in "abcdefghijkl"]
    released = core.engine.hold(*texts)
    for number, text in enumerate(texts):
        core.consumer.append(record(f"j{number}", text))
    async with core.working():
        await core.inside(*texts[:4])
        assert len(core.in_flight) == 4
        released.set()
        await core.all_completed()
    assert core.engine.most_inside <= 4


async def test_no_more_bytes_are_in_flight_than_the_bound_and_one_record() -> None:
    core = Core(max_in_flight_bytes=1)
    texts = ["text a", "text b"]
    released = core.engine.hold(*texts)
    core.consumer.append(record("j0", texts[0]))
    async with core.working() as worker:
        await core.inside(texts[0])
        core.consumer.append(record("j1", texts[1]))
        polled = worker.polled_at
        await eventually(lambda: worker.polled_at > polled, timeout_s=TIMEOUT_S, what="a turn")
        assert core.engine.inside == texts[:1]
        released.set()
        await core.all_completed()


async def test_a_backlog_of_one_lane_keeps_no_job_of_another_from_the_engine() -> None:
    priorities = {"urgent": 8, "bulk": 1}
    core = Core(
        consumer=MemoryConsumer(topics=tuple(priorities), poll_s=0.01),
        permits=Permits(items=2, tokens=100_000, weights=priorities),
        max_in_flight_jobs=8,
        weights=priorities,
    )
    texts = [f"bulk {letter}" for letter in "abcdefghijklmnop"]
    held = [core.engine.hold(text) for text in texts]
    for number, text in enumerate(texts):
        core.consumer.append(record(f"b{number}", text), topic="bulk")
    async with core.working():
        await core.inside(*texts[:2])
        await eventually(lambda: len(core.in_flight) == 5, timeout_s=TIMEOUT_S, what="a full class")
        now = core.engine.hold("urgent now")
        core.consumer.append(record("u", "urgent now"), topic="urgent")
        await eventually(
            lambda: len(core.in_flight) == 6, timeout_s=TIMEOUT_S, what="it is in flight"
        )
        held[1].set()
        await core.inside(texts[0], "urgent now")
        for released in (now, *held):
            released.set()
        await eventually(
            lambda: core.consumer.committed(topic="bulk") == len(texts),
            timeout_s=TIMEOUT_S,
            what="bulk is not forgotten",
        )
        await core.all_completed()


async def test_the_poll_loop_turns_while_there_is_no_capacity() -> None:
    core = Core(max_in_flight_jobs=1)
    released = core.engine.hold("one two")
    core.consumer.append(record())
    async with core.working() as worker:
        await core.inside("one two")
        polled = worker.polled_at
        await eventually(lambda: worker.polled_at > polled, timeout_s=TIMEOUT_S, what="a turn")
        released.set()


# --- the end --------------------------------------------------------------------------------------


async def test_a_drain_finishes_what_has_entered_the_engine_and_gives_the_rest_back() -> None:
    core, diary = traced(permits=Permits(items=1, tokens=100_000))
    released = core.engine.hold("one two")
    core.consumer.append(record("in", "one two"))
    core.consumer.append(record("waits", "three four"))
    async with core.working() as worker:
        await core.inside("one two")
        await eventually(lambda: core.permits.waiting == 1, timeout_s=TIMEOUT_S, what="a waiter")
        worker.stop()
        assert state_of(worker) is WorkerState.DRAINING
        released.set()
    assert state_of(worker) is WorkerState.STOPPED
    assert core.state("in").status is JobStatus.COMPLETED
    assert core.store.state("waits") is None
    assert core.consumer.committed() == 1
    assert diary.steps.count("complete") == 1


async def test_a_drain_out_of_time_leaves_no_claim_outstanding() -> None:
    core = Core(grace_s=0.05)
    texts = ["text a", "text b", "text c"]
    core.engine.hold(*texts)
    for number, text in enumerate(texts):
        core.consumer.append(record(f"j{number}", text))
    async with core.working():
        await core.inside(*texts)
    for number in range(3):
        state = core.state(f"j{number}")
        assert (state.status, state.claims) == (JobStatus.QUEUED, {})
    assert core.consumer.committed() == 0
    assert sorted(core.engine.aborted) == texts
    assert core.permits.held_items == 0


async def test_a_drain_tries_to_release_again_while_there_is_time() -> None:
    core, diary = traced(grace_s=0.0)
    core.engine.hold("text a", "text b")
    core.consumer.append(record("j0", "text a"))
    core.consumer.append(record("j1", "text b"))
    diary.fail("release", Unavailable("down"))
    async with core.working():
        await core.inside("text a", "text b")
    assert [core.state(job).claims for job in ("j0", "j1")] == [{}, {}]


async def test_an_abort_ends_a_drain_at_once() -> None:
    core = Core(grace_s=3_600)
    core.engine.hold("one two")
    core.consumer.append(record())
    async with core.working() as worker:
        await core.inside("one two")
        worker.stop()
        worker.abort()
    assert (core.state().status, core.state().claims) == (JobStatus.QUEUED, {})


async def test_what_a_drain_gave_back_is_done_by_the_next_worker() -> None:
    core = Core(grace_s=0.0)
    core.engine.hold("one two")
    core.consumer.append(record())
    async with core.working():
        await core.inside("one two")
    core.restart()
    core.grace_s = TIMEOUT_S
    await core.run_all()
    assert core.texts() == ["ONE TWO"]


@pytest.mark.parametrize("how", ["callback", "generation", "one of many items"])
async def test_the_engine_s_death_halts_and_neither_releases_nor_completes(how: str) -> None:
    core, diary = traced()
    core.engine.hold("other text")
    core.consumer.append(record("b1", "other text"))

    async def work() -> None:
        async with core.working():
            await core.inside("other text")
            if how == "callback":
                core.engine.die(EngineDead("gone"))
            else:
                core.engine.script("one", EngineDead("gone"))
                core.consumer.append(record(text=["one", "two"] if "many" in how else "one"))
            await core.ended()

    with pytest.raises(EngineDead, match="gone"):
        await work()
    assert "release" not in diary.steps
    assert "complete" not in diary.steps
    assert list(core.state("b1").claims.values()) == ["dragoman.jobs/0/0"]
    assert core.consumer.committed() == 0


async def test_an_engine_that_dies_under_many_jobs_is_logged_once() -> None:
    core = Core()
    for number in range(40):
        core.engine.script(f"text {number}", EngineDead("gone"))
        core.consumer.append(record(f"j{number}", f"text {number}"))

    async def work() -> None:
        async with core.working():
            await core.ended()

    with capture_logs() as lines, pytest.raises(EngineDead, match="gone"):
        await work()
    assert [line["reason"] for line in lines if line["event"] == "halting"] == ["gone"]


@pytest.mark.parametrize("capacity", [1, 2])
async def test_who_never_entered_a_dead_engine_is_not_suspected_of_its_death(capacity: int) -> None:
    core = Core(permits=Permits(items=capacity, tokens=100_000))
    core.engine.script("kills", EngineDead("gone"))
    for number in range(30):
        core.consumer.append(record(f"by{number}", "bystander"))
    core.consumer.append(record("killer", "kills"))
    for number in range(30, 60):
        core.consumer.append(record(f"by{number}", "bystander"))
    core.engine.script("bystander", *([EngineDead("gone")] * 60))
    core.engine.script("kills", EngineDead("gone"))

    async def work() -> None:
        async with core.working():
            await core.ended()

    with pytest.raises(EngineDead):
        await work()
    states = (core.store.state(f"by{number}") for number in range(60))
    assert sum(len(state.claims) for state in states if state is not None) <= capacity


async def test_of_suspects_that_wait_to_be_alone_a_death_suspects_only_the_one_inside() -> None:
    core = Core()
    names = [f"s{number}" for number in range(5)]
    for name in names:
        core.consumer.append(record(name, name))
    for in_company in (True, True, False):  # all in the engine together, then one after another
        together = asyncio.Event()
        for name in names:
            core.engine.script(name, *([together] if in_company else []), EngineDead("gone"))

        async def work(company: bool, all_in: asyncio.Event) -> None:
            async with core.working():
                if company:
                    await core.inside(*names)
                    all_in.set()
                await core.ended()

        with pytest.raises(EngineDead):
            await work(in_company, together)
        core.restart()
    assert sorted(len(core.state(name).claims) for name in names) == [2, 2, 2, 2, 3]


async def test_a_log_that_cannot_be_read_ends_the_worker() -> None:
    core = Core()
    core.consumer.append(record())

    async def work() -> None:
        async with core.working():
            await core.all_completed()
            core.consumer.fail(Halt("unreadable"))
            await core.ended()

    with pytest.raises(Halt, match="unreadable"):
        await work()


async def test_a_defect_before_the_claim_ends_the_job_and_not_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()

    def broken(_: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(core.consumer, "still_assigned", broken)
    core.consumer.append(record())
    await core.run_all()
    assert core.consumer.committed() == 1
    assert [letter.code for letter in core.dead_letters.letters] == ["internal"]
    assert core.state().status == "failed"


async def test_a_worker_with_nothing_to_do_stops_when_told() -> None:
    core = Core()
    async with core.working() as worker:
        assert state_of(worker) is WorkerState.WORKING
    assert state_of(worker) is WorkerState.STOPPED


async def test_jobs_and_items_are_counted_once_a_job() -> None:
    core, diary = traced()
    diary.fail("after-finish", Unavailable("down"))
    core.consumer.append(record(text=["one", "two"]))
    core.consumer.append(b"{")
    await core.run_all()
    value = core.metrics.registry.get_sample_value
    assert value("dragoman_jobs_total", {"status": "completed"}) == 1
    assert value("dragoman_items_total", {"quality": "unchecked"}) == 2
    assert value("dragoman_dead_letters_total", {"code": "invalid_job"}) == 1


async def test_a_text_is_never_logged_when_a_defect_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()
    lines: list[object] = []
    _, _, worker = core.build()
    monkeypatch.setattr(worker, "_log", _Log(lines))

    def broken(_: object) -> bool:
        raise ZeroDivisionError("the text of a document")

    monkeypatch.setattr(core.consumer, "complete", broken)
    core.consumer.append(record())
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(worker.run(), TIMEOUT_S)
    assert lines
    assert "the text of a document" not in repr(lines)


def state_of(worker: Worker) -> WorkerState:
    """Read anew each time, whatever a type checker remembers."""
    return worker.state


class _Log:
    """Keeps the log lines."""

    def __init__(self, lines: list[object]) -> None:
        self._lines = lines

    def __getattr__(self, level: str) -> object:
        return lambda event, **fields: self._lines.append((level, event, fields))


async def test_a_job_that_something_else_cancels_halts_the_worker_and_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()

    async def cancelled(_: ClaimRequest) -> ClaimAnswer:
        raise asyncio.CancelledError

    monkeypatch.setattr(core.store, "claim", cancelled)
    core.consumer.append(record())
    with pytest.raises(Halt, match=r"dragoman\.jobs/0/0"):
        await core.run_all()
    assert core.consumer.committed() == 0


async def test_a_background_task_that_something_else_cancels_halts_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()

    async def cancels() -> AsyncIterator[CancelNotice]:
        raise asyncio.CancelledError
        yield CancelNotice()

    monkeypatch.setattr(core.store, "cancels", cancels)
    with pytest.raises(Halt, match="cancels"):
        async with core.working():
            await core.ended()


# --- revoked partitions ---------------------------------------------------------------------------


async def test_a_running_job_that_moves_four_times_is_not_suspected_and_its_first_end_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "LOOK_FOR_LOST_S", 0.01)
    core = Core()
    core.consumer.append(record())
    held = core.engine.hold("one two")
    async with core.working():
        await core.inside("one two")
        for _ in range(4):
            core.consumer.revoke()
            await eventually(lambda: not core.state().claims, timeout_s=TIMEOUT_S, what="released")
            assert core.state().status is JobStatus.QUEUED
            core.consumer.assign()
        held.set()
        await core.all_completed()
    assert core.texts() == ["ONE TWO"]
    assert core.engine.asked("one two") == 1, "what came again waited for the one that ran"
    assert core.consumer.stale_completions == 1
    assert core.dead_letters.letters == []


async def test_a_retained_partition_keeps_its_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "LOOK_FOR_LOST_S", 0.0)
    core = Core()
    core.consumer.append(record())
    held = core.engine.hold("one two")
    async with core.working() as worker:
        await core.inside("one two")
        polled = worker.polled_at
        await eventually(lambda: worker.polled_at > polled, timeout_s=TIMEOUT_S, what="a turn")
        assert len(core.state().claims) == 1
        held.set()


async def test_a_partition_that_goes_while_the_claim_is_asked_for_runs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = Core()
    core.consumer.append(record())
    claim = core.store.claim

    async def claim_and_lose(request: ClaimRequest) -> ClaimAnswer:
        reply = await claim(request)
        core.consumer.revoke()
        return reply

    monkeypatch.setattr(core.store, "claim", claim_and_lose)
    async with core.working():
        await eventually(
            lambda: (state := core.store.state("a1")) is not None and not state.claims,
            timeout_s=TIMEOUT_S,
            what="the claim given back",
        )
    assert core.engine.requests == []
    assert core.state().status is JobStatus.QUEUED
