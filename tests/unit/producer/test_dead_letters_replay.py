"""Unit tests of the decisions of a replay, without services."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.operations.dead_letters import DeadLetterFilter, ReadDeadLetter
from dragoman_producer.operations.job_keys import JobKey
from dragoman_producer.operations.replay_planner import (
    Replay,
    ReplayCandidate,
    ReplayPlanner,
    Skip,
    without_past_deadline,
)
from dragoman_schemas.wire import open_record, replay_of

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
JOB: dict[str, Any] = {"job_id": "a", "text": "Grüße 🙂", "target_lang": "de"}
FINGERPRINT = open_record(json.dumps(JOB).encode()).fingerprint


def dead_letter(
    value: dict[str, Any] | bytes | None = None,
    *own: tuple[str, bytes],
    origin: str = "jobs/0/7",
    **headers: str,
) -> ReadDeadLetter:
    topic, partition, offset = origin.split("/")
    ours = {
        "x-original-topic": topic,
        "x-original-partition": partition,
        "x-original-offset": offset,
        "x-error-code": "engine_failed",
        "x-job-id": "a",
    } | {f"x-{name.replace('_', '-')}": content for name, content in headers.items()}
    record = JOB if value is None else value
    return ReadDeadLetter(
        partition=0,
        offset=0,
        timestamp_ms=1_000,
        key=b"a",
        value=json.dumps(record).encode() if isinstance(record, dict) else record,
        headers=(*own, *((name, content.encode()) for name, content in ours.items())),
    )


def key(status: str = "failed", fingerprint: str | None = FINGERPRINT, replays: int = 0) -> JobKey:
    return JobKey(status, fingerprint, replays)


def decided(found: ReadDeadLetter, state: JobKey | None, *, named: bool = False) -> Replay | Skip:
    with closing(ReplayPlanner({"jobs"})) as planner:
        candidate = planner.examine(found, named=named)
        if isinstance(candidate, Skip):
            return candidate
        assert isinstance(candidate, ReplayCandidate)
        return planner.decide(candidate, state, NOW)


def test_a_replay_copies_bytes_key_and_headers_with_the_next_replay_number() -> None:
    own = (("traceparent", b"00-1"), ("x-mine", b"1"), ("dragoman-replay", b"2"))
    value = b' {"target_lang": "de", "job_id": "a", "text": "Gr\\u00fc\\u00dfe \xf0\x9f\x99\x82"}'
    replay = decided(dead_letter(value, *own), key(replays=2))
    assert isinstance(replay, Replay)
    assert (replay.topic, replay.key, replay.value) == ("jobs", b"a", value)
    assert replay.headers == (("traceparent", b"00-1"), ("x-mine", b"1"), ("dragoman-replay", b"3"))
    assert replay_of(replay.headers) == replay.number == 3


SKIPS = {
    "number-used-up": (dead_letter(), key(replays=2**53 - 1), Skip.NUMBER_USED_UP),
    "other-topic": (dead_letter(origin="payments/0/7"), key(), Skip.OTHER_TOPIC),
    "no-topic": (dead_letter(origin="/0/7"), key(), Skip.NO_ORIGIN),
    "completed": (dead_letter(), key("completed"), Skip.COMPLETED),
    "runs": (dead_letter(), key("running"), Skip.SUPERSEDED),
    "waits": (dead_letter(), key("queued"), Skip.SUPERSEDED),
    "cancelled": (dead_letter(), key("cancelled"), Skip.SUPERSEDED),
    "another payload has the id": (dead_letter(), key("failed", "f2"), Skip.SUPERSEDED),
    "a conflict": (dead_letter(error_code="conflict"), key("failed", "f2"), Skip.CONFLICT),
    "not JSON": (dead_letter(b"job"), None, Skip.UNREADABLE),
    "a tombstone": (dead_letter(b""), None, Skip.UNREADABLE),
    "headers only": (dead_letter(b"", original_sha256="00"), key(), Skip.HEADERS_ONLY),
}


@pytest.mark.parametrize("case", SKIPS)
def test_a_skipped_dead_letter_has_its_reason(case: str) -> None:
    found, state, expected = SKIPS[case]
    assert decided(found, state) is expected


def test_a_named_conflict_is_replayed_once_its_id_is_free() -> None:
    conflict = dead_letter(error_code="conflict")
    assert decided(conflict, key("failed", "f2"), named=True) is Skip.ID_TAKEN
    assert decided(conflict, key("completed", "f2"), named=True) is Skip.COMPLETED
    assert isinstance(decided(conflict, None, named=True), Replay)


def test_a_job_whose_key_is_past_its_ttl_runs_as_replay_one() -> None:
    replay = decided(dead_letter(), None)
    assert isinstance(replay, Replay)
    assert replay.number == 1


def test_a_job_is_replayed_once_although_it_has_several_dead_letters() -> None:
    with closing(ReplayPlanner({"jobs"})) as planner:
        first = planner.examine(dead_letter(), named=False)
        assert planner.examine(dead_letter(), named=False) is Skip.DUPLICATE
        second = planner.examine(dead_letter(origin="jobs/0/8"), named=False)
        assert isinstance(first, ReplayCandidate)
        assert isinstance(second, ReplayCandidate)
        assert isinstance(planner.decide(first, key(), NOW), Replay)
        assert planner.decide(second, key(), NOW) is Skip.SAME_JOB


@pytest.mark.parametrize("past", ["2030-01-31T11:59:59Z", "2030-01-31 12:59:59.5+01:00"])
def test_a_past_deadline_is_dropped_and_the_job_stays_the_same(past: str) -> None:
    value = json.dumps({**JOB, "deadline": past, "metadata": {"k": "v"}}).encode()
    shortened = without_past_deadline(value, NOW)
    assert json.loads(shortened) == {**JOB, "metadata": {"k": "v"}}
    assert open_record(shortened).fingerprint == FINGERPRINT


@pytest.mark.parametrize("other", ["2030-01-31T12:00:01Z", "soon", "2020-01-01T00:00:00", 5, None])
def test_without_a_past_deadline_the_bytes_do_not_change(other: object) -> None:
    value = json.dumps({**JOB, "deadline": other}, indent=3).encode()
    assert without_past_deadline(value, NOW) is value


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_dropping_the_deadline_never_changes_the_fingerprint(fields: dict[str, Any]) -> None:
    kept = {**fields, "job_id": "a"}
    kept.pop("deadline", None)
    value = json.dumps({**kept, "deadline": "2000-01-01T00:00:00Z"}).encode()
    try:
        expected = open_record(value).fingerprint
    except ValueError:
        return  # for example a whole float beyond 2^53
    assert open_record(without_past_deadline(value, NOW)).fingerprint == expected


def test_the_filter_selects_by_code_name_and_half_open_time() -> None:
    found = dead_letter()
    assert DeadLetterFilter().wants(found)
    assert DeadLetterFilter(codes=frozenset({"engine_failed"})).wants(found)
    assert not DeadLetterFilter(codes=frozenset({"conflict"})).wants(found)
    assert DeadLetterFilter(names=frozenset({"a"})).wants(found)
    assert DeadLetterFilter(names=frozenset({"jobs/0/7"})).wants(found)
    assert not DeadLetterFilter(names=frozenset({"b"})).wants(found)
    assert DeadLetterFilter(since_ms=1_000, until_ms=1_001).wants(found)
    assert not DeadLetterFilter(since_ms=1_001).wants(found)
    assert not DeadLetterFilter(until_ms=1_000).wants(found)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"document_id": "book", "index": 0, "total": 1}, "book"),
        ({"document_id": "no id"}, None),
        ({"document_id": 7}, None),
        ("book", None),
        (None, None),
    ],
)
def test_a_replay_names_the_document_that_it_reopens(document: object, expected: str) -> None:
    value = {**JOB, "document": document}
    replay = decided(dead_letter(value), key())
    assert isinstance(replay, Replay)
    assert replay.document_id == expected


def test_the_largest_replay_number_is_used_and_not_exceeded() -> None:
    replay = decided(dead_letter(), key(replays=2**53 - 2))
    assert isinstance(replay, Replay)
    assert replay_of(replay.headers) == replay.number == 2**53 - 1
