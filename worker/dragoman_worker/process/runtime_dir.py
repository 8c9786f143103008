"""Where do replicas serve their pages? In a folder of this run, which goes even if it was killed.

Standard library only, as all that comes before the first replica.
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
"""Characters of its parent: a socket's path may have 107 in all on Linux, 103 on macOS."""
_YOUNG_S: Final = 60.0
"""A folder that is not locked may be one that is about to be."""


class NoFolder(Exception):
    """No temporary directory can be written; the message says what to do."""


@contextmanager
def runtime_directory() -> Iterator[Path]:
    """A folder that is ours alone; a run that was killed leaves its own to the next one to start.

    A lock tells the two apart: the kernel lets go of it with the process, however that ends.
    Raises NoFolder.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_made())
        except OSError as error:
            why = error.strerror or str(error)
            raise NoFolder(
                f"no folder for the replicas' sockets can be made in the temporary directory "
                f"({why}): free some space there, or give another in TMPDIR"
            ) from None
        yield folder


@contextmanager
def _made() -> Iterator[Path]:
    usual = tempfile.gettempdir()
    place = Path(usual if len(usual) <= _LONGEST else "/tmp")  # noqa: S108  the name is random
    for left in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, in use, or just removed
            _remove_if_left(left)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place) as name, _open(Path(name)) as ours:
        fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


def _remove_if_left(folder: Path) -> None:
    with _open(folder) as theirs:
        if time.time() - os.fstat(theirs).st_mtime > _YOUNG_S:
            fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)


@contextmanager
def _open(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
