"""How do tests run our commands as real processes, and make sure that none outlives its test?"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil

from support.processes.waiting import NotInTime, wait_until

T = TypeVar("T")


def command(name: str, *arguments: str) -> list[str]:
    """The console script `name` of the environment that runs the tests, with its arguments."""
    return [str(Path(sys.executable).with_name(name)), *arguments]


class ChildProcess:
    """A command in a session of its own; leaving the context kills all that it started.

    stdout goes to `<log>.out` and stderr to `<log>.err` when they are to be told apart, otherwise
    both go to `<log>`. A killed vLLM parent may leave its EngineCore behind, so the end takes every
    process of the session, and its descendants of other sessions that were seen before it died.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        split_streams: bool = False,
    ) -> None:
        self.argv = list(argv)
        self.log = log
        self._env = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
        self._split = split_streams
        self._process: subprocess.Popen[bytes] | None = None
        self._descendants: set[psutil.Process] = set()

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; OSError where the command does not exist."""
        with contextlib.ExitStack() as files:
            out = files.enter_context(self._stream("out").open("ab"))
            err = files.enter_context(self._stream("err").open("ab")) if self._split else out
            self._process = subprocess.Popen(
                self.argv,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=_heed_interrupts,  # noqa: PLW1509  async-signal-safe, and short
            )
        return self

    def stop(self, *, grace_s: float = 10.0) -> None:
        """TERM, then KILL after the grace; then KILL to whatever is left of its session."""
        if self._process is None:
            return
        self.terminate()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self._end_session()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- signals --------------------------------------------------------------------------------

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone; nothing happens when it has already ended."""
        if self.running:
            self._remember_descendants()
            self._started.send_signal(number)

    def terminate(self) -> None:
        """SIGTERM, to a stopped process too."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)

    def interrupt(self) -> None:
        """SIGINT, as Ctrl-C does."""
        self.send(signal.SIGINT)

    def pause(self) -> None:
        """SIGSTOP."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.send(signal.SIGCONT)

    def kill(self, *, everything: bool = False) -> None:
        """SIGKILL to the process, as `kill -9` would; with `everything` to its whole session."""
        self.send(signal.SIGKILL)
        self._started.wait(10.0)
        if everything:
            self._end_session()

    # --- looking --------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def running(self) -> bool:
        return self._started.poll() is None

    @property
    def returncode(self) -> int | None:
        return self._started.poll()

    @property
    def output(self) -> str:
        """All it wrote so far (stdout alone when the streams are split)."""
        return self._stream("out").read_text(encoding="utf-8", errors="replace")

    @property
    def errors(self) -> str:
        """What it wrote to stderr, with split streams."""
        return self._stream("err").read_text(encoding="utf-8", errors="replace")

    def session(self) -> list[psutil.Process]:
        """The living processes of its session and its known descendants, itself included."""
        self._remember_descendants()
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def wait(self, *, timeout_s: float) -> int:
        """Its exit status; NotInTime with the end of its output when it does not end."""
        try:
            return self._started.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise NotInTime(self._told(f"did not end within {timeout_s:g} s")) from None

    def wait_for(self, seen: Callable[[], T], *, timeout_s: float, what: str) -> T:
        """The first truthy value of `seen`; fails at once, with its output, when the process ends.

        Example: `worker.wait_for(lambda: "ready" in worker.output, timeout_s=60, what="ready")`.
        """

        def seen_or_ended() -> T | None:
            ended = not self.running
            value = seen()
            if not value and ended:
                raise NotInTime(self._told(f"ended with {self.returncode} before {what}"))
            return value

        try:
            value = wait_until(seen_or_ended, timeout_s=timeout_s, what=what)
        except NotInTime as error:
            raise NotInTime(self._told(str(error))) from None
        assert value is not None
        return value

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def _stream(self, name: str) -> Path:
        return self.log.with_name(f"{self.log.name}.{name}") if self._split else self.log

    def _remember_descendants(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self._descendants |= set(psutil.Process(self.pid).children(recursive=True))

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            ours = process in self._descendants or os.getsid(process.pid) == self.pid
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    def _end_session(self) -> None:
        deadline = time.monotonic() + 10.0
        while left := self.session():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=1.0)
            if time.monotonic() > deadline:
                raise NotInTime(f"cannot end {left}")

    def _told(self, message: str) -> str:
        text = self.errors or self.output if self._split else self.output
        return f"{' '.join(self.argv[:3])}: {message}\n--- the end of its output\n{text[-4000:]}"


def _heed_interrupts() -> None:
    """A shell's background job ignores SIGINT, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
