"""Error message for a full disk: which directory is full, its purpose, and what to do."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

NO_SPACE: Final = "No space left on device"
_FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_LEAST_FREE: Final = 1024 * 1024
"""Bytes of free space below which a directory counts as full."""


def full_disk(error: BaseException) -> str | None:
    """Return the message if `error` or one of its causes is a full disk, else None."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.errno in _FULL_ERRNOS:
            return full_disk_message(cause.filename if isinstance(cause.filename, str) else None)
    return None


def full_disk_message(file: str | None = None) -> str:
    """Return one sentence that names `file`, or without it the directories that look full."""
    if file is not None:
        return f"the disk is full at {file} ({_role(Path(file))}): {_ADVICE}"
    full = [
        f"{directory} ({role})"
        for directory, role in _directories()
        if _free(directory) < _LEAST_FREE
    ]
    return f"the disk is full at {' and '.join(full) or 'an unknown directory'}: {_ADVICE}"


_ADVICE: Final = "free some space there or use another directory, then start again"


def _directories() -> Iterator[tuple[Path, str]]:
    """Yield the directories that a start writes to, with the variable that moves each."""
    named = os.environ.get
    cache = Path(named("XDG_CACHE_HOME") or _home() / ".cache")
    yield Path(named("TMPDIR") or _temporary()), "temporary files, TMPDIR"
    yield Path(named("HF_HOME") or cache / "huggingface"), "the model hub's cache, HF_HOME"
    yield Path(named("VLLM_CACHE_ROOT") or cache / "vllm"), "vLLM's cache, VLLM_CACHE_ROOT"
    yield Path("/dev/shm"), "shared memory of vLLM's processes"  # noqa: S108  only looked at


def _home() -> Path:
    """Return the home directory, or `/` for a user without an entry in the user database."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def _temporary() -> str:
    """Return the temporary directory; Python raises OSError if no candidate is writable."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return "/tmp"  # noqa: S108  only looked at


def _role(file: Path) -> str:
    roles = (role for directory, role in _directories() if file.is_relative_to(directory))
    return next(roles, "not a directory of the worker's")


def _free(directory: Path) -> float:
    while not directory.exists() and directory != directory.parent:
        directory = directory.parent
    try:
        found = os.statvfs(directory)
    except OSError:
        return float("inf")
    return float(found.f_bavail * found.f_frsize)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
