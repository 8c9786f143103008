"""Unit tests of the accounting of an audit, without services."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.errors import DragomanError
from dragoman_producer.operations.accounting import (
    BREAKS,
    Account,
    AuditedRecord,
    Broken,
    DeadLetterIndex,
    Ledger,
)
from dragoman_producer.operations.digests import DigestTable, digest_of
from dragoman_producer.operations.job_keys import JobKey

NOW_MS = 1_900_000_000_000
HOUR_MS = 3_600_000
RECORD = AuditedRecord("jobs/0/7", NOW_MS - HOUR_MS, True, "a", "f1", 0, 86_400)
WAITING = replace(RECORD, settled=False)
OLD = replace(RECORD, timestamp_ms=NOW_MS - 25 * HOUR_MS)
UNREADABLE_RECORD = AuditedRecord("jobs/0/7", NOW_MS - HOUR_MS, True)


def key(status: str, fingerprint: str | None = "f1") -> JobKey:
    return JobKey(status, fingerprint, 0, "2030-03-17T17:00:00.000Z")


def opened() -> DeadLetterIndex:
    """Return dead letters that close themselves: Python warns of an unclosed database from 3.13."""
    found = DeadLetterIndex()
    for table in (found._places, found._jobs):
        weakref.finalize(found, table.close)
    return found


def dead_letters(*conflicts: bool, job_id: str | None = "a") -> DeadLetterIndex:
    found = opened()
    for conflict in conflicts:
        found.add("jobs/0/7", job_id, conflict=conflict)
    return found


def judged(
    records: Sequence[tuple[AuditedRecord, JobKey | None]], found: DeadLetterIndex
) -> tuple[Counter[Account], list[Broken]]:
    broken: list[Broken] = []
    with closing(Ledger(found, now_ms=NOW_MS, broken=broken.append)) as ledger:
        for record, state in records:
            ledger.account(record, state)
        keys = {record.job_id: state for record, state in records}
        for doubt in ledger.doubts():
            ledger.settle(doubt, keys[doubt.record.job_id])
    assert ledger.records == sum(ledger.counts.values()) == len(records)
    return ledger.counts, broken


ONE_RECORD = {
    "cancelled before it was read, its id replayed with another payload": (
        RECORD,
        replace(key("completed", "f2"), replays=1),
        dead_letters(),
        Account.CANCELLED,
    ),
    "of another payload than an id that was replayed no more often": (
        replace(RECORD, replay=1),
        replace(key("completed", "f2"), replays=1),
        dead_letters(),
        Account.NO_DEAD_LETTER,
    ),
    "completed": (RECORD, key("completed"), dead_letters(), Account.COMPLETED),
    "completed before its offset is committed": (
        WAITING,
        key("completed"),
        dead_letters(),
        Account.COMPLETED,
    ),
    "completed after a failure": (RECORD, key("completed"), dead_letters(False), Account.COMPLETED),
    "failed with its dead letter": (RECORD, key("failed"), dead_letters(False), Account.FAILED),
    "failed without a dead letter": (RECORD, key("failed"), dead_letters(), Account.NO_DEAD_LETTER),
    "failed, with only a dead letter of a conflict": (
        replace(RECORD, place="jobs/0/8"),
        key("failed"),
        dead_letters(True),
        Account.NO_DEAD_LETTER,
    ),
    "failed, without a key": (RECORD, None, dead_letters(False), Account.FAILED),
    "cancelled": (RECORD, key("cancelled"), dead_letters(), Account.CANCELLED),
    "cancelled before a record was claimed": (
        RECORD,
        key("cancelled", None),
        dead_letters(),
        Account.CANCELLED,
    ),
    "expired": (RECORD, key("expired"), dead_letters(), Account.EXPIRED),
    "queued": (WAITING, key("queued"), dead_letters(), Account.LIVE),
    "running": (WAITING, key("running"), dead_letters(), Account.LIVE),
    "not claimed": (WAITING, None, dead_letters(), Account.LIVE),
    "id of another payload, not claimed": (
        WAITING,
        key("running", "f2"),
        dead_letters(),
        Account.LIVE,
    ),
    "running, without an unsettled record": (RECORD, key("running"), dead_letters(), Account.STUCK),
    "a conflict": (RECORD, key("completed", "f2"), dead_letters(True), Account.CONFLICT),
    "a conflict without its dead letter": (
        RECORD,
        key("completed", "f2"),
        dead_letters(),
        Account.NO_DEAD_LETTER,
    ),
    "key expired in time": (OLD, None, dead_letters(), Account.AGED_OUT),
    "id used again since": (OLD, key("completed", "f2"), dead_letters(), Account.AGED_OUT),
    "submitted again since": (OLD, key("queued", None), dead_letters(), Account.AGED_OUT),
    "key gone too early": (RECORD, None, dead_letters(), Account.LOST),
    "only submitted again": (RECORD, key("queued", None), dead_letters(), Account.LOST),
    "unreadable": (UNREADABLE_RECORD, None, dead_letters(False, job_id=None), Account.UNREADABLE),
    "unreadable without a dead letter": (
        UNREADABLE_RECORD,
        None,
        dead_letters(),
        Account.NO_DEAD_LETTER,
    ),
    "unreadable, not settled": (
        replace(UNREADABLE_RECORD, settled=False),
        None,
        dead_letters(),
        Account.LIVE,
    ),
}


@pytest.mark.parametrize("case", ONE_RECORD)
def test_a_record_is_accounted_for_by_its_key_its_place_and_its_dead_letters(case: str) -> None:
    record, state, found, expected = ONE_RECORD[case]
    counts, broken = judged([(record, state)], found)
    assert counts == {expected: 1}
    named = [(one.account, one.job_id, one.place) for one in broken]
    assert named == ([(expected, record.job_id, record.place)] if expected in BREAKS else [])


def test_every_further_record_of_a_job_is_a_duplicate() -> None:
    records = [replace(RECORD, place=f"jobs/0/{number}") for number in range(4)]
    counts, _ = judged([(record, key("completed")) for record in records], dead_letters())
    assert counts == {Account.COMPLETED: 1, Account.DUPLICATE: 3}


def test_a_late_duplicate_of_an_aged_out_job_is_not_lost_in_any_order() -> None:
    late = replace(RECORD, place="jobs/0/9")
    for pair in ([(OLD, None), (late, None)], [(late, None), (OLD, None)]):
        counts, broken = judged(pair, dead_letters())
        assert counts == {Account.AGED_OUT: 1, Account.DUPLICATE: 1}
        assert broken == []


def test_a_replay_without_a_key_is_lost_although_its_failure_is_known() -> None:
    again = replace(RECORD, place="jobs/0/9", replay=1)
    counts, _ = judged([(RECORD, None), (again, None)], dead_letters(False))
    assert counts == {Account.FAILED: 1, Account.LOST: 1}


def test_a_running_job_with_an_unsettled_record_is_live() -> None:
    replayed = replace(WAITING, place="jobs/0/9", replay=1)
    counts, _ = judged([(RECORD, key("running")), (replayed, key("running"))], dead_letters())
    assert counts == {Account.LIVE: 1, Account.DUPLICATE: 1}


@contextmanager
def doubtful(
    record: AuditedRecord, state: JobKey | None, found: DeadLetterIndex
) -> Iterator[Ledger]:
    with closing(Ledger(found, now_ms=NOW_MS, broken=lambda _: None)) as ledger:
        ledger.account(record, state)
        assert ledger.doubtful == 1
        yield ledger


def test_a_dead_letter_that_arrives_during_the_audit_settles_the_doubt() -> None:
    found = dead_letters()
    with doubtful(RECORD, key("failed"), found) as ledger:
        found.add("jobs/0/7", "a", conflict=False)
        ledger.settle(next(ledger.doubts()), key("failed"))
        assert ledger.counts == {Account.FAILED: 1}


def test_a_record_or_a_result_that_arrives_during_the_audit_settles_the_doubt() -> None:
    with doubtful(RECORD, key("running"), dead_letters()) as ledger:
        ledger.note_newer("a", "f1")
        ledger.settle(next(ledger.doubts()), key("running"))
        assert ledger.counts == {Account.LIVE: 1}
    with doubtful(RECORD, key("running"), dead_letters()) as ledger:
        ledger.settle(next(ledger.doubts()), key("completed"))
        assert ledger.counts == {Account.COMPLETED: 1}


def test_dead_letters_past_their_retention_are_not_missed() -> None:
    for record, state, expected in (
        (RECORD, key("failed"), Account.FAILED),
        (RECORD, key("completed", "f2"), Account.CONFLICT),
        (UNREADABLE_RECORD, None, Account.UNREADABLE),
    ):
        found = dead_letters()
        found.complete_since_ms = int(datetime(2030, 3, 18, tzinfo=UTC).timestamp() * 1000)
        counts, broken = judged([(record, state)], found)
        assert (counts, broken) == ({expected: 1}, [])


RECORDS = st.builds(
    AuditedRecord,
    place=st.integers(0, 30).map(lambda offset: f"jobs/0/{offset}"),
    timestamp_ms=st.sampled_from([NOW_MS, OLD.timestamp_ms]),
    settled=st.booleans(),
    job_id=st.sampled_from([None, "a", "b", "c"]),
    fingerprint=st.sampled_from(["f1", "f2"]),
    replay=st.integers(0, 1),
    ttl_s=st.just(86_400),
)
KEYS = st.none() | st.builds(
    JobKey,
    status=st.sampled_from(["queued", "running", "completed", "failed", "cancelled", "new"]),
    fingerprint=st.sampled_from([None, "f1", "f2"]),
    finished_at=st.sampled_from([None, "2030-03-17T17:00:00.000Z", "?"]),
)
LETTERS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([None, "a", "b"]), st.booleans()), max_size=8
)


@given(st.lists(st.tuples(RECORDS, KEYS), max_size=40), LETTERS)
def test_every_record_is_counted_once_and_every_broken_one_is_reported(
    records: list[tuple[AuditedRecord, JobKey | None]],
    written: list[tuple[int, str | None, bool]],
) -> None:
    found = opened()
    for offset, job_id, conflict in written:
        found.add(f"jobs/0/{offset}", job_id, conflict=conflict)
    counts, broken = judged(records, found)
    assert len(broken) == sum(counts[account] for account in BREAKS)
    places = Counter(record.place for record, _ in records)
    assert Counter(one.place for one in broken) <= places
    # Waiting records are never reported as broken.
    waiting = Counter(record.place for record, _ in records if not record.settled)
    failed = {one.place for one in broken if one.account is not Account.NO_DEAD_LETTER}
    assert all(places[place] > waiting[place] for place in failed)


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(1, 7)), max_size=200))
def test_a_digest_table_behaves_like_a_dict(entries: list[tuple[str, int]]) -> None:
    expected = dict[str, int]()
    with closing(DigestTable()) as table:
        for name, flags in entries:
            before = expected.get(name, 0)
            assert table.add(digest_of(name), flags) == before
            expected[name] = before | flags
        assert {name: table.flags(digest_of(name)) for name in expected} == expected


def test_a_digest_table_keeps_entries_beyond_its_memory() -> None:
    with closing(DigestTable()) as table:
        for number in range(20_000):
            assert table.add(digest_of(str(number)), 1 + number % 5) == 0
        wrong = [n for n in range(20_000) if table.flags(digest_of(str(n))) != 1 + n % 5]
        assert wrong == []
        assert table.flags(digest_of("20000")) == 0


def test_a_full_disk_is_reported_with_what_to_do() -> None:
    with closing(DigestTable()) as table:
        table._database.execute("PRAGMA max_page_count = 2")
        with pytest.raises(DragomanError, match="full; set TMPDIR"):
            all(table.add(digest_of(str(number)), 1) == 0 for number in range(1000))
