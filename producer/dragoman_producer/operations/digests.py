"""Set of millions of ids in some 26 to 51 bytes each: digests in one flat table."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
_FIRST_SLOTS: Final = 1 << 12


def digest_of(*parts: str) -> bytes:
    """Return 16 bytes for a tuple of strings without NUL; different tuples differ in practice."""
    return blake2b("\0".join(parts).encode(), digest_size=DIGEST_BYTES).digest()


class DigestTable:
    """Flags (1 to 255) by digest: open addressing over one bytearray, at most two thirds full.

    17 bytes per slot, so 26 to 51 bytes per entry; a dict of bytes takes about 170.
    """

    def __init__(self) -> None:
        self._mask = _FIRST_SLOTS - 1
        self._digests = bytearray(DIGEST_BYTES * _FIRST_SLOTS)
        self._flags = bytearray(_FIRST_SLOTS)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def flags(self, digest: bytes) -> int:
        """Return all flags set for the digest; 0 if it was never added."""
        return self._flags[self._slot(digest)]

    def add(self, digest: bytes, flags: int) -> int:
        """Set flags in addition to those already set; return the flags that were set before."""
        slot = self._slot(digest)
        before = self._flags[slot]
        self._flags[slot] = before | flags
        if not before:
            start = slot * DIGEST_BYTES
            self._digests[start : start + DIGEST_BYTES] = digest
            self._used += 1
            if self._used * 3 > len(self._flags) * 2:
                self._grow()
        return before

    def _slot(self, digest: bytes) -> int:
        """Return the slot of the digest, or the free slot where it would be stored."""
        slot = int.from_bytes(digest[:8]) & self._mask
        while self._flags[slot]:
            start = slot * DIGEST_BYTES
            if self._digests[start : start + DIGEST_BYTES] == digest:
                break
            slot = (slot + 1) & self._mask
        return slot

    def _grow(self) -> None:
        digests, flags = self._digests, self._flags
        slots = 2 * len(flags)
        self._mask = slots - 1
        self._digests, self._flags = bytearray(DIGEST_BYTES * slots), bytearray(slots)
        for old, flag in enumerate(flags):
            if flag:
                digest = bytes(digests[old * DIGEST_BYTES : (old + 1) * DIGEST_BYTES])
                slot = self._slot(digest)
                self._digests[slot * DIGEST_BYTES : (slot + 1) * DIGEST_BYTES] = digest
                self._flags[slot] = flag
