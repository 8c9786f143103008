"""How `run` and its replicas exit: the result of a run, time limits, and the last call.

Standard library only, like everything that is imported before the first replica starts.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from dragoman_worker.process import stderr_relay

EXITS_AFTER_S: Final = 300.0
"""Seconds without a sign of life after which the watchdog halts its own replica."""
HALT_WITHIN_S: Final = 60.0
"""Longest duration of a halt: releasing the claims and leaving the group are bounded below it."""


@dataclass(frozen=True, slots=True)
class Exit:
    """Exit status of `run`, and the reason in one line unless the status is 0."""

    status: Literal[0, 1, 2]
    message: str = ""


def exit_now(status: int) -> NoReturn:
    """Write the last lines and exit this process without tearing the interpreter down.

    The teardown took 1.4 to 2.1 s on a busy machine (load 25 on 2 cores), of the 2 s that a second
    signal may take in all. Nothing waits for it: the replicas and the runtime directory are gone.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # no reader, closed, or None
            stream.flush()
    stderr_relay.flush()
    os._exit(status)
