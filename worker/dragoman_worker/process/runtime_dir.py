"""Runtime directory of one `run`: sockets and journals of its replicas.

Standard library only, like everything that is imported before the first replica starts.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "dragoman-run-"
_LONGEST: Final = 76
"""Most characters of its parent: a socket's path has up to 107 on Linux, 103 on macOS."""
_YOUNG_S: Final = 60.0
"""Minimum age in seconds of a stale directory: a younger one may not be locked yet."""


class NoRuntimeDirectory(Exception):
    """No temporary directory is writable; the message says what to do."""


@contextmanager
def runtime_directory() -> Iterator[Path]:
    """Create a directory for this run alone, and remove those of runs that were killed.

    A lock marks directories in use: the kernel releases it with the process, however that exits.
    Raises NoRuntimeDirectory.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_created())
        except OSError as error:
            why = error.strerror or str(error)
            raise NoRuntimeDirectory(
                f"no directory for the replicas' sockets can be created in the temporary directory "
                f"({why}): free some space there, or set another one in TMPDIR"
            ) from None
        yield folder


@contextmanager
def _created() -> Iterator[Path]:
    default = tempfile.gettempdir()
    parent = Path(default if len(default) <= _LONGEST else "/tmp")  # noqa: S108  the name is random
    for each in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # of another user, in use, or just removed
            _remove_if_stale(each)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent) as name, _open(Path(name)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


def _remove_if_stale(folder: Path) -> None:
    with _open(folder) as lock:
        if time.time() - os.fstat(lock).st_mtime > _YOUNG_S:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


@contextmanager
def _open(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
