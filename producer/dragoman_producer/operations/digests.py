"""How are millions of ids remembered in a few tens of bytes each? By digests in one flat table."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
_FIRST_SLOTS: Final = 1 << 12


def digest_of(*parts: str) -> bytes:
    """16 bytes for a tuple of strings without NUL; two different tuples never meet in practice."""
    return blake2b("\0".join(parts).encode(), digest_size=DIGEST_BYTES).digest()


class DigestTable:
    """Flags (1 to 255) by digest: open addressing over one bytearray, at most two thirds full.

    17 bytes a slot, so 26 to 51 bytes an entry, where a dict of bytes takes about 170.
    """

    def __init__(self) -> None:
        self._mask = _FIRST_SLOTS - 1
        self._digests = bytearray(DIGEST_BYTES * _FIRST_SLOTS)
        self._flags = bytearray(_FIRST_SLOTS)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def flags(self, digest: bytes) -> int:
        """All flags set for the digest; 0 if it was never added."""
        return self._flags[self._slot(digest)]

    def add(self, digest: bytes, flags: int) -> int:
        """Set flags besides those already set; answers those that were set before."""
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
        """Where the digest is, or where it would go."""
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
