"""Names of requests, by which an answer to another request is recognized.

vLLM and others repeat the header X-Request-Id in their answer. A proxy that mixes up its answers
would otherwise give one job the translation of another.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from itertools import count


class RequestIds:
    """Makes ids that hold a keyed digest of the body, which only this process can compute.

    An answer from a cache may name an earlier request with the same body, and is right.
    """

    def __init__(self) -> None:
        self._mark = f"dragoman-{secrets.token_hex(4)}-"
        self._key = secrets.token_bytes(16)
        self._numbers = count()

    def of(self, body: bytes) -> str:
        """Return a new id for a request with this body."""
        digest = blake2b(body, digest_size=8, key=self._key).hexdigest()
        return f"{self._mark}{digest}-{next(self._numbers)}"

    def is_of_another(self, answered: object, asked: str) -> bool:
        """Return whether an answer's id names a request of ours with another body."""
        if not isinstance(answered, str) or (at := answered.find(self._mark)) < 0:
            return False
        return not answered.startswith(asked.rpartition("-")[0], at)
