"""Accounting of records by their jobs' keys, their places and the dead letters, without I/O."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from dragoman_producer.operations.digests import DigestTable, digest_of
from dragoman_producer.operations.job_keys import JobKey

_TERMINAL: Final = frozenset({"completed", "failed", "cancelled", "expired"})
_COUNTED: Final = 1
_WAITING: Final = 2
_GONE: Final = 4
_DEAD_LETTER: Final = 1
_CONFLICT: Final = 2
_DOUBTS_IN_MEMORY: Final = 4_194_304


class Account(StrEnum):
    """Outcome of a record. The last three break the promise that nothing is lost."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    LIVE = "live"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    UNREADABLE = "unreadable"
    AGED_OUT = "aged_out"
    LOST = "lost"
    STUCK = "stuck"
    NO_DEAD_LETTER = "no_dead_letter"


BREAKS: Final = frozenset({Account.LOST, Account.STUCK, Account.NO_DEAD_LETTER})


@dataclass(frozen=True, slots=True)
class AuditedRecord:
    """One record. ``settled``: below the committed offset. ``job_id`` None: it is unreadable."""

    place: str
    timestamp_ms: int
    settled: bool
    job_id: str | None = None
    fingerprint: str = ""
    replay: int = 0
    ttl_s: int = 0


@dataclass(frozen=True, slots=True)
class Broken:
    """A record or a job that breaks the promise, and why."""

    account: Account
    job_id: str | None
    place: str
    why: str


class DeadLetterIndex:
    """Dead letters by place and by job, in a temporary database."""

    def __init__(self) -> None:
        self._places = DigestTable()
        self._jobs = DigestTable()
        self.count = 0
        self.complete_since_ms = 0
        """Time before which dead letters may have been deleted by their topic's retention."""

    def close(self) -> None:
        """Delete the temporary database."""
        self._places.close()
        self._jobs.close()

    def add(self, origin: str | None, job_id: str | None, *, conflict: bool) -> None:
        """Note a dead letter; idempotent."""
        flag = _CONFLICT if conflict else _DEAD_LETTER
        if origin is None or not self._places.add(digest_of(origin), flag):
            self.count += 1
        if job_id is not None and not conflict:
            self._jobs.add(digest_of(job_id), _DEAD_LETTER)

    def at(self, place: str) -> int:
        """Return the flags of the dead letters of a place; 0 if there is none."""
        return self._places.flags(digest_of(place))

    def of_job(self, job_id: str) -> bool:
        """Return whether a dead letter is of this job's failure."""
        return bool(self._jobs.flags(digest_of(job_id)))


@dataclass(frozen=True, slots=True)
class Doubt:
    """A record that seems broken; decided once everything has been read."""

    account: Account
    record: AuditedRecord
    finished_at: str | None
    why: str


