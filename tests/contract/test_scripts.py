"""The scripts keep each row of the contract's table (section 3), however often repeated."""

from __future__ import annotations

import functools
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from redis.exceptions import NoScriptError, ResponseError

from dragoman_schemas import scripts
from dragoman_schemas.results import cancelled_result
from dragoman_schemas.scripts import (
    CancelAnswer,
    CancelEffect,
    ClaimAnswer,
    ConfirmAnswer,
    FinishAnswer,
    Quarantine,
    ReleaseAnswer,
    RemovalAnswer,
    Script,
    StubAnswer,
    Verdict,
)
from dragoman_schemas.wire import decode_result, encode_result
from support.services.document_bits import indexes
from support.services.redis_clients import client_of

pytestmark = pytest.mark.redis

LIVE_TTL_MS = 600_000
JOB_TTL_MS = 60_000
FINGERPRINT, OTHER_FINGERPRINT = "f" * 64, "0" * 64
PLACE, OTHER_PLACE = "dragoman.jobs/3/17", "dragoman.jobs/3/18"
RECORDED_AT = "2030-01-01T00:00:00.000Z"
STUBBED_AT = "2029-12-31T23:59:59.000Z"
CANCELLED_AT = "2030-01-01T00:00:30.000Z"
FINISHED_AT = "2030-01-01T00:01:00.000Z"
RESULT = b'{"job_id":"a1","status":"completed"}'
NONE, COHORT, BY_ITSELF = Quarantine
NOT_COMPLETED = ["failed", "cancelled", "expired"]
TERMINAL = ["completed", *NOT_COMPLETED]


