"""What `run` prints reaches stderr whole and in order, and an unread stderr stops nothing."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dragoman_worker.process.stderr_relay import StderrRelay
from support.processes.waiting import wait_until

SOON_S = 30.0


class Bench:
    """A relay between two pipes."""

    def __init__(self, most_bytes: int = 1_000_000) -> None:
        source, self.printed = os.pipe()
        self.stderr, target = os.pipe()
        fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, 4096)
        self.relay = StderrRelay(source, target, most_bytes=most_bytes)
        self.relay.start()

    def print(self, text: bytes) -> None:
        left = memoryview(text)
        while left:
            left = left[os.write(self.printed, left) :]

    def read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            assert select.select([self.stderr], [], [], SOON_S)[0], found[-100:]
            found += os.read(self.stderr, size - len(found))
        return found


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    os.close(made.stderr)


def test_everything_printed_comes_out_in_order(bench: Bench) -> None:
    text = b"".join(b"line %d\n" % number for number in range(20_000)) + b"an unfinished line"
    bench.print(text)
    assert bench.read(len(text)) == text
    assert bench.relay.take_dropped() == 0


def test_a_flush_returns_once_everything_printed_is_written(bench: Bench) -> None:
    bench.print(b"the last\nlines")
    bench.relay.flush()
    assert os.read(bench.stderr, 100) == b"the last\nlines"


def test_a_reader_that_stops_blocks_nobody_and_costs_the_lines_beyond_the_bound() -> None:
    bench = Bench(most_bytes=50_000)
    for _ in range(1_000):
        bench.print(b"x" * 999 + b"\n")  # would block without the relay
    bench.relay.flush()
    dropped = bench.relay.take_dropped()
    assert 900 <= dropped < 1_000
    kept = bench.read(1_000 * (1_000 - dropped)).splitlines()
    assert {len(line) for line in kept} == {999}, "no line is cut"
    bench.print(b"again\n")
    assert bench.read(6) == b"again\n"


def test_lines_without_a_reader_are_counted() -> None:
    bench = Bench()
    os.close(bench.stderr)
    bench.print(b"one\ntwo\n")
    bench.relay.flush()
    assert bench.relay.take_dropped() == 2


_PROGRAM = """
import os, subprocess, sys
from dragoman_worker.process import stderr_relay
stderr_relay.open_standard_streams()
stderr_relay.start()
subprocess.run([sys.executable, "-c", "import os; os.write(2, b'a child' + bytes(3_000_000))"])
print("python", file=sys.stderr, flush=True)
print("a library", flush=True)
sys.exit(7)
"""


def run(redirection: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" {redirection}', sys.executable, _PROGRAM],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_children_and_both_streams_are_relayed_and_an_exit_writes_all() -> None:
    done = run("")
    assert done.stdout == b""
    assert done.stderr.startswith(b"a child")
    assert done.stderr.endswith(b"python\na library\n")
    assert done.returncode == 7


@pytest.mark.parametrize("redirection", ["2>&-", "2>&- >&- <&-", "2>/dev/full"])
def test_a_stderr_that_takes_nothing_does_no_harm(redirection: str) -> None:
    assert run(redirection).returncode == 7


def test_a_program_whose_stderr_nobody_reads_exits() -> None:
    reading, end = os.pipe()
    argv = [sys.executable, "-c", _PROGRAM]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(argv, env=env, stdout=end, stderr=end) as program:
        try:
            wait_until(lambda: program.poll() is not None, timeout_s=SOON_S, what="the exit")
        finally:
            program.kill()
    assert program.returncode == 7
    os.close(reading)
    os.close(end)
