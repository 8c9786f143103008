"""One judge process: its start, the connection to it, and its end."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman_worker.process.signals import stop_signals_blocked
from dragoman_worker.quality.judge_wire import Frames, frame

GATES: Final = "dragoman_text.gates:judge"
"""The project's judging function, as `module:function`."""

_REAP_S: Final = 5.0
"""Seconds until a killed process is left to the kernel: normally it is gone in milliseconds."""
_LOOK_S: Final = 0.005


class JudgeProcess(asyncio.Protocol):
    """A judge process from its start to its end. Event loop only."""

    def __init__(self, on_answers: Callable[[Sequence[Any]], None]) -> None:
        """`on_answers` gets the answers to each batch, in the order of its requests."""
        loop = asyncio.get_running_loop()
        self._on_answers = on_answers
        self._frames = Frames()
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._ready: asyncio.Future[None] = loop.create_future()
        self._lost: asyncio.Future[str] = loop.create_future()

    @property
    def pid(self) -> int | None:
        """Process id, None before the start."""
        return self._process.pid if self._process else None

    async def start(self, gates: str) -> None:
        """Start the process and return when it is loaded. Raises OSError and ConnectionError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                ours.setblocking(False)
                self._process = _started(theirs.fileno(), gates)
            except OSError:
                ours.close()
                raise
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_unix_connection(lambda: self, sock=ours)
        await self._ready

    def send(self, requests: Sequence[bytes]) -> None:
        """Hand over a batch; the answers to the previous one have come."""
        if self._transport is not None:
            self._transport.write(frame(requests))

    async def lost(self) -> str:
        """Return why the process is of no more use, as soon as it is."""
        return await self._lost

    def give_up(self, reason: str) -> None:
        """Declare the process useless."""
        if not self._ready.done():
            self._ready.set_exception(ConnectionError(f"it {reason} before it was ready"))
        elif not self._lost.done():
            self._lost.set_result(reason)

    async def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        if self._transport is not None:
            self._transport.abort()
        process = self._process
        if process is None:
            return
        process.kill()
        loop = asyncio.get_running_loop()
        until = loop.time() + _REAP_S
        while process.poll() is None and loop.time() < until:  # noqa: ASYNC110  some ms
            await asyncio.sleep(_LOOK_S)

    # --- asyncio.Protocol -------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Handle what the process wrote."""
        try:
            messages = self._frames.feed(data)
        except Exception as error:  # noqa: BLE001  whatever broken bytes make of pickle
            self.give_up(f"wrote an unreadable answer ({type(error).__name__})")
            return
        for message in messages:
            if message is not None:
                self._on_answers(message)
            elif not self._ready.done():
                self._ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Declare the process useless: it closes its end only when it exits."""
        self.give_up("exited")


def _started(descriptor: int, gates: str) -> subprocess.Popen[bytes]:
    """Start the process with SIGINT and SIGTERM blocked: they are for this process."""
    module = "dragoman_worker.quality.judge_child"
    with stop_signals_blocked():
        return subprocess.Popen(  # noqa: S603  our own program
            (sys.executable, "-P", "-m", module, str(descriptor), gates),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[descriptor],
            # One text is judged at a time: threads of numpy would cost memory and time to start.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
