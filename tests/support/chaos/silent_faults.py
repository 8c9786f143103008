"""Faults that no health check announces by itself: of the log, of job tasks and of the engine."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from support.chaos.system import Dragoman, DragomanWorker, Place

_STRAY: Final = Path(__file__).parents[1] / "stray_cancels"
_DISK_SIZE: Final = "16m"


class LogPipe:
    """A named pipe that a process writes its log to, and the reader that keeps what arrives.

    Without a reader a write raises BrokenPipeError. While the reader rests, the pipe fills up, and
    a write blocks.
    """

    def __init__(self, path: Path, kept: Path) -> None:
        self.path = path
        self._kept = kept
        self._state = "reads"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log {path.name}", daemon=True)
        kept.touch()
        path.unlink(missing_ok=True)  # of an earlier storm
        os.mkfifo(path)
        self._reader: int | None = self._open()
        self._thread.start()

    def _open(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def become(self, state: str) -> None:
        """Let the reader be one that `reads`, that `rests` or that is `gone`."""
        self._state = state

    def close(self) -> None:
        """Stop reading for good."""
        self._over.set()
        self._thread.join(5)

    def _run(self) -> None:
        with self._kept.open("ab") as kept:
            while not self._over.is_set():
                self._follow()
                if self._reader is not None and self._state == "reads":
                    with suppress(BlockingIOError):
                        while data := os.read(self._reader, 65_536):
                            kept.write(data)
                    kept.flush()
                time.sleep(0.05)
        self._state = "gone"
        self._follow()

    def _follow(self) -> None:
        if self._state == "gone" and self._reader is not None:
            os.close(self._reader)
            self._reader = None
        elif self._state != "gone" and self._reader is None:
            self._reader = self._open()


class LogDisk:
    """A small file system in memory, which can be filled. Needs root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={_DISK_SIZE}", "tmpfs", str(folder)],
            check=True,
            capture_output=True,
        )

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.folder / "filler").open("ab", buffering=0) as filler, suppress(OSError):
            while True:
                filler.write(bytes(4_096))

    def empty(self) -> None:
        """Free the space again."""
        (self.folder / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)


class SilentWorker(DragomanWorker):
    """A worker whose log, job tasks and engine can be broken."""

    def __init__(
        self,
        place: Place,
        name: str,
        settings: Mapping[str, Any],
        env: Mapping[str, str],
        disk: LogDisk | None,
    ) -> None:
        self.stall = place.folder / f"{name}.stall"
        self.cancel = place.folder / f"{name}.cancel"
        self.disk = disk
        self.pipe: LogPipe | None = None
        paths = [str(_STRAY), *filter(None, [env.get("PYTHONPATH")])]
        more = {"PYTHONPATH": os.pathsep.join(paths), "STORM_CANCEL": str(self.cancel)}
        with_stall = {"engine.echo.stall_file": str(self.stall), **settings}
        super().__init__(place, name, with_stall, {**env, **more})
        self._kept = self.log
        if disk is not None:
            self.log = self._kept = disk.folder / f"{name}.log"

    def start(self) -> SilentWorker:
        """Start it, with its log on the disk or through a pipe."""
        if self.disk is None and self.pipe is None:
            self.pipe = LogPipe(self._kept.with_suffix(".pipe"), self._kept)
            self.log = self.pipe.path
        super().start()
        return self

    @property
    def output(self) -> str:
        """What has arrived of its log."""
        return self._kept.read_text(encoding="utf-8", errors="replace")


class SilentDragoman(Dragoman):
    """Our worker, with logs on pipes and, as root, every second one on a disk that can be full."""

    name = "dragoman"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._disk: LogDisk | None = None
        self._made: list[SilentWorker] = []

    def worker(self, place: Place, name: str) -> SilentWorker:
        """Return a worker that has not been started."""
        disk = self._disk_at(place) if int(name[1:]) % 2 and os.geteuid() == 0 else None
        made = SilentWorker(place, name, self._settings, next(self._env), disk)
        self._made.append(made)
        return made

    def _disk_at(self, place: Place) -> LogDisk:
        folder = place.folder / "disk"
        if self._disk is None or self._disk.folder != folder:
            self._disk = LogDisk(folder)
        return self._disk

    def close(self) -> None:
        """Take pipes and disk down, after a storm."""
        for worker in self._made:
            if worker.pipe is not None:
                worker.pipe.close()
        self._made.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None
