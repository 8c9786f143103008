"""A control group that limits the memory of a process and of all that it starts.

Needs Linux, root, and a memory controller that may be written to: version 1 or 2.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from support.processes.waiting import wait_until

_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True)
class _Version:
    """Where the controller of one version is, and the names of its files."""

    root: Path
    limit: str
    peak: str
    kills: str


_VERSIONS: Final = (
    _Version(
        Path("/sys/fs/cgroup/memory"),
        "memory.limit_in_bytes",
        "memory.max_usage_in_bytes",
        "memory.oom_control",
    ),
    _Version(Path("/sys/fs/cgroup"), "memory.max", "memory.peak", "memory.events"),
)


def bytes_of(quantity: str) -> int:
    """Return the bytes of a quantity of Kubernetes, such as `1Gi`."""
    number, unit = quantity[:-2], quantity[-2:]
    return int(number) * _UNITS[unit]


class MemoryLimit:
    """A group of at most `quantity` of memory; `join` is the shell command that enters it.

    Raises RuntimeError on a machine that allows none.
    """

    def __init__(self, quantity: str) -> None:
        self.limit_bytes = bytes_of(quantity)
        self._name = f"dragoman-{uuid.uuid4().hex[:8]}"
        self._folder: Path | None = None
        self._version = _VERSIONS[0]

    def __enter__(self) -> Self:
        reasons = []
        for version in _VERSIONS:
            folder = version.root / self._name
            try:
                self._make(version, folder)
            except OSError as error:
                reasons.append(f"{version.root}: {error.strerror}")
                with suppress(OSError):
                    folder.rmdir()
            else:
                self._folder, self._version = folder, version
                return self
        raise RuntimeError(f"this machine allows no limit of memory ({'; '.join(reasons)})")

    def _make(self, version: _Version, folder: Path) -> None:
        if version.limit == "memory.max":
            with suppress(OSError):  # a controller that is absent fails below, by its file
                (version.root / "cgroup.subtree_control").write_text("+memory")
        folder.mkdir()
        limit = folder / version.limit
        if not limit.exists():  # a folder of another file system
            raise FileNotFoundError(2, f"there is no {version.limit}")
        limit.write_text(str(self.limit_bytes))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        wait_until(self._removed, timeout_s=30, what="the end of all processes of the group")

    def _removed(self) -> bool:
        try:
            self._group.rmdir()
        except OSError:  # a process that was killed is still there
            return False
        return True

    @property
    def _group(self) -> Path:
        assert self._folder is not None
        return self._folder

    @property
    def join(self) -> str:
        """The shell command by which a shell, and what it starts, is in the group."""
        return f"echo $$ > {self._group}/cgroup.procs"

    @property
    def pids(self) -> set[int]:
        """The processes in the group."""
        return {int(line) for line in (self._group / "cgroup.procs").read_text().split()}

    @property
    def peak_bytes(self) -> int:
        """The most memory that the group has used."""
        return int((self._group / self._version.peak).read_text())

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed at the limit."""
        lines = (self._group / self._version.kills).read_text().splitlines()
        counts = {name: int(count) for name, count in map(str.split, lines)}
        return counts["oom_kill"]


if __name__ == "__main__":  # exit status 1 where this machine allows none
    with MemoryLimit("64Mi"):
        pass
