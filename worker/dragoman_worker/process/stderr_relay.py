"""Relay of stderr: what `run` and its processes print passes through one bounded queue.

The reader of a log may stop, exit or run out of disk. A write to such a stderr hangs or fails, also
in C libraries and in vLLM's processes. So `run` replaces its descriptors 1 and 2, which all of its
processes inherit, with a pipe that is always read. Lines that cannot be written to the real stderr
are dropped and counted.

O_NONBLOCK would be no remedy: it belongs to the open file, which other programs share.
Standard library only, like everything that is imported before the first replica starts.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

FLUSH_S: Final = 1.0
"""Longest wait of an exiting process for its last lines."""
STALLED_S: Final = 0.25
"""A write that takes longer has no reader: nothing waits for it."""
_MOST_BYTES: Final = 4 * 1024 * 1024
_CHUNK: Final = 65_536
_PIPE_BYTES: Final = 1_048_576
"""What processes may print while this one does not run; the usual limit without privileges."""
_PARTIAL_MS: Final = 100
"""Wait for the rest of a line. A progress bar has no line ends."""


class StderrRelay:
    """Moves lines from a pipe to the real stderr; one thread reads, another writes."""

    def __init__(self, source: int, target: int, *, most_bytes: int = _MOST_BYTES) -> None:
        self._source = source
        self._target = target
        self._most_bytes = most_bytes
        self._lines: deque[bytes] = deque()
        self._held = 0
        self._partial = b""
        self._torn = False
        self._writing_since: float | None = None
        self._dropped = 0
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start both threads; they end with the process."""
        for work in (self._read_forever, self._write_forever):
            threading.Thread(target=work, name="stderr-relay", daemon=True).start()

    def take_dropped(self) -> int:
        """Return how many lines were dropped since the last call."""
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        return dropped

    def flush(self) -> None:
        """Wait until everything printed so far is written, up to a second while it is read."""
        give_up_at = time.monotonic() + FLUSH_S
        with self._changed:
            while self._pending and not self._stalled and time.monotonic() < give_up_at:
                self._changed.wait(0.01)

    @property
    def _pending(self) -> bool:
        return bool(self._held or self._partial or _poll(self._source, select.POLLIN).poll(0))

    @property
    def _stalled(self) -> bool:
        since = self._writing_since
        return since is not None and time.monotonic() - since > STALLED_S

    # --- from the pipe ----------------------------------------------------------------------------

    def _read_forever(self) -> None:
        readable = _poll(self._source, select.POLLIN)
        while True:
            found = readable.poll(_PARTIAL_MS if self._partial else None)
            with self._changed:  # `flush` finds every byte in one place or another
                if found:
                    self._take(os.read(self._source, _CHUNK))
                if not found or len(self._partial) >= _CHUNK:
                    self._put(self._partial)
                    self._partial = b""
                self._changed.notify_all()

    def _take(self, chunk: bytes) -> None:
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        for line in lines:
            self._put(line + b"\n")

    def _put(self, line: bytes) -> None:
        if self._held + len(line) > self._most_bytes:
            self._dropped += 1
        else:
            self._lines.append(line)
            self._held += len(line)

    # --- to stderr --------------------------------------------------------------------------------

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                line = self._lines.popleft()
                self._writing_since = time.monotonic()
            written = self._write(line)
            with self._changed:
                self._writing_since = None
                self._held -= len(line)
                self._dropped += not written

    def _write(self, line: bytes) -> bool:
        """Write a line, on a line of its own also where the end of the last one was lost."""
        left = memoryview(b"\n" + line if self._torn else line)
        while left:
            try:
                done = os.write(self._target, left)
            except BlockingIOError:  # another program has made the open file non-blocking
                _poll(self._target, select.POLLOUT).poll()
            except OSError:  # no reader, no space, closed
                return False
            else:
                left = left[done:]
                self._torn = bool(left)
        return True


def _poll(descriptor: int, event: int) -> select.poll:
    poll = select.poll()
    poll.register(descriptor, event)
    return poll


# --- of this process ------------------------------------------------------------------------------

_relays: Final[list[StderrRelay]] = []


def start() -> None:
    """Relay what this process and its children print from now on, on stdout too: see `flush`."""
    if _relays:
        return
    with suppress(OSError, RuntimeError):  # no descriptor or thread is left: nothing is relayed
        was_closed = sys.stderr.fileno() != 2  # raises OSError for one in memory
        source, end = os.pipe()
        relay = StderrRelay(source, os.dup(2))
        relay.start()
        _replace(end)
        if was_closed:
            sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        _relays.append(relay)
        atexit.register(relay.flush)


def flush() -> None:
    """Wait for the last lines, before an exit without `atexit`."""
    for relay in _relays:
        relay.flush()


def take_dropped() -> int:
    """Return how many lines were dropped since the last call."""
    return sum(relay.take_dropped() for relay in _relays)


def _replace(end: int) -> None:
    """Put the end of a pipe in the place of stdout and stderr."""
    with suppress(OSError, AttributeError):  # smaller pipes do; only Linux has larger ones
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    if os.isatty(2):  # from now on a pipe
        os.environ.setdefault("FORCE_COLOR", "1")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.dup2(end, 1)
    os.dup2(end, 2)
    os.close(end)


def open_standard_streams() -> None:
    """Fill closed descriptors below 3, which the next open files would get, and a closed stderr.

    Descriptors are filled such that writes to them fail and count as dropped.
    """
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
