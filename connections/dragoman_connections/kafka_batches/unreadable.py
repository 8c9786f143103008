"""The mark of a record that reached the worker without everything its producer wrote.

The mark is a last header with a name that no producer can know, so it travels with the record
through aiokafka's own parser and its buffers, and is gone with them.
"""

from __future__ import annotations

import secrets
from typing import Final

MARK: Final = f"unreadable-{secrets.token_hex(8)}"
_Headers = tuple[tuple[str, bytes | None], ...]


def unmarked(headers: _Headers) -> tuple[_Headers, str | None]:
    """The headers of the producer, and why the record cannot be read; None if it can."""
    if not headers or headers[-1][0] != MARK:
        return headers, None
    return headers[:-1], (headers[-1][1] or b"").decode()
