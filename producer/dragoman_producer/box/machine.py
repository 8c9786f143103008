"""What the machine has: memory that this process may use, folders of this user."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from dragoman_producer.box.failures import BoxUnusable

_LONGEST_SOCKET: Final = 107 if sys.platform == "linux" else 103
"""Bytes that the path of a Unix socket may have."""
_SOCKET_ROOM: Final = len("/dragoman-12345678/redis.sock")
_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def usable_memory() -> int:
    """Return the bytes of memory of this machine, or of this process' control group if less."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it is "max"
            memory = min(memory, int(path.read_text()))
    return memory


def default_data_folder() -> Path:
    """Return `dragoman/box` in the user's data folder. Raises BoxUnusable without a home."""
    if given := os.environ.get("XDG_DATA_HOME"):
        return Path(given) / "dragoman" / "box"
    try:
        home = Path.home()
    except RuntimeError:
        raise BoxUnusable("this user has no home folder; give --data DIR") from None
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "dragoman" / "box"
    return home / ".local" / "share" / "dragoman" / "box"


def runtime_parent() -> Path | None:
    """Return the user's runtime folder; None where there is none that others cannot enter."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if not given.startswith("/"):
        return None
    with suppress(OSError):
        found = os.stat(given)  # noqa: PTH116 - one call
        usable = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if usable and not found.st_mode & 0o077 and os.access(given, os.W_OK | os.X_OK):
            return Path(given)
    return None


def socket_fits(parent: Path) -> bool:
    """Whether the path of a socket, in a new folder in `parent`, is short enough."""
    return len(os.fsencode(parent)) + _SOCKET_ROOM <= _LONGEST_SOCKET
