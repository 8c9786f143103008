"""A process that holds a vLLM, as a replica does, for tests that signal and kill it.

It runs in its own session. It sends one dictionary after each step. First `started`: the process
ids of the engine. After any message it generates, sends SIGINT to its whole process group
meanwhile, and sends `finished`: the reasons. Then it closes the engine with requests in flight and
sends `closed`: the reasons, and `left`: process ids.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from multiprocessing.connection import Connection
from pathlib import Path

from dragoman_worker.engines.vllm import VllmEngine
from dragoman_worker.engines.vllm.patches import fork
from dragoman_worker.ports import Decoding, Generation
from dragoman_worker.process.parent_link import ParentLink
from support.builders.engine_requests import (
    a_request,
    begin_long,
    begin_running,
    ended,
    engine_processes,
    vllm_settings,
)
from support.processes.waiting import eventually


def reasons(results: list[Generation | BaseException]) -> list[str]:
    return [r.finish_reason if isinstance(r, Generation) else repr(r) for r in results]


def run(model: Path, tests: Connection) -> None:
    """Run in the process, which has been forked."""
    os.setsid()
    link, _ = socket.socketpair()
    fork.prepare(ParentLink(link))
    asyncio.run(main(model, tests))


async def main(model: Path, tests: Connection) -> None:
    interrupts: list[int] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: interrupts.append(1))
    # With a worker process beside the engine's, as with several GPUs or on CPUs.
    engine = VllmEngine(vllm_settings(model, distributed_executor_backend="mp"))
    await engine.start()
    tests.send({"started": [process.pid for process in engine_processes()]})
    await asyncio.to_thread(tests.recv)
    medium = Decoding(max_tokens=1_500)
    tasks = await begin_running(engine, 4, lambda engine: a_request(engine, decoding=medium))
    os.killpg(os.getpgrp(), signal.SIGINT)
    await eventually(lambda: interrupts, timeout_s=30, what="SIGINT")
    tests.send({"finished": reasons(await ended(tasks))})
    tasks = await begin_long(engine, 4)
    await engine.close()
    closed = reasons(await ended(tasks))
    tests.send({"closed": closed, "left": [process.pid for process in engine_processes()]})
