"""Mark of a record that could not be read completely.

The mark is a last header with a name that no producer can know. So it stays with the record in
aiokafka's parser and buffers.
"""

from __future__ import annotations

import secrets
from typing import Final

MARK: Final = f"unreadable-{secrets.token_hex(8)}"
_Headers = tuple[tuple[str, bytes | None], ...]


def unmarked(headers: _Headers) -> tuple[_Headers, str | None]:
    """Return the producer's headers, and why the record is unreadable; None if it is readable."""
    if not headers or headers[-1][0] != MARK:
        return headers, None
    return headers[:-1], (headers[-1][1] or b"").decode()
