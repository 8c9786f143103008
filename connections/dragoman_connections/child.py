"""Child processes: their start, a channel of length-framed bytes to each, and their end.

`spawn` starts a process with one end of a socket pair, and with the stop signals blocked until the
child says what it does with them in `connected`. A message is any bytes after their length; what
they hold is the programs' own matter. A child is killed when its parent dies, on Linux by the
kernel; a parent reaps its children in `ChildProcess.end`.

Standard library only: replicas and the supervisor import this before anything slow. The worker's
fork server writes other messages: it passes descriptors, so its socket keeps messages apart.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, Self, cast

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
LONGEST_MESSAGE: Final = 2**30
"""Bytes. A length beyond it is noise: no program here sends a tenth of it."""

Command = Callable[[str], Sequence[str]]
"""Argv of a child process from the descriptor of its channel."""
Output = int | IO[bytes] | None

_LENGTH: Final = struct.Struct(">I")
_REAP_S: Final = 5.0
"""Seconds until a killed process is left to the kernel: normally it is gone in milliseconds."""
_LOOK_S: Final = 0.005
_LONGEST_LOOK_S: Final = 0.1
_WATCH_S: Final = 0.5


class MessageTooLong(ValueError):
    """A message is longer than LONGEST_MESSAGE."""


class ChannelClosed(ConnectionError):
    """There is no further message; the message of the error says why."""


def framed(message: bytes) -> bytes:
    """Return a message after its length. Raises MessageTooLong."""
    return _LENGTH.pack(_checked(len(message))) + message


class Frames:
    """Splits what arrives into messages."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are complete with this data. Raises MessageTooLong."""
        self._received += data
        messages: list[bytes] = []
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _checked(_LENGTH.unpack_from(self._received)[0])
            if len(self._received) < end:
                break
            messages.append(bytes(self._received[_LENGTH.size : end]))
            del self._received[:end]
        return messages


def _checked(length: int) -> int:
    if length > LONGEST_MESSAGE:
        raise MessageTooLong(f"a message of {length} bytes, at most {LONGEST_MESSAGE} are sent")
    return length


