"""The commit offset against a simple oracle, and across gaps of offsets."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dragoman_worker.kafka.offsets import PartitionOffsets

BASE = 100


class OffsetsAgainstAnOracle(RuleBasedStateMachine):
    """The oracle remembers every delivered offset and whether it is finished."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = PartitionOffsets(generation=1, base=BASE)
        self.delivered: dict[int, bool] = {}
        self.passed = BASE
        self.last_commit_offset = BASE

    @property
    def next_offset(self) -> int:
        return max(self.passed, max(self.delivered, default=BASE - 1) + 1)

    @rule(gap=st.integers(0, 3))
    def deliver_the_next(self, gap: int) -> None:
        offset = self.next_offset + gap
        assert self.offsets.begin(offset)
        self.delivered[offset] = False

    @rule(ahead=st.integers(-3, 3))
    def pass_a_gap(self, ahead: int) -> None:
        self.offsets.pass_gap(self.next_offset + ahead)
        self.passed = self.next_offset + max(0, ahead)

    @rule(back=st.integers(1, 50))
    def deliver_an_old_one_again(self, back: int) -> None:
        assert not self.offsets.begin(self.next_offset - back)

    @precondition(lambda self: not all(self.delivered.values()))
    @rule(pick=st.randoms(use_true_random=False))
    def complete_any_unfinished(self, pick: Random) -> None:
        unfinished = [offset for offset, finished in self.delivered.items() if not finished]
        offset = pick.choice(unfinished)
        self.offsets.complete(offset)
        self.delivered[offset] = True

    @precondition(lambda self: any(self.delivered.values()))
    @rule(pick=st.randoms(use_true_random=False))
    def complete_a_finished_one_again(self, pick: Random) -> None:
        finished = [offset for offset, finished in self.delivered.items() if finished]
        self.offsets.complete(pick.choice(finished))

    @rule(ahead=st.integers(0, 5))
    def complete_an_offset_never_delivered(self, ahead: int) -> None:
        self.offsets.complete(self.next_offset + ahead)
        self.offsets.complete(BASE - 1 - ahead)

    @invariant()
    def agrees(self) -> None:
        unfinished = [offset for offset, finished in self.delivered.items() if not finished]
        assert self.offsets.next_offset == self.next_offset
        assert self.offsets.commit_offset == min(unfinished, default=self.next_offset)
        assert self.offsets.unfinished == len(unfinished)
        assert self.offsets.span == self.next_offset - self.offsets.commit_offset

    @invariant()
    def never_decreases(self) -> None:
        assert self.offsets.commit_offset >= self.last_commit_offset
        self.last_commit_offset = self.offsets.commit_offset


OffsetsAgainstAnOracle.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None
)
TestOffsets = OffsetsAgainstAnOracle.TestCase


def test_completing_an_offset_inside_a_gap_has_no_effect() -> None:
    offsets = PartitionOffsets(generation=1, base=0)
    for offset in (0, 5):
        offsets.begin(offset)
    offsets.complete(3)
    assert offsets.commit_offset == 0
    offsets.complete(0)
    assert offsets.commit_offset == 5


def test_the_commit_offset_passes_the_gaps_of_compaction() -> None:
    offsets = PartitionOffsets(generation=1, base=0)
    for offset in (2, 7, 40):
        offsets.begin(offset)
    offsets.complete(2)
    assert offsets.commit_offset == 7
    offsets.complete(40)
    offsets.complete(7)
    assert offsets.commit_offset == 41
