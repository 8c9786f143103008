"""Real processes for tests, none of which outlives its test."""

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
from typing import Protocol, Self, TypeVar

import psutil

from support.processes.waiting import LONGEST_PAUSE_S, NotInTime, patient, wait_until

T = TypeVar("T")


class Started(Protocol):
    """A started process: `subprocess.Popen`, or a forked one with the same methods."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: signal.Signals, /) -> None: ...


def command(name: str, *arguments: str) -> list[str]:
    """Return the argv of the console script `name` in the environment that runs the tests."""
    return [str(Path(sys.executable).with_name(name)), *arguments]


def argv_of(process: psutil.Process) -> list[str]:
    """Return its command line; nothing once it has exited."""
    with contextlib.suppress(psutil.NoSuchProcess):  # a zombie is one of these
        return process.cmdline()
    return []


class ChildProcess:
    """A command in its own session; leaving the context kills everything that it started.

    With `split_streams` stdout goes to `<log>.out` and stderr to `<log>.err`, otherwise both go to
    `<log>`. A killed vLLM parent may leave its EngineCore behind. So `stop` kills every process of
    the session, and descendants in other sessions that were seen before the parent died.
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
        self._process: Started | None = None
        self._descendants: set[psutil.Process] = set()

    # --- start and stop ---------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the command; raises OSError where it does not exist."""
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
                preexec_fn=_accept_sigint,  # noqa: PLW1509  async-signal-safe, and short
            )
        return self

    def stop(self, *, grace_s: float = 10.0) -> None:
        """Send SIGTERM, SIGKILL after the grace, then SIGKILL to the rest of the session."""
        if self._process is None:
            return
        self.terminate()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self._kill_session()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- signals ----------------------------------------------------------------------------------

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone; a process that has exited is left alone."""
        if self.running:
            self._remember_descendants()
            self._started.send_signal(number)

    def terminate(self) -> None:
        """Send SIGTERM; a process stopped by SIGSTOP receives it too."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)

    def interrupt(self) -> None:
        """Send SIGINT, as Ctrl-C does."""
        self.send(signal.SIGINT)

    def pause(self) -> None:
        """Send SIGSTOP."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        self.send(signal.SIGCONT)

    def kill(self, *, everything: bool = False) -> None:
        """Send SIGKILL to the process; with `everything` to its whole session."""
        self.send(signal.SIGKILL)
        self._started.wait(patient(10.0))
        if everything:
            self._kill_session()

    # --- inspection -------------------------------------------------------------------------------

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
        """Everything it has written so far; stdout alone with split streams."""
        return self._stream("out").read_text(encoding="utf-8", errors="replace")

    @property
    def errors(self) -> str:
        """Everything it has written to stderr, with split streams."""
        return self._stream("err").read_text(encoding="utf-8", errors="replace")

    def session(self) -> list[psutil.Process]:
        """Return the living processes of its session and its known descendants, itself included."""
        self._remember_descendants()
        return [process for process in psutil.process_iter() if self._belongs(process)]

    def wait(self, *, timeout_s: float) -> int:
        """Return its exit status; raises NotInTime with its last output when it does not exit."""
        try:
            return self._started.wait(patient(timeout_s))
        except subprocess.TimeoutExpired:
            bound = f"{patient(timeout_s):g} s"
            raise NotInTime(self._with_output(f"did not exit within {bound}")) from None

    def wait_for(
        self,
        seen: Callable[[], T],
        *,
        timeout_s: float,
        what: str,
        longest_pause_s: float = LONGEST_PAUSE_S,
    ) -> T:
        """Return the first truthy value of `seen`; raises NotInTime when the process exits first.

        The error holds the process's last output.

        Example: `worker.wait_for(lambda: "ready" in worker.output, timeout_s=60, what="ready")`.
        """

        def seen_or_exited() -> T | None:
            exited = not self.running
            value = seen()
            if not value and exited:
                raise NotInTime(self._with_output(f"exited with {self.returncode} before {what}"))
            return value

        try:
            value = wait_until(
                seen_or_exited, timeout_s=timeout_s, what=what, longest_pause_s=longest_pause_s
            )
        except NotInTime as error:
            raise NotInTime(self._with_output(str(error))) from None
        assert value is not None
        return value

    # --- internals --------------------------------------------------------------------------------

    @property
    def _started(self) -> Started:
        assert self._process is not None, "not started"
        return self._process

    def _stream(self, name: str) -> Path:
        return self.log.with_name(f"{self.log.name}.{name}") if self._split else self.log

    def _remember_descendants(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self._descendants |= set(psutil.Process(self.pid).children(recursive=True))

    def _belongs(self, process: psutil.Process) -> bool:
        try:
            belongs = process in self._descendants or os.getsid(process.pid) == self.pid
            return belongs and process.status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    def _kill_session(self) -> None:
        deadline = time.monotonic() + patient(10.0)
        while left := self.session():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=1.0)
            if time.monotonic() > deadline:
                raise NotInTime(f"cannot kill {left}")

    def _with_output(self, message: str) -> str:
        text = self.errors or self.output if self._split else self.output
        return f"{' '.join(self.argv[:3])}: {message}\n--- its last output\n{text[-4000:]}"


def _accept_sigint() -> None:
    """Restore the default SIGINT, which a shell's background jobs and their children ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