class Channel:
    """One end of a channel, for a program that waits for each message."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")

    def send(self, message: bytes) -> None:
        """Write a message. Raises ConnectionError and MessageTooLong."""
        self._connection.sendall(framed(message))

    def receive(self) -> bytes | None:
        """Return the next message; None at the end, also within one. Raises MessageTooLong."""
        with suppress(ConnectionError, struct.error):  # the latter for half a length
            length = _checked(_LENGTH.unpack(self._incoming.read(_LENGTH.size))[0])
            message = self._incoming.read(length)
            return message if len(message) == length else None
        return None


class AsyncChannel(asyncio.Protocol):
    """One end of a channel on an event loop. Messages wait for `receive`, or go to a function."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._frames = Frames()
        self._waiting: deque[bytes] = deque()
        self._handler: Callable[[bytes], None] = self._waiting.append
        self._news = asyncio.Event()
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @classmethod
    async def over(cls, connection: socket.socket) -> Self:
        """Return the channel over one end of a socket pair, which it owns from now on."""
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        return (await loop.create_unix_connection(cls, sock=connection))[1]

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._end.done()

    def send(self, message: bytes) -> None:
        """Write a message, unless the channel is closed. Raises MessageTooLong."""
        if not self.closed:
            self._transport.write(framed(message))

    async def drain(self) -> None:
        """Return when few messages wait to be read at the other end, or the channel is closed."""
        await self._may_write.wait()

    async def receive(self) -> bytes:
        """Return the next message. Raises ChannelClosed after the last one."""
        while not self._waiting:
            if self.closed:
                raise ChannelClosed(self._end.result())
            self._news.clear()
            await self._news.wait()
        message = self._waiting.popleft()
        if not self._waiting and not self.closed:
            self._transport.resume_reading()
        return message

    def deliver_to(self, handler: Callable[[bytes], None]) -> None:
        """Call `handler` with each message as it arrives, from now on; `receive` has had all."""
        self._handler = handler

    async def ended(self) -> str:
        """Return why the channel is closed, as soon as it is."""
        return await asyncio.shield(self._end)

    def close(self) -> None:
        """Close the channel once everything is written."""
        self._transport.close()

    def abort(self, reason: str) -> None:
        """Close the channel at once."""
        if not self._end.done():
            self._end.set_result(reason)
            self._may_write.set()
            self._news.set()
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._frames.feed(data)
        except MessageTooLong as error:
            self.abort(f"sent {error}")
            return
        for message in messages:
            if not self.closed:
                self._handler(message)
        if self._waiting:
            self._transport.pause_reading()
            self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort("exited")

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block the stop signals inside the context; one that arrives is handled afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def spawn(
    command: Command,
    *,
    kind: socket.SocketKind = socket.SOCK_STREAM,
    env: Mapping[str, str] | None = None,
    stdout: Output = None,
    stderr: Output = None,
    start_new_session: bool = False,
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process, as Popen does; return it and this end of the socket pair. Raises OSError.

    The stop signals stay blocked in it until it calls `connected`: none hits a program that has
    not said yet what it does with them.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with theirs:
        try:
            with signals_blocked():
                process = subprocess.Popen(  # noqa: S603  this program's own command
                    command(str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=env,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=start_new_session,
                )
        except BaseException:
            ours.close()
            raise
    return process, ours


class ChildProcess:
    """A child process of this program and the channel to it; `end` kills and reaps it."""

    def __init__(
        self, process: subprocess.Popen[bytes], channel: AsyncChannel, *, own_session: bool
    ) -> None:
        self._process = process
        self._own_session = own_session
        self._killed = False
        self.pid = process.pid
        self.channel = channel

    @classmethod
    async def start(cls, command: Command, *, own_session: bool = True, **options: Any) -> Self:
        """Start a process. Raises OSError.

        In a session of its own Ctrl-C does not reach it, and what it leaves in the session is
        killed with it. `options` are those of `spawn`.
        """
        process, connection = spawn(command, start_new_session=own_session, **options)
        try:
            channel = await AsyncChannel.over(connection)
        except BaseException:
            connection.close()
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_REAP_S)
            raise
        return cls(process, channel, own_session=own_session)

    @property
    def status(self) -> int | None:
        """Exit status, or the negative number of the signal; None while it runs."""
        return self._process.poll()

    async def wait(self) -> int:
        """Return the exit status as soon as the process has exited."""
        pause = _LOOK_S
        while (status := self.status) is None:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK_S)
        return status

    async def end(self, within_s: float = 0.0) -> int | None:
        """Close the channel, which asks the process to exit; kill it after `within_s` seconds.

        Return its exit status; None if the kernel does not release it. Idempotent.
        """
        self.channel.close()
        try:
            await self._exited(within_s)
            self.kill()
            return await self._exited(_REAP_S)
        except asyncio.CancelledError:
            self.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_S)
            raise

    def kill(self) -> None:
        """Kill the process, and everything in its session if it has one of its own. Idempotent."""
        if self._killed:  # another process may have its number by now
            return
        self._killed = True
        with suppress(ProcessLookupError, PermissionError):  # gone; macOS: only zombies are left
            if self._own_session:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()

    async def _exited(self, within_s: float) -> int | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                return await self.wait()
        return None


def adopt_orphans() -> bool:
    """Become the parent of all orphaned descendants; return whether it worked (Linux only)."""
    return _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def connected(descriptor: int, *, ignored: Iterable[signal.Signals] = ()) -> socket.socket:
    """Return the connection that this process was started with; it dies with its parent.

    To be called first: from now on stop signals are received, those of `ignored` never.
    """
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    die_with_parent(connection)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    return connection


def die_with_parent(connection: socket.socket) -> None:
    """Have this process killed as soon as its parent dies; `connection` leads to the parent.

    The kernel does it on Linux, elsewhere a thread within half a second.
    """
    parent = os.getppid()
    if not _prctl(1, signal.SIGKILL):  # PR_SET_PDEATHSIG
        watch = threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True)
        watch.start()
    if hung_up(connection):  # it died before this
        os.kill(os.getpid(), signal.SIGKILL)


def hung_up(connection: socket.socket) -> bool:
    """Whether the other end of a connection is closed."""
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def killed_with_parent() -> None:
    """Have this process killed as soon as its parent dies, on Linux; for `preexec_fn`."""
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
