"""Children end with their parent, a parent hears of the end of a child, messages stay whole."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import psutil
import pytest

from dragoman_connections import child
from dragoman_connections.child import (
    LONGEST_MESSAGE,
    STOP_SIGNALS,
    AsyncChannel,
    Channel,
    ChannelClosed,
    ChildProcess,
    Frames,
    MessageTooLong,
    framed,
    signals_blocked,
    spawn,
)
from support.processes.waiting import eventually

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
_CONNECTED = """
import os, signal, sys, time
from dragoman_connections import child
channel = child.Channel(child.connected(int(sys.argv[1])))
"""
ECHO = f"""{_CONNECTED}
while (message := channel.receive()) is not None:
    channel.send(message)
"""
STUBBORN = """
import sys, time
from dragoman_connections import child
channel = child.Channel(child.connected(int(sys.argv[1]), ignored=child.STOP_SIGNALS))
channel.send(b"ready")
while True:
    time.sleep(600)
"""


def program(code: str) -> child.Command:
    return lambda descriptor: (sys.executable, "-P", "-c", code, descriptor)


@pytest.fixture
async def children() -> AsyncIterator[list[ChildProcess]]:
    started: list[ChildProcess] = []
    yield started
    for each in started:
        await each.end()


async def start(
    children: list[ChildProcess], code: str, *, own_session: bool = True
) -> ChildProcess:
    started = await ChildProcess.start(program(code), own_session=own_session, env=ENVIRONMENT)
    children.append(started)
    return started


async def received(channel: AsyncChannel) -> bytes:
    async with asyncio.timeout(60):
        return await channel.receive()


# --- messages -------------------------------------------------------------------------------------


def test_messages_are_whole_wherever_the_bytes_are_split() -> None:
    messages = [b"", b"a", b"\0" * 300, "é".encode() * 70_000]
    data = b"".join(map(framed, messages))
    for size in (1, 3, 4_096, len(data)):
        frames = Frames()
        found = [
            each
            for start in range(0, len(data), size)
            for each in frames.feed(data[start : start + size])
        ]
        assert found == messages


async def test_a_message_of_some_megabytes_comes_back(children: list[ChildProcess]) -> None:
    echo = await start(children, ECHO)
    message = os.urandom(5_000_000)
    echo.channel.send(message)
    assert await received(echo.channel) == message


def test_a_message_that_is_too_long_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LONGEST_MESSAGE", 10)
    framed(b"x" * 10)
    with pytest.raises(MessageTooLong):
        framed(b"x" * 11)


async def test_a_length_that_is_too_long_closes_the_channel_before_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        channel = await AsyncChannel.over(ours)
        theirs.sendall(struct.pack(">I", LONGEST_MESSAGE + 1))
        with pytest.raises(ChannelClosed, match="a message of"):
            await received(channel)


def test_a_blocking_end_refuses_a_length_that_is_too_long() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(struct.pack(">I", LONGEST_MESSAGE + 1))
        with pytest.raises(MessageTooLong):
            Channel(ours).receive()


@pytest.mark.parametrize("half", [b"", b"\0\0", framed(b"whole")[:-1]])
async def test_half_a_message_is_no_message(half: bytes) -> None:
    ours, theirs = socket.socketpair()
    channel = await AsyncChannel.over(ours)
    theirs.sendall(framed(b"whole") + half)
    theirs.close()
    assert await received(channel) == b"whole"
    with pytest.raises(ChannelClosed, match="exited"):
        await received(channel)


@pytest.mark.parametrize("half", [b"", b"\0\0", framed(b"whole")[:-1]])
def test_half_a_message_is_the_end_for_a_blocking_end(half: bytes) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(framed(b"whole") + half)
    theirs.close()
    with ours:
        channel = Channel(ours)
        assert [channel.receive(), channel.receive()] == [b"whole", None]


def test_signals_do_not_break_messages() -> None:
    """Reads and writes that a signal interrupts go on."""
    ours, theirs = socket.socketpair()
    message = os.urandom(3_000_000)
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    writer = subprocess.Popen(
        [sys.executable, "-c", _ONE_ECHO, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env=ENVIRONMENT,
    )
    theirs.close()
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        with ours:
            channel = Channel(ours)
            channel.send(message)
            assert channel.receive() == message
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        writer.wait(60)
    assert seen


_ONE_ECHO = """
import socket, sys
from dragoman_connections.child import Channel
channel = Channel(socket.socket(fileno=int(sys.argv[1])))
channel.send(channel.receive())
"""


async def test_messages_wait_until_they_are_received(children: list[ChildProcess]) -> None:
    """What the other end writes meanwhile stays with it: it does not fill this process."""
    busy = f"""{_CONNECTED}
for number in range(200):
    channel.send(str(number).encode() + b"." * 1_000_000)
