"""The ledger: it decides whether every acknowledged record had its one correct outcome."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from support.chaos.sent import Sent
from support.chaos.system import End

Spot = tuple[int, int]
"""Partition and offset in the topic of the storm."""

POISON_AFTER: Final = 4
"""The default of `retry.poison_after`."""
_WITH_LETTER: Final = frozenset({"failed"})


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter: its original record and its error code."""

    spot: Spot
    code: str


@dataclass(slots=True)
class Verdict:
    """The findings of the ledger. `problems` names every record or job that breaks a guarantee."""

    records: int = 0
    jobs: int = 0
    lost: int = 0
    wrong: int = 0
    condemned: int = 0
    """Harmless jobs that ended as `poisoned` because they were in flight in that many crashes: a
    storm kills workers more often than `retry.poison_after` is made for. Also those that a worker
    without its partition completed between their dead letter and their end."""
    duplicate_computations: int = 0
    letters: int = 0
    duplicate_letters: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def note(self, account: str, words: str) -> None:
        """Count one problem as `lost` or `wrong`."""
        if account == "lost":
            self.lost += 1
        else:
            self.wrong += 1
        self.problems.append(f"{account}: {words}")

    def condemn(self, sent: Sent, end: End) -> None:
        """Count a harmless job that was taken for poison."""
        self.condemned += 1
        self.problems.append(
            f"condemned: {sent.job_id} ({sent.kind}), {end.status}, {end.deliveries} deliveries"
        )


class Ledger:
    """Sent records and their offsets, entered only after the acknowledgement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spots: dict[Spot, Sent] = {}
        self._entries: list[tuple[Spot, Sent]] = []
        self._jobs: dict[str, dict[Spot, Sent]] = defaultdict(dict)
        self.refused: list[Sent] = []
        """Records that the producer gave up; they may or may not be in the topic."""

    def acknowledged(self, sent: Sent, spot: Spot) -> None:
        """Enter a record under the offset that the broker returned."""
        with self._lock:
            self._spots[spot] = sent
            self._entries.append((spot, sent))
            if sent.job_id is not None:
                self._jobs[sent.job_id][spot] = sent

    def given_up(self, sent: Sent) -> None:
        """Enter a record that was not acknowledged in time."""
        with self._lock:
            self.refused.append(sent)

    def __len__(self) -> int:
        return len(self._spots)

    def entries(self, first: int) -> list[tuple[Spot, Sent]]:
        """Return all entries so far, from number `first`."""
        with self._lock:
            return self._entries[first:]

    def job_ids(self) -> list[str]:
        """Return all job ids so far, in the order of their first acknowledgement."""
        with self._lock:
            return list(self._jobs)

    def judge(
        self, ends: Mapping[str, End | None], letters: Iterable[Letter], *, with_letters: bool
    ) -> Verdict:
        """Compare the expected with the actual outcomes, after the storm has settled."""
        verdict = Verdict(records=len(self._spots), jobs=len(self._jobs))
        by_spot: dict[Spot, list[Letter]] = defaultdict(list)
        for letter in letters:
            by_spot[letter.spot].append(letter)
            verdict.letters += 1
        verdict.duplicate_letters = verdict.letters - len(by_spot)
        expected: set[Spot] = set()
        for job_id, records in self._jobs.items():
            self._judge_job(verdict, job_id, records, ends.get(job_id), by_spot, expected)
        for spot, sent in self._spots.items():
            if sent.job_id is None:
                expected.add(spot)
                if spot not in by_spot:
                    verdict.note("lost", f"unreadable record {spot} has no dead letter")
        if with_letters:
            self._judge_strangers(verdict, ends, by_spot, expected)
        return verdict

    def _judge_job(
        self,
        verdict: Verdict,
        job_id: str,
        records: Mapping[Spot, Sent],
        end: End | None,
        by_spot: Mapping[Spot, list[Letter]],
        expected: set[Spot],
    ) -> None:
        if end is None:
            kinds = sorted({sent.kind.value for sent in records.values()})
            verdict.note("lost", f"{job_id} ({', '.join(kinds)}; {sorted(records)}) has no end")
            return
        verdict.ends[end.status] += 1
        verdict.duplicate_computations += max(0, end.deliveries - 1)
        won = {spot: sent for spot, sent in records.items() if _is_of(sent, end)}
        if not won:
            verdict.note("wrong", f"{job_id} ended as none of its records: {end}")
            return
        _judge_end(verdict, job_id, next(iter(won.values())), end)
        if end.status in _WITH_LETTER:
            expected.update(won)  # at one of them: the others share its outcome
            if not any(spot in by_spot for spot in won):
                verdict.note("lost", f"failed job {job_id} has no dead letter")
        for spot in records.keys() - won.keys():
            expected.add(spot)
            if not any(letter.code == "conflict" for letter in by_spot.get(spot, ())):
                verdict.note("lost", f"conflict {job_id} at {spot} has no dead letter")

    def _judge_strangers(
        self,
        verdict: Verdict,
        ends: Mapping[str, End | None],
        by_spot: Mapping[Spot, list[Letter]],
        expected: set[Spot],
    ) -> None:
        for spot in by_spot.keys() - expected:
            sent = self._spots.get(spot)
            if sent is None and self.refused:
                continue  # possibly a record that the producer gave up
            code = by_spot[spot][0].code
            end = ends.get(sent.job_id) if sent is not None and sent.job_id is not None else None
            if sent is not None and end is not None and _was_condemned(code, end):
                verdict.condemn(sent, end)
                continue
            what = "a record nobody sent" if sent is None else f"{sent.job_id} ({sent.kind})"
            verdict.note("wrong", f"dead letter {code} for {what} at {spot}")


def _judge_end(verdict: Verdict, job_id: str, sent: Sent, end: End) -> None:
    if sent.code != "poisoned" and _was_condemned(end.code, end):
        verdict.condemn(sent, end)
    elif end.status not in sent.ends:
        verdict.note("wrong", f"{job_id} ({sent.kind}) is {end.status} {end.code}")
    elif sent.code is not None and end.code != sent.code:
        verdict.note("wrong", f"{job_id} ({sent.kind}) failed as {end.code}, not as {sent.code}")
    elif end.status == "completed" and sent.text is not None and end.text != sent.text:
        verdict.note("wrong", f"{job_id} ({sent.kind}) has the text {end.text!r}")


def _was_condemned(code: str | None, end: End) -> bool:
    return code == "poisoned" and end.deliveries >= POISON_AFTER


def _is_of(sent: Sent, end: End) -> bool:
    # A cancellation before the job writes a result without a fingerprint, which matches all.
    return not end.fingerprint or sent.fingerprint == end.fingerprint
