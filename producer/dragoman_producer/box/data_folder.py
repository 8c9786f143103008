"""The data folder of a box: its lock, which names the live box, and where its socket lies."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from dragoman_producer.box.failures import BoxUnusable, writing
from dragoman_producer.box.machine import runtime_parent, socket_fits

_PREFIX: Final = "dragoman-"


class DataFolder:
    """A folder that one live box holds; its file `box.json` says how to reach that box."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock
        self._state = path / "box.json"

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make the folder, readable by this user only. Raises BoxUnusable."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = path.resolve()
            lock = os.open(path / "box.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (OSError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or error
            raise BoxUnusable(
                f"--data {path}: {why}; give a folder that this user can make and write"
            ) from None
        return cls(path, lock)

    def take(self) -> bool:
        """Lock the folder; return False if another process holds it. Raises BoxUnusable."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise BoxUnusable(
                f"--data {self.path}: this file system has no locks ({error.strerror}); give a "
                "folder on a local disk"
            ) from None
        return True

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    # --- the live box ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what the box that holds the lock has written; empty if it has not yet."""
        with suppress(OSError, ValueError):
            read = json.loads(self._state.read_text(encoding="utf-8"))
            if isinstance(read, dict):
                return read
        return {}

    def write_state(self, members: Mapping[str, Any]) -> None:
        """Write the state of the box. Raises BoxFailed."""
        temporary = self._state.with_suffix(".new")
        with writing(self._state):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
                json.dump(members, file)
            temporary.replace(self._state)

    def remove_state(self) -> None:
        """Remove the state: no box is reached by it any more."""
        with suppress(OSError):
            self._state.unlink(missing_ok=True)

    # --- the runtime folder ---------------------------------------------------------------------

    def make_runtime(self) -> Path:
        """Return a new folder of mode 0700 for sockets; remove that of a box that was killed.

        Raises BoxUnusable.
        """
        self._remove_old()
        for parent in (runtime_parent(), Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108
            if parent is not None and socket_fits(parent):
                with suppress(OSError):
                    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        raise BoxUnusable(
            "no folder for the socket of Redis can be made in XDG_RUNTIME_DIR, TMPDIR or /tmp; set "
            "TMPDIR to a writable folder with a short path"
        )

    def _remove_old(self) -> None:
        old = Path(str(self.state().get("runtime", "")))
        with suppress(OSError):
            if old.name.startswith(_PREFIX) and old.stat().st_uid == os.getuid():
                shutil.rmtree(old, ignore_errors=True)
