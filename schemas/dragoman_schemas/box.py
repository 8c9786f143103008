"""The hash of a box: it tells publishers and workers that the queue is in a broker's memory."""

from __future__ import annotations

from typing import Any, Final

from dragoman_schemas.names import Keys

BOUND: Final = 512 * 1024
"""Bytes that each publisher may have beyond the committed offset of a partition.

The embedded broker keeps 5 MiB of a partition and drops the oldest records beyond them: about four
publishers fit, whose records may be stored larger than they are.
"""
EXPIRE_S: Final = 60
"""A box renews its hash well within this; afterwards it counts as gone."""

Command = tuple[Any, ...]


def announce(keys: Keys, pid: int) -> list[Command]:
    """Return the commands by which a box tells that it lives, for one transaction."""
    return [
        ("HSET", keys.box, "pid", pid, "bound", BOUND),
        ("EXPIRE", keys.box, EXPIRE_S),
    ]


def ask(keys: Keys) -> Command:
    """Return the command whose reply `bound_in` reads."""
    return ("HMGET", keys.box, "bound")


def bound_in(reply: Any) -> int | None:
    """Return the bound in a reply; None where there is no box, or Redis refused to tell."""
    value = reply[0] if isinstance(reply, list | tuple) and reply else None
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    if value is None:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else BOUND
