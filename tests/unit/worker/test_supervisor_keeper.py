"""Does a keeper judge a replica by time in which it ran itself?"""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_worker.supervisor import keeper
from dragoman_worker.supervisor.asking import Answer
from dragoman_worker.supervisor.backoff import Backoff
from dragoman_worker.supervisor.keeper import Keeper, Shared


async def test_a_clock_that_jumps_between_two_looks_is_one_look_of_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stopped (SIGSTOP) or suspended, we have not been waiting for an answer all that time."""
    looks = 0

    async def deaf(*_: Any) -> Answer:
        nonlocal looks
        looks += 1
        return Answer()

    hours = count(step=3_600.0)
    monkeypatch.setattr(keeper, "ask", deaf)
    monkeypatch.setattr(keeper, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    killed = asyncio.Event()
    replica: Any = SimpleNamespace(ready=asyncio.Event(), kill=killed.set)
    replica.ready.set()
    nursery: Any = SimpleNamespace(socket=lambda _: Path("0.sock"))
    keeping = Keeper(
        0,
        nursery=nursery,
        shared=Shared(),
        backoff=Backoff(),
        stuck_after_s=6,
        started_again=lambda: None,
    )
    await asyncio.wait_for(keeping._watch(replica), 30)
    assert killed.is_set()
    assert looks == 3, "6 s, in looks that count for 2.5 s each at most"
