"""Cores of its own for an engine process: one physical core, which nothing else of the run uses.

vLLM's engine process bounds small models. A thread of another process on the second hardware thread
of its core takes part of that core's speed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def pin(engines: Sequence[psutil.Process]) -> list[set[int]]:
    """Give each engine an allowed core, from the last one on, and all other processes the rest.

    Returns the CPUs of each: the hardware threads of one core, or two neighbours where the machine
    shows none.
    """
    left = os.sched_getaffinity(0)
    owned: dict[int, set[int]] = {}
    for engine in engines:
        owned[engine.pid] = _core(left)
        left = left - owned[engine.pid]
    if not left:
        raise SystemExit("a core of its own for each engine leaves no core for anything else")
    for process in _of_this_run():
        for thread in _threads(process):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, owned.get(process.pid, left))
    return list(owned.values())


def _core(free: set[int]) -> set[int]:
    if not free:
        raise SystemExit("there are more engines than cores")
    own = _siblings(max(free)) & free
    return own if len(own) > 1 else set(sorted(free)[-2:])


def _siblings(cpu: int) -> set[int]:
    found: set[int] = set()
    for part in Path(_TOPOLOGY.format(cpu)).read_text(encoding="ascii").strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _of_this_run() -> Iterator[psutil.Process]:
    here = psutil.Process()
    yield here
    yield from here.children(recursive=True)


def _threads(process: psutil.Process) -> list[int]:
    try:
        return [thread.id for thread in process.threads()]
    except psutil.NoSuchProcess:
        return []
