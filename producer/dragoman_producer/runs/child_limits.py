"""What a child process may use: memory and time, and a new file for an output."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from dragoman_producer.runs.refusals import MEMORY_BYTES

_PATIENCE: Final = 10
"""How many times the CPU time a document may take on the clock."""


def limit_memory() -> None:
    """Have allocations beyond MEMORY_BYTES fail, where the system can."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MEMORY_BYTES)
    with suppress(ValueError, OSError):  # macOS does not limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def limit_time(seconds: int) -> None:
    """Terminate this process after that CPU time, or _PATIENCE times as long on the clock.

    0 is no limit. A parser in C is not interrupted otherwise. On a busy machine the clock alone
    would refuse documents that are merely large.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(seconds * _PATIENCE)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Give a new file. Nothing is left of one that is not written whole."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