"""
    process = await start(children, busy)
    first = await received(process.channel)
    assert sum(map(len, process.channel._waiting)) < 3_000_000
    rest = [await received(process.channel) for _ in range(199)]
    assert [each.partition(b".")[0] for each in [first, *rest]] == [b"%d" % n for n in range(200)]


async def test_a_writer_waits_for_a_slow_reader(children: list[ChildProcess]) -> None:
    slow = await start(children, f"{_CONNECTED}\nchannel.receive(); time.sleep(600)")
    slow.channel.send(b"x" * 5_000_000)
    slow.channel.send(b"x" * 5_000_000)
    draining = asyncio.ensure_future(slow.channel.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    slow.kill()
    async with asyncio.timeout(30):
        await draining
    slow.channel.send(b"to nobody")


# --- the end of a child ---------------------------------------------------------------------------


@pytest.mark.parametrize("own_session", [True, False])
async def test_a_killed_child_is_heard_of(children: list[ChildProcess], own_session: bool) -> None:
    echo = await start(children, ECHO, own_session=own_session)
    echo.channel.send(b"hello")
    assert await received(echo.channel) == b"hello"
    os.kill(echo.pid, signal.SIGKILL)
    with pytest.raises(ChannelClosed):
        await received(echo.channel)
    async with asyncio.timeout(30):
        assert await echo.channel.ended() == "exited"
        assert await echo.wait() == -signal.SIGKILL


async def test_a_child_exits_by_itself_when_its_channel_closes(
    children: list[ChildProcess],
) -> None:
    echo = await start(children, ECHO)
    echo.channel.send(b"hello")
    assert await received(echo.channel) == b"hello"
    assert await echo.end(within_s=30) == 0


async def test_a_child_that_does_not_exit_is_killed_and_reaped(
    children: list[ChildProcess],
) -> None:
    stubborn = await start(children, STUBBORN)
    assert await received(stubborn.channel) == b"ready"
    assert await stubborn.end(within_s=0.05) == -signal.SIGKILL
    assert not psutil.pid_exists(stubborn.pid)


async def test_an_end_that_is_cancelled_has_killed_and_reaped(children: list[ChildProcess]) -> None:
    stubborn = await start(children, STUBBORN)
    assert await received(stubborn.channel) == b"ready"
    ending = asyncio.ensure_future(stubborn.end(within_s=600))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not psutil.pid_exists(stubborn.pid)


async def test_what_a_child_leaves_in_its_session_is_killed_with_it(
    children: list[ChildProcess],
) -> None:
    code = f"""{_CONNECTED}
import subprocess
left = subprocess.Popen(["sleep", "600"])
channel.send(str(left.pid).encode())
channel.receive()
"""
    process = await start(children, code)
    left = psutil.Process(int(await received(process.channel)))
    await process.end(within_s=30)
    await eventually(lambda: _gone(left), timeout_s=30, what="the grandchild has gone")


def test_a_program_that_cannot_be_started_leaves_no_descriptor() -> None:
    before = psutil.Process().num_fds()
    with pytest.raises(FileNotFoundError):
        spawn(lambda _: ("/no/such/program",))
    assert psutil.Process().num_fds() == before


# --- signals --------------------------------------------------------------------------------------


async def test_a_stop_signal_that_came_before_the_child_was_ready_is_received_by_it(
    children: list[ChildProcess],
) -> None:
    """It is blocked meanwhile: the child's own handler gets it, not the interpreter's start."""
    code = """
import signal, sys, time
from dragoman_connections import child
while signal.SIGTERM not in signal.sigpending():
    time.sleep(0.01)
heard = []
signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
channel = child.Channel(child.connected(int(sys.argv[1])))
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
channel.send(f"{heard == [signal.SIGTERM]} {blocked}".encode())
"""
    process = await start(children, code)
    os.kill(process.pid, signal.SIGTERM)
    assert await received(process.channel) == b"True set()"


async def test_ignored_stop_signals_leave_a_child_alone(children: list[ChildProcess]) -> None:
    stubborn = await start(children, STUBBORN)
    assert await received(stubborn.channel) == b"ready"
    for number in STOP_SIGNALS:
        os.kill(stubborn.pid, number)
    stubborn.channel.send(b"")
    assert psutil.Process(stubborn.pid).status() != psutil.STATUS_ZOMBIE
    assert stubborn.status is None


async def test_ctrl_c_reaches_no_child_in_a_session_of_its_own(
    children: list[ChildProcess],
) -> None:
    echo = await start(children, ECHO)
    assert os.getsid(echo.pid) == echo.pid
    assert os.getpgid(echo.pid) != os.getpgid(0)


def test_signals_arrive_after_they_were_blocked() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with signals_blocked():
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= set(STOP_SIGNALS)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


# --- the end of the parent ------------------------------------------------------------------------

_PARENT = """
import asyncio, os, sys
from dragoman_connections.child import ChildProcess

async def main():
    start = lambda descriptor: (sys.executable, "-P", "-c", sys.argv[1], descriptor)
    process = await ChildProcess.start(start)
    await process.channel.receive()
    print(process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
_WITHOUT_PRCTL = "from dragoman_connections import child\nchild._prctl = lambda *_: False\n"


@pytest.mark.parametrize("prefix", ["", _WITHOUT_PRCTL], ids=["kernel", "thread"])
async def test_a_busy_child_ends_when_its_parent_is_killed(prefix: str) -> None:
    """Also where the kernel cannot do it."""
    busy = f"{prefix}{STUBBORN}"
    with subprocess.Popen(  # noqa: ASYNC220  it starts in milliseconds
        [sys.executable, "-c", _PARENT, busy], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as parent:
        assert parent.stdout is not None
        process = psutil.Process(int(await asyncio.to_thread(parent.stdout.readline)))
        parent.kill()
    try:
        await eventually(lambda: _gone(process), timeout_s=30, what="the child has gone")
    finally:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def test_a_child_whose_parent_died_before_it_was_connected_ends_at_once() -> None:
    """A message that the parent has left does not hide its death."""
    process, connection = spawn(program(STUBBORN), env=ENVIRONMENT)
    connection.sendall(framed(b"left behind"))
    connection.close()
    assert process.wait(30) == -signal.SIGKILL


def _gone(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
