"""A real Redis server for tests, on a free port of this machine."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import redis

from support.processes.waiting import NotInTime, wait_until
from support.services.ports import free_port

_START_TIMEOUT_S = 120.0
"""After a long storm the append-only file takes long to load."""

KEPT_THROUGH_A_KILL: Final = {"appendonly": "yes", "appendfsync": "no"}
"""Options of servers that replace one another. Every write is in the file before its reply, which
a killed process keeps without a wait for the disk. A server that restarts empty may be promoted
again, on a machine slow enough to miss a heartbeat, and then all data is lost."""


class RedisServer:
    """A redis-server process; `stop` and `start` keep the port and the data folder.

    `binary` is a name on PATH or a path. `options` are redis-server's settings with underscores for
    hyphens, such as `appendonly="yes"`. Without such an option nothing is written to disk.
    """

    def __init__(
        self, *, binary: str = "redis-server", port: int | None = None, **options: str
    ) -> None:
        self._binary = binary
        self._options = {"save": "", "appendonly": "no"} | options
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port or free_port()

    @property
    def url(self) -> str:
        """Database 0 of the server."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process id while it runs; raises RuntimeError otherwise."""
        if self._process is None:
            raise RuntimeError("the Redis server is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and neither stopped nor killed."""
        return self._process is not None

    def start(self) -> Self:
        """Start the process and wait until it answers; raises RuntimeError with its last output."""
        if self._process is not None:
            raise RuntimeError("the Redis server is already running")
        binary = shutil.which(self._binary)
        if binary is None:
            raise RuntimeError(f"{self._binary} is not installed")
        began_empty = self._folder is None
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="dragoman-redis-")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(binary), cwd=self._folder.name, stdout=log, stderr=log
            )
        try:
            self._wait_until_ready()
        except RuntimeError:
            self.kill()
            if began_empty:
                self.close()  # otherwise its data stays for the next start
            raise
        return self

    def stop(self) -> None:
        """Send SIGTERM and wait; the data folder stays. A stopped server is left alone."""
        self._stop(kill=False)

    def kill(self) -> None:
        """Send SIGKILL; the next start reads the append-only file again."""
        self._stop(kill=True)

    def close(self) -> None:
        """Stop and remove the data folder."""
        self.stop()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _log(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "redis.log"

    def _command(self, binary: str) -> list[str]:
        fixed = {"port": str(self.port), "bind": "127.0.0.1", "daemonize": "no"}
        command = [binary]
        for name, value in (fixed | self._options).items():
            command += [f"--{name.replace('_', '-')}", value]
        return command

    def _wait_until_ready(self) -> None:
        try:
            answers = wait_until(
                lambda: self._answers() or self._has_exited(),
                timeout_s=_START_TIMEOUT_S,
                what="the first answer of the Redis server",
            )
        except NotInTime:
            answers = "not in time"
        if answers != "yes":
            last_output = self._log.read_text(errors="replace")[-500:]
            raise RuntimeError(f"the Redis server did not start: {last_output}")

    def _answers(self) -> str:
        password = self._options.get("requirepass")
        client = redis.Redis(port=self.port, password=password, socket_timeout=1)
        with client, contextlib.suppress(redis.RedisError):
            client.ping()
            return "yes"
        return ""

    def _has_exited(self) -> str:
        assert self._process is not None
        return "" if self._process.poll() is None else "exited"

    def _stop(self, *, kill: bool) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill() if kill else process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
