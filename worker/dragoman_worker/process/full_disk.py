"""Names a full disk as one: which place has no room, what it is for, and what to do."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

NO_SPACE: Final = "No space left on device"
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_LEAST_FREE: Final = 1024 * 1024


def full_disk(error: BaseException) -> str | None:
    """What to say if `error` or a cause of it is a disk without room; None if it is none."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
            return told(cause.filename if isinstance(cause.filename, str) else None)
    return None


def told(file: str | None = None) -> str:
    """One sentence about the disk that is full: that of `file`, or what looks full here."""
    if file is not None:
        return f"the disk is full at {file} ({_role(Path(file))}): {_ADVICE}"
    full = [f"{place} ({role})" for place, role in _places() if _free(place) < _LEAST_FREE]
    return f"the disk is full at {' and '.join(full) or 'a place that is not named'}: {_ADVICE}"


_ADVICE: Final = "free some space there or give another place, then start again"


def _places() -> Iterator[tuple[Path, str]]:
    """Where a start writes, and the variable that moves it elsewhere."""
    named = os.environ.get
    cache = Path(named("XDG_CACHE_HOME") or _home() / ".cache")
    yield Path(named("TMPDIR") or _temporary()), "temporary files, TMPDIR"
    yield Path(named("HF_HOME") or cache / "huggingface"), "the model hub's cache, HF_HOME"
    yield Path(named("VLLM_CACHE_ROOT") or cache / "vllm"), "vLLM's cache, VLLM_CACHE_ROOT"
    yield Path("/dev/shm"), "shared memory of vLLM's processes"  # noqa: S108  only looked at


def _home() -> Path:
    """The home directory; a user that no one has listed has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def _temporary() -> str:
    """The temporary directory; where no candidate can be written to, Python names none."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return "/tmp"  # noqa: S108  only looked at


def _role(file: Path) -> str:
    roles = (role for place, role in _places() if file.is_relative_to(place))
    return next(roles, "no place of ours")


def _free(place: Path) -> float:
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        found = os.statvfs(place)
    except OSError:
        return float("inf")
    return float(found.f_bavail * found.f_frsize)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