class Ledger:
    """Accounts for every record exactly once: by ``account``, or by ``settle`` of its doubt.

    Memory is bounded: jobs are in a temporary database, doubts beyond 4 MiB in a temporary file.
    """

    def __init__(
        self, dead_letters: DeadLetterIndex, *, now_ms: int, broken: Callable[[Broken], None]
    ) -> None:
        self._dead_letters = dead_letters
        self._now_ms = now_ms
        self._report = broken
        self._jobs = DigestTable()
        self._doubts = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed by close()
            max_size=_DOUBTS_IN_MEMORY, mode="w+", encoding="utf-8"
        )
        self.counts: Counter[Account] = Counter()
        self.records = 0
        self.doubtful = 0
        self.dead_letters_aged_out = 0
        self.broken = 0

    def close(self) -> None:
        """Delete the temporary database and file."""
        self._jobs.close()
        self._doubts.close()

    # --- first pass -------------------------------------------------------------------------------

    def account(self, record: AuditedRecord, key: JobKey | None) -> None:
        """Count a record by its job's key, or note a doubt."""
        self.records += 1
        dead_letter = self._dead_letters.at(record.place)
        if record.job_id is None:
            self._unreadable(record, dead_letter)
        elif dead_letter & _CONFLICT:
            self._count(Account.CONFLICT)
        elif key is None or not key.belongs_to(record.fingerprint):
            self._not_owning(record, key, dead_letter)
        elif key.is_stub and record.settled:
            self._not_owning(record, None, dead_letter)
        else:
            self._owning(record, key)

    def note_newer(self, job_id: str, fingerprint: str) -> None:
        """Note a record that arrived during the audit: its job is not stuck."""
        self._jobs.add(digest_of(job_id, fingerprint), _WAITING)

    def _unreadable(self, record: AuditedRecord, dead_letter: int) -> None:
        if dead_letter:
            self._count(Account.UNREADABLE)
        elif not record.settled:
            self._count(Account.LIVE)
        else:
            self._doubt(Account.NO_DEAD_LETTER, record, None, "no readable id, and no dead letter")

    def _not_owning(self, record: AuditedRecord, key: JobKey | None, dead_letter: int) -> None:
        """Count a record whose job has no key, or whose id belongs to another payload."""
        job = digest_of(record.job_id or "", record.fingerprint)
        if dead_letter:
            before = self._jobs.add(job, _GONE)
            again = bool(before & (_GONE | _COUNTED)) and not record.replay
            self._count(Account.DUPLICATE if again else Account.FAILED)
        elif not record.settled:
            before = self._jobs.add(job, _COUNTED | _WAITING)
            self._count(Account.DUPLICATE if before & _COUNTED else Account.LIVE)
        elif self._is_aged(record):
            before = self._jobs.add(job, _GONE)
            self._count(Account.DUPLICATE if before & (_GONE | _COUNTED) else Account.AGED_OUT)
        elif key is not None and key.replays > record.replay:
            # A replay brings another payload only to a job that was cancelled before it was read.
            self._count(Account.CANCELLED)
        elif key is None:
            self._doubt(Account.LOST, record, None, "settled, but it has no key and no dead letter")
        else:
            why = "its id belongs to another payload, and it has no dead letter"
            self._doubt(Account.NO_DEAD_LETTER, record, None, why)

    def _owning(self, record: AuditedRecord, key: JobKey) -> None:
        job = digest_of(record.job_id or "", key.fingerprint or "")
        flags = _COUNTED if record.settled else _COUNTED | _WAITING
        if self._jobs.add(job, flags) & _COUNTED:
            self._count(Account.DUPLICATE)
        elif key.status == "failed" and not self._dead_letters.of_job(record.job_id or ""):
            why = "the job is failed, and has no dead letter"
            self._doubt(Account.NO_DEAD_LETTER, record, key, why)
        elif key.status in _TERMINAL:
            self._count(Account(key.status))
        elif not record.settled:
            self._count(Account.LIVE)
        else:
            why = f"its key is {key.status[:20]}, but no unsettled record of it is left"
            self._doubt(Account.STUCK, record, key, why)

    def _is_aged(self, record: AuditedRecord) -> bool:
        """Return whether the job may be so old that its result's TTL is over."""
        return self._now_ms - record.timestamp_ms > record.ttl_s * 1000

    # --- second pass ------------------------------------------------------------------------------

    def doubts(self) -> Iterator[Doubt]:
        """Yield the records to settle, once newer dead letters and records have been noted."""
        self._doubts.seek(0)
        for line in self._doubts:
            account, record, finished_at, why = json.loads(line)
            yield Doubt(Account(account), AuditedRecord(**record), finished_at, why)

    def settle(self, doubt: Doubt, key: JobKey | None) -> None:
        """Count a doubtful record by its current key."""
        if doubt.account is Account.STUCK:
            self._settle_stuck(doubt, key)
        elif doubt.finished_at is not None:
            self._settle_failed(doubt)
        elif doubt.record.job_id is not None and self._has_equal_record(doubt.record):
            self._count(Account.DUPLICATE)
        elif doubt.account is Account.NO_DEAD_LETTER and self._may_be_deleted(doubt.record):
            unreadable = doubt.record.job_id is None
            self._count_without_dead_letter(Account.UNREADABLE if unreadable else Account.CONFLICT)
        else:
            self._count_broken(doubt)

    def _may_be_deleted(self, record: AuditedRecord) -> bool:
        return record.timestamp_ms < self._dead_letters.complete_since_ms

    def _settle_stuck(self, doubt: Doubt, key: JobKey | None) -> None:
        record = doubt.record
        if key is not None and key.status in _TERMINAL:
            self._count(Account(key.status))
        elif self._jobs.flags(digest_of(record.job_id or "", record.fingerprint)) & _WAITING:
            self._count(Account.LIVE)
        else:
            self._count_broken(doubt)

    def _settle_failed(self, doubt: Doubt) -> None:
        if self._dead_letters.of_job(doubt.record.job_id or ""):
            self._count(Account.FAILED)
        elif _milliseconds(doubt.finished_at) < self._dead_letters.complete_since_ms:
            self._count_without_dead_letter(Account.FAILED)
        else:
            self._count_broken(doubt)

    def _has_equal_record(self, record: AuditedRecord) -> bool:
        """Return whether an equal record accounts for the job, so that this one is a duplicate.

        A replay is not a duplicate of a job of which only the failure is known.
        """
        job_id = record.job_id or ""
        flags = self._jobs.flags(digest_of(job_id, record.fingerprint))
        flags |= self._jobs.flags(digest_of(job_id, ""))
        return bool(flags & _COUNTED or (flags & _GONE and not record.replay))

    # --- helpers ----------------------------------------------------------------------------------

    def _doubt(self, account: Account, record: AuditedRecord, key: JobKey | None, why: str) -> None:
        self.doubtful += 1
        finished_at = (key.finished_at or "") if key and account is not Account.STUCK else None
        self._doubts.write(json.dumps([account, asdict(record), finished_at, why]) + "\n")

    def _count(self, account: Account) -> None:
        self.counts[account] += 1

    def _count_without_dead_letter(self, account: Account) -> None:
        self.dead_letters_aged_out += 1
        self._count(account)

    def _count_broken(self, doubt: Doubt) -> None:
        self._count(doubt.account)
        self.broken += 1
        record = doubt.record
        self._report(Broken(doubt.account, record.job_id, record.place, doubt.why))


def _milliseconds(time: str | None) -> float:
    """Return milliseconds since the epoch; infinity for an invalid time, which counts as new."""
    try:
        return datetime.fromisoformat(time or "").timestamp() * 1000
    except ValueError:
        return float("inf")
