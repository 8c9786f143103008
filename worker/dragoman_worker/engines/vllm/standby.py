"""Start of vLLM's engine process from a process that a forked replica has forked early.

A replica that the fork server has forked has one thread for a moment. It forks a standby process
then, which waits. vLLM's engine process becomes that one instead of a new interpreter: it has
everything imported, and nothing of the event loop, threads and sockets that the replica has by
then, some of which a fork would leave locked for ever.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import popen_fork, reduction, resource_tracker, spawn
from multiprocessing.context import SpawnContext, SpawnProcess, set_spawning_popen
from multiprocessing.process import BaseProcess
from typing import Any, Final, NoReturn

from dragoman_worker.process.parent_link import ParentLink

_CONTEXT: Final = "get_mp_context"
_METHOD: Final = "VLLM_WORKER_MULTIPROC_METHOD"
_COUNT: Final = "OMP_NUM_THREADS"
_PLACES: Final = ("OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
_LENGTH: Final = struct.Struct("!Q")


class _Standby:
    """A process that waits to become an engine process; of use once."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.connection = connection


_ready: list[_Standby] = []


def prepare(link: ParentLink) -> None:
    """Fork the standby process. Call it while this process has one thread and no event loop."""
    # The engine process shares this tracker, as a spawned one does: it outlives a killed engine and
    # then unlinks its shared memory.
    resource_tracker.ensure_running()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        link.close()
        _wait(theirs)
    theirs.close()
    _ready.append(_Standby(pid, ours))


@contextmanager
def used(engine_utils: Any) -> Iterator[None]:
    """Make vLLM start its engine process from the standby process, if there is one.

    `engine_utils` is vLLM's module that starts it. Without its known function nothing is changed.
    """
    original = getattr(engine_utils, _CONTEXT, None)
    if original is None or not _ready:
        yield
        return
    setattr(engine_utils, _CONTEXT, _Context)
    try:
        yield
    finally:
        setattr(engine_utils, _CONTEXT, original)


class _Process(SpawnProcess):
    """A process that becomes the standby process, or is spawned if there is none."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802  of multiprocessing
        # vLLM wraps the interpreter in another program to bind memory to a NUMA node.
        if _ready and os.fsdecode(spawn.get_executable()) == sys.executable:
            with suppress(OSError, _Unsendable):
                return _Popen(process_obj, _ready.pop())
        return SpawnProcess._Popen(process_obj)  # noqa: SLF001


class _Context(SpawnContext):
    """The context of spawned processes, whose first process is the standby process."""

    Process = _Process


class _Unsendable(Exception):
    """The process needs open files of this one."""


class _Popen(popen_fork.Popen):
    """The start of a process in the standby process."""

    method = "spawn"

    def __init__(self, process_obj: BaseProcess, standby: _Standby) -> None:
        self._standby = standby
        super().__init__(process_obj)

    def duplicate_for_child(self, fd: int) -> NoReturn:
        """Refuse to pass an open file."""
        raise _Unsendable(fd)

    def _launch(self, process_obj: BaseProcess) -> None:
        data = io.BytesIO()
        spawning: Any = self
        set_spawning_popen(spawning)
        try:
            pickle.dump(dict(os.environ), data)
            reduction.dump(process_obj, data)
        finally:
            set_spawning_popen(None)
        connection = self._standby.connection
        connection.sendall(_LENGTH.pack(data.getbuffer().nbytes))
        connection.sendall(data.getbuffer())
        self.pid = self._standby.pid
        self.sentinel = connection.fileno()


def _wait(connection: socket.socket) -> NoReturn:
    """Wait for the engine process to run; exit when the replica exits first."""
    os.setsid()
    code = 1
    try:
        with connection.makefile("rb") as received:
            head = received.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                os._exit(0)
            (length,) = _LENGTH.unpack(head)
            data = io.BytesIO(received.read(length))
        before = dict(os.environ)
        os.environ.clear()
        os.environ.update(pickle.load(data))  # noqa: S301  from the replica that forked this one
        os.environ[_METHOD] = "fork"  # vLLM itself spawns where CUDA is initialised
        _set_thread_count(before)
        os.register_at_fork(after_in_child=_in_workers(connection, dict(os.environ)))
        process: Any = pickle.load(data)  # noqa: S301
        code = process._bootstrap(parent_sentinel=connection.fileno())  # noqa: SLF001
    except Exception as error:  # noqa: BLE001  the replica learns the exit alone
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


def _in_workers(connection: socket.socket, before: Mapping[str, str]) -> Callable[[], None]:
    """Return what vLLM's worker processes do first: they are forked, and import nothing."""

    def begin() -> None:
        # A copy would hide the exit of the engine process from the replica.
        with suppress(OSError):
            os.close(connection.fileno())
        _set_thread_count(before)
        _bind(before)

    return begin


def _set_thread_count(before: Mapping[str, str]) -> None:
    """Do what OpenMP did at its import if the variable had been set."""
    count = os.environ.get(_COUNT, "")
    if count.isdecimal() and count != before.get(_COUNT) and (torch := sys.modules.get("torch")):
        torch.set_num_threads(int(count))


def _bind(before: Mapping[str, str]) -> None:
    """Run on the cores that vLLM chose by variables which OpenMP reads only at its import."""
    for name in _PLACES:
        chosen = os.environ.get(name, "")
        if chosen != before.get(name, "") and (cores := re.findall(r"\d+", chosen)):
            with suppress(OSError, ValueError):
                os.sched_setaffinity(0, {int(core) for core in cores})
