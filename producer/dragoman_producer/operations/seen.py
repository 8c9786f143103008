"""Which of millions of lines were there before: 8-byte digests in an array.

`digests.DigestTable` needs no memory for as many, and ten times the CPU; the audit keeps flags of
each. Here 2,000,000 lines take 32 MiB. Two different lines have the same digest in one of five
million such files, so that whoever asks must not lose a line by it.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import Final

_FIRST_SLOTS: Final = 1024


class SeenLines:
    """A set of digests, open-addressed; 0 is an empty slot."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FIRST_SLOTS))
        self._count = 0

    def add(self, line: bytes) -> bool:
        """Add a line; return whether it was new."""
        if 3 * self._count >= 2 * len(self._slots):
            self._grow()
        digest = int.from_bytes(blake2b(line, digest_size=8).digest()) or 1
        slot = _slot(self._slots, digest)
        if self._slots[slot]:
            return False
        self._slots[slot] = digest
        self._count += 1
        return True

    def _grow(self) -> None:
        larger = array("Q", bytes(16 * len(self._slots)))
        for digest in self._slots:
            if digest:
                larger[_slot(larger, digest)] = digest
        self._slots = larger


def _slot(slots: array[int], digest: int) -> int:
    """Return the slot of a digest, or the empty one where it belongs."""
    mask = len(slots) - 1
    slot = digest & mask
    while slots[slot] not in {0, digest}:
        slot = (slot + 1) & mask
    return slot
