"""Cores of its own for an engine process: one physical core, which nothing else of the run uses.

vLLM's engine process bounds small models. A thread of another process on the second hardware thread
of its core takes part of that core's speed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def pin(engine: psutil.Process) -> set[int]:
    """Give the engine the last allowed core, and all other processes of this run the others.

    Returns its CPUs: hardware threads of one core, or two neighbours where the machine shows none.
    """
    allowed = os.sched_getaffinity(0)
    own = _siblings(max(allowed)) & allowed
    if len(own) < 2:
        own = set(sorted(allowed)[-2:])
    if own == allowed:
        raise SystemExit("a core of its own for an engine needs a machine with more than one core")
    for process in _of_this_run():
        for thread in _threads(process):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, own if process == engine else allowed - own)
    return own


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
