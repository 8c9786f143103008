"""Whose turn is it among topics of unlike weight, and how much of the hand may each fill?

Both are pure. Turns are start-time fair queueing (Goyal, Vin and Cheng, 1996): while two lanes
wait, what each is served, divided by its weight, differs by no more than one entry of each. A lane
that slept begins where the others are now: it has saved up no credit, and it owes nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from dragoman_worker.ports import Capacity

Entry = TypeVar("Entry")

_WORTH_A_POLL: Final = 8
"""Room below an eighth of what a lane has reserved waits for more: small polls cost as much."""


@dataclass(slots=True, eq=False)
class _PriorityClass(Generic[Entry]):
    weight: int
    begins: float = 0.0
    """The virtual time at which its next entry is served: cost so far, by weight."""
    lines: OrderedDict[str, deque[Entry]] = field(default_factory=OrderedDict)


class Turn(NamedTuple, Generic[Entry]):
    """Who is next: the first entry of a line of a lane."""

    priority: str
    line: str
    entry: Entry


class FairQueue(Generic[Entry]):
    """Entries wait in lines, lines in lanes. Lanes by weight, the lines of a lane in rotation.

    What an entry costs is up to the caller, and so is whether the first one may be served now.
    """

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        """`weights` of the lanes, 1 and more; a lane that is not named weighs 1."""
        heaviest_first = sorted((weights or {}).items(), key=lambda priority: -priority[1])
        self._priorities: dict[str, _PriorityClass[Entry]] = {
            name: _PriorityClass(each) for name, each in heaviest_first
        }
        self._waiting = 0
        self._now = 0.0

    def join(self, priority: str, line: str, entry: Entry) -> None:
        """Stand at the end of a line."""
        there = self._priorities.get(priority)
        if there is None:
            there = self._priorities[priority] = _PriorityClass(1)
        if not there.lines:
            there.begins = max(there.begins, self._now)
        there.lines.setdefault(line, deque()).append(entry)
        self._waiting += 1

    def first(self, among: Container[str] | None = None) -> Turn[Entry] | None:
        """Who is next, if anybody waits: of all lines, or of those `among` them."""
        best: Turn[Entry] | None = None
        begins = 0.0
        for name, there in self._priorities.items():
            if not there.lines or (best is not None and there.begins >= begins):
                continue
            line = _first_line(there.lines, among)
            if line is not None:
                best, begins = Turn(name, line, there.lines[line][0]), there.begins
        return best

    def serve(self, turn: Turn[Entry], cost: float) -> None:
        """Let who is next go on: its lane is charged, and its line goes to the lane's end."""
        there = self._priorities[turn.priority]
        self._now = there.begins
        there.begins += cost / there.weight
        entries = there.lines[turn.line]
        entries.popleft()
        self._waiting -= 1
        if entries:
            there.lines.move_to_end(turn.line)
        else:
            del there.lines[turn.line]

    def leave(self, priority: str, line: str, entry: Entry) -> bool:
        """Wait no longer, wherever one stands. False if one does not stand there."""
        there = self._priorities.get(priority)
        entries = there.lines.get(line) if there is not None else None
        if there is None or entries is None or entry not in entries:
            return False
        entries.remove(entry)
        self._waiting -= 1
        if not entries:
            del there.lines[line]
        return True

    def all(self) -> Iterator[Turn[Entry]]:
        """Everybody who waits, in no order; as it was when asked."""
        return iter(
            [
                Turn(priority, line, entry)
                for priority, there in self._priorities.items()
                for line, entries in there.lines.items()
                for entry in entries
            ]
        )

    def waiting(self, priority: str) -> int:
        """How many wait in a lane."""
        there = self._priorities.get(priority)
        return sum(map(len, there.lines.values())) if there is not None else 0

    def __len__(self) -> int:
        return self._waiting


def _first_line(lines: Iterable[str], among: Container[str] | None) -> str | None:
    if among is None:
        return next(iter(lines), None)
    return next((line for line in lines if line in among), None)


class _Bound:
    """A quantity of which half is reserved for the lanes, by weight, and the rest is anybody's."""

    def __init__(self, most: int, weights: Mapping[str, int]) -> None:
        total = sum(weights.values())
        alone = len(weights) == 1
        self.reserved = {
            priority: most if alone else max(1, most * weight // (2 * total))
            for priority, weight in weights.items()
        }
        self._shared = most - sum(self.reserved.values())
        self.held = dict.fromkeys(weights, 0)

    def capacity(self) -> dict[str, int]:
        """How much more each lane may hold, if no other takes more meanwhile."""
        own = {priority: self.reserved[priority] - held for priority, held in self.held.items()}
        shared = max(0, self._shared + sum(min(0, left) for left in own.values()))
        return {priority: max(0, left) + shared for priority, left in own.items()}


class Intake:
    """The jobs in hand and their bytes, by lane.

    Half of the hand is reserved, so that a lane which wakes up finds room however much of another
    lies there, and enough of it to fill its share of the engine.
    """

    def __init__(self, weights: Mapping[str, int] | None = None, *, jobs: int, size: int) -> None:
        """At most `jobs`, and no more once they are of `size` bytes; one lane has it all."""
        self._weights = dict(weights) if weights and len(weights) > 1 else {"": 1}
        self._alone = len(self._weights) == 1
        self._jobs = _Bound(jobs, self._weights)
        self._bytes = _Bound(size, self._weights)

    def enter(self, priority: str, size: int) -> None:
        """A job of `size` bytes was taken in hand."""
        priority = "" if self._alone else priority
        self._jobs.held[priority] += 1
        self._bytes.held[priority] += size

    def leave(self, priority: str, size: int) -> None:
        """It was let go."""
        priority = "" if self._alone else priority
        self._jobs.held[priority] -= 1
        self._bytes.held[priority] -= size

    def held(self) -> Mapping[str, int]:
        """Jobs in hand by lane; the one lane of a worker without lanes has no name."""
        return self._jobs.held

    def capacity(self) -> Capacity:
        """What may be taken in hand now."""
        bytes_left, reserved = self._bytes.capacity(), self._jobs.reserved
        priorities = {
            priority: left
            if bytes_left[priority] > 0 and self._worth(left, reserved[priority])
            else 0
            for priority, left in self._jobs.capacity().items()
        }
        if self._alone:
            return Capacity(priorities[""])
        return Capacity(self._in_all(priorities), priorities)

    def _worth(self, left: int, reserved: int) -> bool:
        return left > reserved // (_WORTH_A_POLL * (2 if self._alone else 1))

    def _in_all(self, priorities: Mapping[str, int]) -> int:
        """The room that lanes share is counted once."""
        held, reserved = self._jobs.held, self._jobs.reserved
        own = {
            priority: max(0, reserved[priority] - held[priority])
            for priority, left in priorities.items()
            if left
        }
        shared = max((priorities[priority] - left for priority, left in own.items()), default=0)
        return shared + sum(own.values())
