"""A process that holds a vLLM, as a script that tests can signal and kill.

Usage: `python engine_parent.py MODEL`, in its own session. It prints one JSON line after each step.
First `{"started": [pids]}`. After a line on stdin it generates, sends SIGINT to its whole process
group meanwhile, and prints `{"finished": [reasons]}`. Then it closes the engine with requests in
flight and prints `{"closed": [reasons], "left": [pids]}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from dragoman_worker.engines.vllm import VllmEngine
from dragoman_worker.ports import Decoding, Generation
from support.builders.engine_requests import (
    a_request,
    begin_long,
    begin_running,
    ended,
    engine_processes,
    vllm_settings,
)
from support.processes.waiting import eventually


def report(**what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def reasons(results: list[Generation | BaseException]) -> list[str]:
    return [r.finish_reason if isinstance(r, Generation) else repr(r) for r in results]


async def main(model: Path) -> None:
    interrupts: list[int] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: interrupts.append(1))
    # With a worker process beside the engine's, as with several GPUs or on CPUs.
    engine = VllmEngine(vllm_settings(model, distributed_executor_backend="mp"))
    await engine.start()
    report(started=[process.pid for process in engine_processes()])
    await asyncio.to_thread(sys.stdin.readline)
    medium = Decoding(max_tokens=1_500, exact_length=True)
    tasks = await begin_running(engine, 4, lambda engine: a_request(engine, decoding=medium))
    os.killpg(os.getpgrp(), signal.SIGINT)
    await eventually(lambda: interrupts, timeout_s=30, what="SIGINT")
    report(finished=reasons(await ended(tasks)))
    tasks = await begin_long(engine, 4)
    await engine.close()
    report(
        closed=reasons(await ended(tasks)),
        left=[process.pid for process in engine_processes()],
    )


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
