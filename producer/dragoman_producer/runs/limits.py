"""Limits of memory and time of the process that reads and writes documents."""

from __future__ import annotations

import resource
import signal
from contextlib import suppress
from typing import Final

from dragoman_producer.runs.refusals import MEMORY_BYTES

PATIENCE: Final = 10
"""How many times the CPU time a document may take on the clock."""


def limit_memory() -> None:
    """Have allocations beyond MEMORY_BYTES fail, where the system can."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MEMORY_BYTES)
    with suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def limit_time(seconds: int) -> None:
    """Terminate this process after that CPU time, or PATIENCE times as long on the clock; 0: never.

    A parser in C is not interrupted otherwise. On a busy machine the clock alone would refuse
    documents that are merely large.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(seconds * PATIENCE)