class Job:
    """One key, and the scripts on it with typical arguments."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.key = f"test:job:{uuid.uuid4().hex}"
        self._nonces = (f"n{number}" for number in itertools.count())

    def call(self, script: Script, args: list[str | bytes]) -> list[Any]:
        try:
            reply = self._client.evalsha(script.sha1, 1, self.key, *args)
        except NoScriptError:
            reply = self._client.eval(script.text, 1, self.key, *args)
        return list(reply)

    def stub(self, queued_at: str = STUBBED_AT) -> StubAnswer:
        args = scripts.stub_args(queued_at=queued_at, live_ttl_ms=LIVE_TTL_MS)
        return scripts.parse_stub(self.call(scripts.STUB, args))

    def claim(
        self,
        nonce: str | None = None,
        *,
        fingerprint: str = FINGERPRINT,
        place: str = PLACE,
        now: str = "2030-01-01T00:00:05.000Z",
        replay: int = 0,
        quarantine: Quarantine = Quarantine.NONE,
        want_result: bool = False,
        poison_after: int = 4,
    ) -> ClaimAnswer:
        args = scripts.claim_args(
            nonce=nonce or next(self._nonces),
            fingerprint=fingerprint,
            place=place,
            now=now,
            live_ttl_ms=LIVE_TTL_MS,
            queued_at=RECORDED_AT,
            replay=replay,
            poison_after=poison_after,
            quarantine=quarantine,
            want_result=want_result,
        )
        return scripts.parse_claim(self.call(scripts.CLAIM, args))

    def release(self, nonce: str) -> ReleaseAnswer:
        args = scripts.release_args(nonce=nonce)
        return scripts.parse_release(self.call(scripts.RELEASE, args))

    def finish(
        self,
        status: str = "completed",
        *,
        replays: int = 0,
        result: bytes = RESULT,
        fingerprint: str = FINGERPRINT,
        deliveries: int = 1,
        queued_at: str | None = None,
        started_at: str | None = None,
    ) -> FinishAnswer:
        args = scripts.finish_args(
            status=status,
            replays=replays,
            result=result,
            finished_at=FINISHED_AT,
            ttl_ms=JOB_TTL_MS,
            fingerprint=fingerprint,
            deliveries=deliveries,
            queued_at=queued_at,
            started_at=started_at,
        )
        return scripts.parse_finish(self.call(scripts.FINISH, args))

    def confirm(self) -> ConfirmAnswer:
        return scripts.parse_confirm(self.call(scripts.CONFIRM, scripts.confirm_args()))

    def cancel(self, now: str = CANCELLED_AT) -> CancelAnswer:
        result = encode_result(cancelled_result("a1", now))
        args = scripts.cancel_args(now=now, live_ttl_ms=LIVE_TTL_MS, result=result)
        return scripts.parse_cancel(self.call(scripts.CANCEL, args))

    def mark(self, index: int, ttl_ms: int = JOB_TTL_MS) -> Any:
        args = scripts.mark_args(index=index, ttl_ms=ttl_ms)
        return self._client.eval(scripts.MARK.text, 1, self.key, *args)

    def reset(self) -> RemovalAnswer:
        return scripts.parse_removal(self.call(scripts.RESET, scripts.reset_args()))

    @property
    def bits(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self._client.hgetall(self.key)
        return found

    @property
    def fields(self) -> dict[str, str]:
        stored: dict[bytes, bytes] = self._client.hgetall(self.key)
        return {name.decode(): value.decode() for name, value in stored.items()}

    @property
    def claims(self) -> dict[str, str]:
        return {
            name.removeprefix("claim:"): place
            for name, place in self.fields.items()
            if name.startswith("claim:")
        }

    @property
    def ttl_ms(self) -> int:
        return int(self._client.pttl(self.key))

    def crashed(self, times: int, *, place: str = PLACE, poison_after: int = 4) -> None:
        """Leave ``times`` outstanding claims of the record at ``place``, as crashed workers do."""
        for _ in range(times):
            answer = self.claim(place=place, quarantine=BY_ITSELF, poison_after=poison_after)
            assert answer.verdict is Verdict.RUN

    def ended(self, status: str) -> None:
        """Run the job once and finish it with this status."""
        assert self.claim("first").verdict is Verdict.RUN
        assert self.finish(status).written

    def unchanged_by(self, act: Callable[[], object]) -> bool:
        before = self.fields
        act()
        return self.fields == before


@pytest.fixture(scope="session")
def client(redis_url: str) -> Iterator[Any]:
    with client_of(redis_url) as connected:
        yield connected


@pytest.fixture
def job(client: Any) -> Iterator[Job]:
    """Provide a job without a key; after every test the key has a TTL or is absent."""
    used = Job(client)
    yield used
    assert used.ttl_ms == -2 or 0 < used.ttl_ms <= LIVE_TTL_MS
    client.delete(used.key)


def near(ttl_ms: int, expected: int) -> bool:
    return expected - 30_000 < ttl_ms <= expected


class TestStub:
    def test_announces_a_job_that_has_no_key(self, job: Job) -> None:
        assert job.stub() == StubAnswer(written=True, status="queued")
        assert job.fields == {"status": "queued", "queued_at": STUBBED_AT}
        assert near(job.ttl_ms, LIVE_TTL_MS)

    def test_repeated_changes_nothing(self, job: Job) -> None:
        job.stub()
        assert job.unchanged_by(lambda: job.stub("2031-01-01T00:00:00.000Z"))
        assert job.stub() == StubAnswer(written=False, status="queued")

    def test_leaves_a_running_job_alone(self, job: Job) -> None:
        job.claim()
        assert job.unchanged_by(job.stub)
        assert job.stub() == StubAnswer(written=False, status="running")

    @pytest.mark.parametrize("status", TERMINAL)
    def test_leaves_an_ended_job_alone(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(job.stub)
        assert job.stub() == StubAnswer(written=False, status=status)
        assert near(job.ttl_ms, JOB_TTL_MS)


class TestClaimOfANewJob:
    def test_runs_without_a_key(self, job: Job) -> None:
        answer = job.claim("n", now="2030-01-01T00:00:05.000Z")
        assert answer == ClaimAnswer(
            verdict=Verdict.RUN,
            deliveries=1,
            replays=0,
            queued_at=RECORDED_AT,
            started_at="2030-01-01T00:00:05.000Z",
            status="running",
            result=None,
        )
        assert job.fields == {
            "status": "running",
            "fingerprint": FINGERPRINT,
            "deliveries": "1",
            "replays": "0",
            "claim:n": PLACE,
            "queued_at": RECORDED_AT,
            "started_at": "2030-01-01T00:00:05.000Z",
        }
        assert near(job.ttl_ms, LIVE_TTL_MS)

    def test_keeps_the_time_at_which_the_client_queued_it(self, job: Job) -> None:
        job.stub()
        assert job.claim().queued_at == STUBBED_AT
        assert job.fields["queued_at"] == STUBBED_AT

    def test_repeated_with_its_nonce_runs_and_is_not_counted_again(self, job: Job) -> None:
        first = job.claim("n")
        before = job.fields
        assert [job.claim("n") for _ in range(6)] == [first] * 6
        assert job.fields == before

    def test_of_another_delivery_is_counted_and_keeps_the_start(self, job: Job) -> None:
        job.claim("a", now="2030-01-01T00:00:05.000Z")
        answer = job.claim("b", place=OTHER_PLACE, now="2030-01-01T00:00:09.000Z")
        assert (answer.verdict, answer.deliveries) == (Verdict.RUN, 2)
        assert answer.started_at == "2030-01-01T00:00:05.000Z"
        assert job.claims == {"a": PLACE, "b": OTHER_PLACE}

    def test_renews_the_live_ttl(self, job: Job, client: Any) -> None:
        job.stub()
        client.pexpire(job.key, 5_000)
        job.claim()
        assert near(job.ttl_ms, LIVE_TTL_MS)

    def test_of_a_replay_sets_replays(self, job: Job) -> None:
        assert job.claim(replay=3).replays == 3
        assert job.fields["replays"] == "3"


class TestClaimOfAnOwnedJob:
    def test_with_another_fingerprint_is_a_conflict(self, job: Job) -> None:
        job.claim("a")
        assert job.unchanged_by(lambda: job.claim(fingerprint=OTHER_FINGERPRINT))
        answer = job.claim(fingerprint=OTHER_FINGERPRINT)
        assert (answer.verdict, answer.status, answer.deliveries) == ("conflict", "running", 1)

    def test_with_another_fingerprint_and_its_nonce_known_is_a_conflict(self, job: Job) -> None:
        job.claim("a")
        assert job.claim("a", fingerprint=OTHER_FINGERPRINT).verdict is Verdict.CONFLICT

    def test_with_another_fingerprint_is_a_conflict_once_released(self, job: Job) -> None:
        job.claim("a")
        job.release("a")
        assert job.claim(fingerprint=OTHER_FINGERPRINT).verdict is Verdict.CONFLICT

    def test_a_conflict_comes_before_a_cancel(self, job: Job) -> None:
        job.claim("a")
        job.cancel()
        assert job.claim(fingerprint=OTHER_FINGERPRINT).verdict is Verdict.CONFLICT

    @pytest.mark.parametrize("status", NOT_COMPLETED)
    def test_a_replay_with_another_fingerprint_is_a_conflict(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(lambda: job.claim(fingerprint=OTHER_FINGERPRINT, replay=1))
        answer = job.claim(fingerprint=OTHER_FINGERPRINT, replay=1)
        assert (answer.verdict, answer.status) == (Verdict.CONFLICT, status)

    def test_a_key_without_a_fingerprint_matches_all(self, job: Job) -> None:
        job.stub()
        assert job.claim(fingerprint=OTHER_FINGERPRINT).verdict is Verdict.RUN
        assert job.fields["fingerprint"] == OTHER_FINGERPRINT

    def test_after_a_cancel_request_is_a_cancel(self, job: Job) -> None:
        job.claim("a")
        job.cancel()
        assert job.unchanged_by(lambda: job.claim(place=OTHER_PLACE))
        answer = job.claim("a")
        assert (answer.verdict, answer.status, answer.replays) == (Verdict.CANCEL, "running", 0)


class TestClaimOfASuspect:
    def test_runs_after_one_crash(self, job: Job) -> None:
        job.crashed(1)
        assert job.claim().verdict is Verdict.RUN

    @pytest.mark.parametrize(
        ("crashes", "too_little", "enough"),
        [
            (2, [NONE], [COHORT, BY_ITSELF]),
            (3, [NONE, COHORT], [BY_ITSELF]),
            (4, [NONE, COHORT], [BY_ITSELF]),
        ],
    )
    def test_runs_in_a_cohort_after_two_and_by_itself_after_more(
        self, job: Job, crashes: int, too_little: list[Quarantine], enough: list[Quarantine]
    ) -> None:
        job.crashed(crashes, poison_after=9)
        for quarantine in too_little:
            ask = functools.partial(job.claim, quarantine=quarantine, poison_after=9)
            assert job.unchanged_by(ask)
            answer = ask()
            assert (answer.verdict, answer.suspicions) == (Verdict.SUSPECT, crashes)
            assert Quarantine.wanted(answer.suspicions) is enough[0]
        for runs, quarantine in enumerate(enough, start=1):
            answer = job.claim("n", quarantine=quarantine, poison_after=9)
            assert (answer.verdict, answer.deliveries) == (Verdict.RUN, crashes + runs)
            job.release("n")

    @pytest.mark.parametrize("quarantine", Quarantine)
    @pytest.mark.parametrize("crashes", [4, 5])
    def test_is_poison_after_the_limit(
        self, job: Job, crashes: int, quarantine: Quarantine
    ) -> None:
        job.crashed(crashes, poison_after=9)
        assert job.unchanged_by(lambda: job.claim(quarantine=quarantine))
        answer = job.claim(quarantine=quarantine)
        assert (answer.verdict, answer.deliveries) == (Verdict.POISONED, crashes)
        assert answer.suspicions == crashes

    def test_is_poison_after_the_limit_that_is_asked_for(self, job: Job) -> None:
        job.crashed(1)
        assert job.claim(poison_after=1).verdict is Verdict.POISONED

    def test_claims_of_other_records_raise_no_suspicion(self, job: Job) -> None:
        for number in range(12):
            job.crashed(1, place=f"dragoman.jobs/0/{number}")
        assert job.claim().verdict is Verdict.RUN

    def test_its_own_claim_raises_no_suspicion(self, job: Job) -> None:
        job.crashed(1)
        job.claim("own")
        assert job.claim("own").verdict is Verdict.RUN

    def test_a_released_claim_raises_no_suspicion(self, job: Job) -> None:
        for number in range(9):
            assert job.claim(f"r{number}").verdict is Verdict.RUN
            job.release(f"r{number}")

    def test_a_cancel_comes_before_poison(self, job: Job) -> None:
        job.crashed(4)
        job.cancel()
        assert job.claim().verdict is Verdict.CANCEL

    @pytest.mark.every_redis
    def test_hundreds_of_claims_are_counted(self, job: Job) -> None:
        for number in range(511):
            job.claim(place=f"dragoman.jobs/0/{number}")
        assert job.claim(place="dragoman.jobs/0/77", poison_after=1).verdict is Verdict.POISONED
        assert job.finish("failed").written
        assert job.claims == {}


class TestClaimOfAnEndedJob:
    @pytest.mark.parametrize("status", TERMINAL)
    def test_is_done(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(job.claim)
        answer = job.claim()
        assert (answer.verdict, answer.status, answer.result) == (Verdict.DONE, status, None)
        assert near(job.ttl_ms, JOB_TTL_MS)

    @pytest.mark.parametrize("status", TERMINAL)
    def test_returns_the_result_if_wanted(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.claim(want_result=True).result == RESULT

    def test_a_result_is_returned_only_with_done(self, job: Job) -> None:
        job.ended("failed")
        assert job.claim(want_result=True, fingerprint=OTHER_FINGERPRINT, replay=1).result is None

    @pytest.mark.parametrize("status", TERMINAL)
    def test_is_a_conflict_for_another_fingerprint(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(lambda: job.claim(fingerprint=OTHER_FINGERPRINT))
        assert job.claim(fingerprint=OTHER_FINGERPRINT).verdict is Verdict.CONFLICT

    def test_is_done_when_it_was_cancelled_before_it_came(self, job: Job) -> None:
        job.cancel()
        answer = job.claim(want_result=True)
        assert (answer.verdict, answer.status) == (Verdict.DONE, "cancelled")
        assert decode_result(answer.result or b"").status == "cancelled"

    def test_repeated_after_its_finish_is_done(self, job: Job) -> None:
        job.claim("n")
        job.finish()
        assert job.claim("n").verdict is Verdict.DONE
        assert job.claims == {}


class TestReplay:
    def test_of_a_completed_job_is_done(self, job: Job) -> None:
        job.ended("completed")
        assert job.unchanged_by(lambda: job.claim(replay=1))
        assert job.claim(replay=1).verdict is Verdict.DONE

    @pytest.mark.parametrize("status", NOT_COMPLETED)
    def test_reopens_a_job_that_did_not_complete(self, job: Job, status: str) -> None:
        job.ended(status)
        answer = job.claim("again", replay=1, place=OTHER_PLACE, now="2030-01-02T00:00:00.000Z")
        assert (answer.verdict, answer.deliveries, answer.replays) == (Verdict.RUN, 2, 1)
        assert answer.result is None
        assert job.fields == {
            "status": "running",
            "fingerprint": FINGERPRINT,
            "deliveries": "2",
            "replays": "1",
            "claim:again": OTHER_PLACE,
            "queued_at": RECORDED_AT,
            "started_at": "2030-01-02T00:00:00.000Z",
        }
        assert near(job.ttl_ms, LIVE_TTL_MS)

    @pytest.mark.parametrize("status", NOT_COMPLETED)
    def test_runs_only_once(self, job: Job, status: str) -> None:
        job.ended(status)
        job.claim(replay=2)
        job.finish(status, replays=2)
        assert job.claim(replay=2).verdict is Verdict.DONE
        assert job.claim(replay=1).verdict is Verdict.DONE
        assert job.claim(replay=3).verdict is Verdict.RUN

    @pytest.mark.every_redis
    def test_of_the_largest_number_runs_once_and_is_returned_exactly(self, job: Job) -> None:
        largest = 2**53 - 1
        job.ended("failed")
        for number in (largest - 1, largest):
            answer = job.claim(replay=number)
            assert (answer.verdict, answer.replays) == (Verdict.RUN, number)
            assert job.fields["replays"] == str(number)
            assert job.finish("failed", replays=number - 1).written is False
            assert job.finish("failed", replays=number).replays == number
        assert job.claim(replay=largest).verdict is Verdict.DONE

    def test_repeated_with_its_nonce_is_not_counted_again(self, job: Job) -> None:
        job.ended("failed")
        first = job.claim("again", replay=1)
        assert job.unchanged_by(lambda: job.claim("again", replay=1))
        assert job.claim("again", replay=1) == first

    def test_reopens_a_job_cancelled_before_it_came(self, job: Job) -> None:
        job.cancel()
        assert job.claim(replay=1).verdict is Verdict.RUN
        assert {"result", "finished_at"}.isdisjoint(job.fields)

    def test_removes_the_claims_of_crashed_workers(self, job: Job, client: Any) -> None:
        job.ended("failed")
        leftovers = {f"claim:old{number}": OTHER_PLACE for number in range(5)}
        client.hset(job.key, mapping=leftovers | {"cancel_requested_at": CANCELLED_AT})
        answer = job.claim("again", replay=1, place=OTHER_PLACE)
        assert answer.verdict is Verdict.RUN
        assert job.claims == {"again": OTHER_PLACE}
        assert "cancel_requested_at" not in job.fields

    def test_of_a_running_job_takes_it_over(self, job: Job) -> None:
        job.claim("a", now="2030-01-01T00:00:05.000Z")
        answer = job.claim("b", replay=1, place=OTHER_PLACE, now="2030-01-01T00:00:09.000Z")
        assert (answer.verdict, answer.replays) == (Verdict.RUN, 1)
        assert answer.started_at == "2030-01-01T00:00:09.000Z"
        assert job.finish(replays=0) == FinishAnswer(written=False, status="running", replays=1)
        assert job.finish(replays=1).written

    def test_an_older_record_beside_it_shares_its_generation(self, job: Job) -> None:
        job.claim("b", replay=2, now="2030-01-01T00:00:05.000Z")
        answer = job.claim("a", place=OTHER_PLACE, now="2030-01-01T00:00:09.000Z")
        assert (answer.verdict, answer.replays) == (Verdict.RUN, 2)
        assert answer.started_at == "2030-01-01T00:00:05.000Z"
        assert job.finish(replays=answer.replays).written


class TestRelease:
    def test_of_the_only_claim_queues_the_job_again(self, job: Job, client: Any) -> None:
        job.claim("a")
        client.pexpire(job.key, 50_000)
        assert job.release("a") == ReleaseAnswer(removed=True, status="queued")
        assert (job.claims, job.fields["status"]) == ({}, "queued")
        assert near(job.ttl_ms, 50_000)

    def test_leaves_other_claims_and_the_job_running(self, job: Job) -> None:
        job.claim("a")
        job.claim("b")
        assert job.release("a") == ReleaseAnswer(removed=True, status="running")
        assert (job.claims, job.fields["status"]) == ({"b": PLACE}, "running")

    def test_repeated_changes_nothing(self, job: Job) -> None:
        job.claim("a")
        job.release("a")
        assert job.unchanged_by(lambda: job.release("a"))
        assert job.release("a") == ReleaseAnswer(removed=False, status="queued")

    def test_without_a_key_makes_none(self, job: Job) -> None:
        assert job.release("a") == ReleaseAnswer(removed=False, status=None)
        assert job.fields == {}

    def test_of_an_unknown_claim_changes_nothing(self, job: Job) -> None:
        job.claim("a")
        assert job.unchanged_by(lambda: job.release("b"))

    @pytest.mark.parametrize("status", TERMINAL)
    def test_after_the_end_changes_nothing(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(lambda: job.release("first"))
        assert job.release("first") == ReleaseAnswer(removed=False, status=status)

    def test_keeps_a_cancel_request(self, job: Job) -> None:
        job.claim("a")
        job.cancel()
        job.release("a")
        assert job.claim().verdict is Verdict.CANCEL

    def test_keeps_the_count_of_deliveries(self, job: Job) -> None:
        job.claim("a")
        job.release("a")
        assert job.claim().deliveries == 2


class TestFinish:
    @pytest.mark.parametrize("status", TERMINAL)
    def test_writes_the_end_of_a_running_job(self, job: Job, status: str) -> None:
        job.claim("a", now="2030-01-01T00:00:05.000Z")
        assert job.finish(status) == FinishAnswer(written=True, status=status, replays=0)
        assert job.fields == {
            "status": status,
            "result": RESULT.decode(),
            "fingerprint": FINGERPRINT,
            "deliveries": "1",
            "replays": "0",
            "queued_at": RECORDED_AT,
            "started_at": "2030-01-01T00:00:05.000Z",
            "finished_at": FINISHED_AT,
        }
        assert near(job.ttl_ms, JOB_TTL_MS)

    def test_without_a_key_writes_all_it_is_given(self, job: Job) -> None:
        answer = job.finish(replays=2, deliveries=3, queued_at=RECORDED_AT, started_at=STUBBED_AT)
        assert answer.written
        assert job.fields == {
            "status": "completed",
            "result": RESULT.decode(),
            "fingerprint": FINGERPRINT,
            "deliveries": "3",
            "replays": "2",
            "queued_at": RECORDED_AT,
            "started_at": STUBBED_AT,
            "finished_at": FINISHED_AT,
        }
        assert near(job.ttl_ms, JOB_TTL_MS)

    def test_without_times_writes_none(self, job: Job) -> None:
        job.finish()
        assert {"queued_at", "started_at"}.isdisjoint(job.fields)

    def test_ends_a_queued_job(self, job: Job) -> None:
        job.stub()
        assert job.finish("expired").written
        assert (job.fields["status"], job.fields["queued_at"]) == ("expired", STUBBED_AT)

    def test_removes_every_claim_and_a_cancel_request(self, job: Job) -> None:
        job.crashed(3)
        job.cancel()
        job.finish("cancelled")
        assert job.claims == {}
        assert "cancel_requested_at" not in job.fields

    def test_never_lowers_the_count_of_deliveries(self, job: Job) -> None:
        job.crashed(3)
        job.finish(deliveries=1)
        assert job.fields["deliveries"] == "3"

    @pytest.mark.parametrize("status", TERMINAL)
    @pytest.mark.parametrize("other", TERMINAL)
    def test_the_first_end_wins(self, job: Job, status: str, other: str) -> None:
        job.ended(status)
        assert job.unchanged_by(lambda: job.finish(other, result=b"{}"))
        answer = job.finish(other, result=b"{}")
        assert answer == FinishAnswer(written=False, status=status, replays=0, result=RESULT)
        assert near(job.ttl_ms, JOB_TTL_MS)

    def test_of_an_older_generation_changes_nothing(self, job: Job) -> None:
        job.ended("failed")
        job.claim(replay=1)
        assert job.unchanged_by(job.finish)
        assert job.finish() == FinishAnswer(written=False, status="running", replays=1)
        assert near(job.ttl_ms, LIVE_TTL_MS)

    @pytest.mark.parametrize("held", ["running", "queued"])
    def test_ends_a_job_whose_key_has_lost_the_replay(self, job: Job, held: str) -> None:
        """A fail-over lost the replay, or the whole key: nobody else would end the job."""
        if held == "running":
            job.claim()
        else:
            job.stub()
        assert job.finish(replays=1) == FinishAnswer(written=True, status="completed", replays=1)
        assert (job.fields["status"], job.fields["replays"], job.claims) == ("completed", "1", {})

    def test_cannot_end_a_job_of_another_owner(self, job: Job) -> None:
        job.claim()
        assert job.unchanged_by(lambda: job.finish(fingerprint=OTHER_FINGERPRINT))
        answer = job.finish(fingerprint=OTHER_FINGERPRINT)
        assert answer == FinishAnswer(written=False, status="running", replays=0, owned=False)

    @pytest.mark.parametrize("status", TERMINAL)
    def test_does_not_return_the_result_of_another_owner(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(lambda: job.finish(fingerprint=OTHER_FINGERPRINT))
        answer = job.finish(fingerprint=OTHER_FINGERPRINT)
        assert answer == FinishAnswer(written=False, status=status, replays=0, owned=False)

    def test_returns_no_result_if_a_canceller_wrote_none(self, job: Job, client: Any) -> None:
        job.claim()
        client.hset(job.key, "status", "cancelled")
        answer = job.finish()
        assert answer == FinishAnswer(written=False, status="cancelled", replays=0)


@pytest.mark.every_redis
class TestConfirm:
    @pytest.mark.parametrize("status", TERMINAL)
    def test_changes_nothing_of_an_ended_job(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(job.confirm)
        assert job.confirm() == ConfirmAnswer(written=True, status=status)
        assert near(job.ttl_ms, JOB_TTL_MS)

    def test_without_a_key_makes_none(self, job: Job) -> None:
        assert job.confirm() == ConfirmAnswer(written=False, status=None)
        assert job.fields == {}


@pytest.mark.every_redis
class TestMark:
    """A document's progress; its key is not a job's."""

    def test_sets_the_bit_of_an_index_as_setbit_counts_it(self, job: Job, client: Any) -> None:
        bitmap = f"{job.key}:bitmap"
        for index in (0, 7, 8, 4_095, 8_191, 7, 3):
            job.mark(index)
            client.setbit(bitmap, index, 1)
        assert job.bits == {b"0": client.get(bitmap)}
        client.delete(bitmap)

    def test_answers_whether_the_bit_was_new_and_changes_nothing_when_repeated(
        self, job: Job
    ) -> None:
        assert [job.mark(17), job.mark(17), job.mark(16)] == [1, 0, 1]
        assert job.bits == {b"0": b"\0\0\xc0"}

    def test_holds_8192_indexes_in_a_field_of_at_most_1_kb(self, job: Job) -> None:
        for index in (8_191, 8_192, 999_999):
            job.mark(index)
        sizes = {field: len(bits) for field, bits in job.bits.items()}
        assert sizes == {b"0": 1_024, b"1": 1, b"122": 72}
        assert indexes(job.bits) == {8_191, 8_192, 999_999}

    def test_lengthens_the_ttl_and_never_shortens_it(self, job: Job) -> None:
        job.mark(0)
        assert near(job.ttl_ms, JOB_TTL_MS)
        job.mark(0, ttl_ms=LIVE_TTL_MS)
        job.mark(1)
        assert near(job.ttl_ms, LIVE_TTL_MS)

    def test_keeps_other_bits_of_what_another_program_wrote(self, job: Job, client: Any) -> None:
        client.hset(job.key, mapping={"0": b"\xff" * 2_000, "note": "text"})
        job.mark(3)
        job.mark(8_192)
        job.mark(20_000)
        assert set(job.bits) == {b"0", b"1", b"2", b"note"}
        client.hset(job.key, "0", b"\x0f" * 2_000)
        job.mark(3)
        job.mark(0)
        assert job.bits[b"0"] == b"\x9f" + b"\x0f" * 1_023


class TestFieldsThatAnotherProgramWrote:
    """An invalid count counts as 0, and text that is not UTF-8 is decoded tolerantly."""

    @pytest.mark.parametrize("value", ["", "seven", "-3", "1.5e400", "nan", "-nan", b"\xff", "0x"])
    def test_no_field_stops_a_claim_or_a_finish(self, job: Job, client: Any, value: Any) -> None:
        fields = ("deliveries", "replays", "queued_at", "started_at", "finished_at", "result")
        client.hset(job.key, mapping=dict.fromkeys(fields, value) | {"status": "running"})
        client.pexpire(job.key, LIVE_TTL_MS)
        answer = job.claim("n")
        assert answer.verdict is Verdict.RUN
        assert answer.deliveries >= 1
        assert job.finish(replays=answer.replays, deliveries=answer.deliveries).written
        assert job.claim().verdict is Verdict.DONE


class TestCancel:
    def test_without_a_key_cancels_a_job_that_is_still_to_come(self, job: Job) -> None:
        assert job.cancel() == CancelAnswer(CancelEffect.CANCELLED, "cancelled")
        fields = job.fields
        assert decode_result(fields.pop("result")).status == "cancelled"
        assert fields == {"status": "cancelled", "finished_at": CANCELLED_AT}
        assert near(job.ttl_ms, LIVE_TTL_MS)

    def test_of_a_queued_job_cancels_it(self, job: Job, client: Any) -> None:
        job.stub()
        client.pexpire(job.key, 5_000)
        assert job.cancel() == CancelAnswer(CancelEffect.CANCELLED, "cancelled")
        assert job.fields["status"] == "cancelled"
        assert near(job.ttl_ms, LIVE_TTL_MS)

    def test_of_a_released_job_cancels_it(self, job: Job) -> None:
        job.claim("a")
        job.cancel()
        job.release("a")
        assert job.cancel().effect is CancelEffect.CANCELLED
        assert "cancel_requested_at" not in job.fields

    def test_of_a_running_job_requests_it_once(self, job: Job, client: Any) -> None:
        job.claim("a")
        client.pexpire(job.key, 50_000)
        assert job.cancel() == CancelAnswer(CancelEffect.REQUESTED, "running")
        assert job.fields["cancel_requested_at"] == CANCELLED_AT
        assert job.unchanged_by(lambda: job.cancel("2031-01-01T00:00:00.000Z"))
        assert job.cancel() == CancelAnswer(CancelEffect.REQUESTED, "running")
        assert near(job.ttl_ms, 50_000)

    @pytest.mark.parametrize("status", TERMINAL)
    def test_of_an_ended_job_changes_nothing(self, job: Job, status: str) -> None:
        job.ended(status)
        assert job.unchanged_by(job.cancel)
        assert job.cancel() == CancelAnswer(CancelEffect.ENDED, status)

    def test_repeated_changes_nothing(self, job: Job) -> None:
        job.cancel()
        assert job.unchanged_by(lambda: job.cancel("2031-01-01T00:00:00.000Z"))
        assert job.cancel() == CancelAnswer(CancelEffect.ENDED, "cancelled")


@pytest.mark.every_redis
class TestBothOrders:
    """Scripts run one after the other, so two concurrent callers are one of two orders."""

    def test_claim_then_cancel_is_cancelled_by_the_worker(self, job: Job) -> None:
        job.claim("a")
        assert job.cancel().effect is CancelEffect.REQUESTED
        assert job.finish("cancelled").written

    def test_cancel_then_claim_never_runs(self, job: Job) -> None:
        assert job.cancel().effect is CancelEffect.CANCELLED
        assert job.claim("a").verdict is Verdict.DONE

    def test_finish_then_cancel_keeps_the_result(self, job: Job) -> None:
        job.ended("completed")
        assert job.cancel() == CancelAnswer(CancelEffect.ENDED, "completed")
        assert job.fields["result"] == RESULT.decode()

    def test_cancel_then_a_finish_under_way_keeps_the_result(self, job: Job) -> None:
        job.claim("a")
        job.cancel()
        assert job.finish("completed").written
        assert "cancel_requested_at" not in job.fields

    def test_finish_then_claim_is_done(self, job: Job) -> None:
        job.ended("completed")
        assert job.claim("b").verdict is Verdict.DONE

    def test_two_claims_then_a_finish_removes_both(self, job: Job) -> None:
        job.claim("a")
        job.claim("b")
        assert job.finish().written
        assert job.claims == {}
        assert not job.finish("failed").written

    @pytest.mark.parametrize(
        ("first", "second"), [("completed", "failed"), ("failed", "completed")]
    )
    def test_of_two_finishes_the_first_stands(self, job: Job, first: str, second: str) -> None:
        job.claim("a")
        job.claim("b")
        assert job.finish(first).written
        stands = FinishAnswer(written=False, status=first, replays=0, result=RESULT)
        assert job.finish(second) == stands

    def test_stub_then_claim_and_claim_then_stub_are_the_same_job(self, job: Job) -> None:
        job.stub()
        assert job.claim("a").verdict is Verdict.RUN
        assert job.stub() == StubAnswer(written=False, status="running")

    def test_stub_after_cancel_does_not_revive_the_job(self, job: Job) -> None:
        job.cancel()
        assert job.stub() == StubAnswer(written=False, status="cancelled")

    def test_release_then_claim_runs_without_a_suspicion(self, job: Job) -> None:
        job.claim("a")
        job.release("a")
        answer = job.claim("b")
        assert (answer.verdict, job.claims) == (Verdict.RUN, {"b": PLACE})

    def test_claim_then_release_of_the_other_keeps_it_running(self, job: Job) -> None:
        job.claim("a")
        job.claim("b")
        assert job.release("a").status == "running"
        assert job.finish().written


@pytest.mark.every_redis
class TestAtOnce:
    """Many callers with a connection each, like the replicas of a worker."""

    @staticmethod
    def all_at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        gate = threading.Barrier(len(calls))

        def run(call: Callable[[], Any]) -> Any:
            gate.wait(timeout=30)
            return call()

        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(run, calls))

    def test_of_many_finishes_one_is_written(self, job: Job) -> None:
        job.crashed(2)
        ends = [functools.partial(job.finish, TERMINAL[n % 4], result=b"%d" % n) for n in range(32)]
        answers = self.all_at_once(ends)
        (winner,) = [number for number, answer in enumerate(answers) if answer.written]
        assert job.fields["result"] == str(winner)
        assert {answer.status for answer in answers} == {TERMINAL[winner % 4]}

    def test_of_many_replays_of_one_number_none_is_lost_or_reopens_twice(self, job: Job) -> None:
        job.ended("failed")
        claims = [
            functools.partial(job.claim, f"r{n}", replay=1, quarantine=BY_ITSELF, poison_after=99)
            for n in range(32)
        ]
        answers = self.all_at_once(claims)
        assert {answer.verdict for answer in answers} == {Verdict.RUN}
        assert sorted(answer.deliveries for answer in answers) == list(range(2, 34))
        assert len(job.claims) == 32

    def test_of_many_payloads_one_owns_the_id(self, job: Job) -> None:
        claims = [functools.partial(job.claim, fingerprint=f"{n:064x}") for n in range(32)]
        verdicts = [answer.verdict for answer in self.all_at_once(claims)]
        assert verdicts.count(Verdict.RUN) == 1
        assert verdicts.count(Verdict.CONFLICT) == 31


@pytest.mark.every_redis
def test_a_key_has_a_ttl_after_every_script_in_every_state(job: Job, client: Any) -> None:
    def rows() -> Iterator[Callable[[], object]]:
        yield job.stub
        yield lambda: job.claim("a")
        yield lambda: job.release("a")
        yield lambda: job.finish("failed")
        yield job.confirm
        yield job.cancel
        yield lambda: job.claim("b", replay=1)

    for prepare, act in itertools.product(rows(), rows()):
        client.delete(job.key)
        prepare()
        act()
        assert job.ttl_ms == -2 or job.ttl_ms > 0


@pytest.mark.every_redis
def test_a_server_that_refuses_writes_leaves_the_key_as_it_was(job: Job, client: Any) -> None:
    """Redis has no rollback: a script that fails after its first write leaves half a change."""
    job.ended("failed")
    before = job.fields
    nodes = {"target_nodes": client.PRIMARIES} if isinstance(client, redis.RedisCluster) else {}
    client.config_set("maxmemory", 1, **nodes)
    try:
        with pytest.raises(ResponseError):
            job.claim("again", replay=1)
        assert job.fields == before
    finally:
        client.config_set("maxmemory", 0, **nodes)
    assert job.claim("again", replay=1).verdict is Verdict.RUN


@pytest.mark.every_redis
def test_a_box_removes_a_job_that_is_not_terminal_with_its_claims(job: Job) -> None:
    assert job.reset() == RemovalAnswer(removed=False, status=None)
    job.stub()
    assert job.reset() == RemovalAnswer(removed=True, status="queued")
    job.claim("a")
    assert job.reset() == RemovalAnswer(removed=True, status="running")
    assert job.fields == {}
    assert job.claim("b").deliveries == 1


@pytest.mark.parametrize("status", TERMINAL)
def test_a_box_keeps_a_terminal_job(job: Job, status: str) -> None:
    job.ended(status)
    before = job.fields
    assert job.reset() == RemovalAnswer(removed=False, status=status)
    assert job.fields == before


def lease(job: Job, owner: str, now: int, until: int, **fields: str) -> bool:
    args = scripts.lease_args(
        owner=owner, now_ms=now, until_ms=until, ttl_ms=JOB_TTL_MS, fields=fields
    )
    return bool(job.call(scripts.LEASE, args)[0])


@pytest.mark.every_redis
def test_one_gateway_holds_a_document_until_its_lease_ends(job: Job, client: Any) -> None:
    assert not lease(job, "a", 1000, 2000), "a document that is gone is not made anew"
    assert job.fields == {}
    client.hset(job.key, "key", "shop")
    assert lease(job, "a", 1000, 2000, status="translating")
    assert lease(job, "a", 1500, 2500, done="3")
    before = job.fields
    assert not lease(job, "b", 2500 - 1, 9000, status="done")
    assert job.fields == before
    assert lease(job, "b", 2500, 9000)
    assert not lease(job, "a", 2600, 3000, status="done")
    assert lease(job, "b", 3000, 3000, status="done"), "it gives the document back"
    assert lease(job, "a", 3000, 4000)
    assert job.fields["done"] == "3"


@pytest.mark.every_redis
def test_scripts_are_known_by_the_digest_redis_gives_them(client: Any) -> None:
    for script in scripts.SCRIPTS:
        assert client.script_load(script.text) == script.sha1


@pytest.mark.every_redis
def test_replies_are_understood_with_decoded_responses_too(job: Job, redis_url: str) -> None:
    with client_of(redis_url, decode_responses=True) as decoding:
        duplicate = Job(decoding)
        duplicate.key = job.key
        assert duplicate.stub() == StubAnswer(written=True, status="queued")
        assert duplicate.claim("a").verdict is Verdict.RUN
        assert duplicate.finish().written
        assert duplicate.claim(want_result=True).result == RESULT


# --- forget -------------------------------------------------------------------------------------


@pytest.mark.every_redis
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "expired"])
def test_forget_removes_a_job_that_has_ended_and_a_repetition_changes_nothing(
    job: Job, client: Any, status: str
) -> None:
    client.hset(job.key, mapping={"status": status, "result": "{}"})
    assert forgotten(job) == RemovalAnswer(removed=True, status=status)
    assert job.fields == {}
    assert forgotten(job) == RemovalAnswer(removed=False, status=None)


@pytest.mark.every_redis
@pytest.mark.parametrize("status", ["queued", "running", "of another version"])
def test_forget_leaves_a_job_that_would_come_back(job: Job, client: Any, status: str) -> None:
    client.hset(job.key, "status", status)
    assert forgotten(job) == RemovalAnswer(removed=False, status=status)
    assert job.fields == {"status": status}
    client.delete(job.key)


def forgotten(job: Job) -> RemovalAnswer:
    return scripts.parse_removal(job.call(scripts.FORGET, []))
