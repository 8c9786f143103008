"""Replicas are forked from a fork server, and start in the ordinary way where that fails.

The replicas and the fork server are scripts (support/processes/scripted_fork_server.py).
Processes, signals and sockets are real.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.processes.supervised_run import SOON_S, Run, gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs child subreapers")


class ForkingRun(Run):
    """A supervisor with a fork server."""

    @property
    def servers(self) -> list[int]:
        """Return the process ids of the fork servers, oldest first."""
        place = self.folder / "fork_servers"
        return [int(line) for line in place.read_text().split()] if place.exists() else []

    def starts(self, count: int, number: int = 0) -> list[dict[str, Any]]:
        """Wait until a replica was ready `count` times, and return all of its starts."""
        self.seen("ready", count, number=number)
        return self.events("start", number)


NewRun = Callable[..., ForkingRun]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[NewRun]:
    """Start a supervisor: `run(plan, how)`, where `how` is what the fork server does."""
    started: list[ForkingRun] = []

    def start(plan: dict[str, Any] | None = None, how: str = "serve", **options: Any) -> ForkingRun:
        given = {name.replace("__", "."): value for name, value in options.items()}
        made = ForkingRun(tmp_path, plan or {"0": [{}]}, {"fork_server": how, **given})
        made.process.start()
        started.append(made)
        return made

    yield start
    for each in started:
        each.process.stop()


def test_forked_replicas_are_children_of_the_supervisor_in_its_group_and_differ(
    run: NewRun,
) -> None:
    made = run({"0": [{}], "1": [{}]}, places=[{"gpus": ("0",)}, {"gpus": ("1",)}])
    starts = [made.starts(1, number)[0] for number in (0, 1)]
    assert [start["forked"] for start in starts] == [True, True]
    assert {start["parent"] for start in starts} == {made.process.pid}
    assert {start["group"] for start in starts} == {made.process.pid}
    assert [start["gpus"] for start in starts] == ["0", "1"]
    assert starts[0]["random"] != starts[1]["random"]


def test_a_forked_replica_has_its_own_title_in_the_list_of_processes(run: NewRun) -> None:
    made = run({"0": [{}], "1": [{}]})
    titles = [made.starts(1, number)[0]["title"] for number in (0, 1)]
    assert titles == ["scripted replica 0", "scripted replica 1"]


def test_a_killed_replica_is_forked_again_from_the_same_server(run: NewRun) -> None:
    made = run({"0": [{"leave": True}, {}]})
    os.kill(made.starts(1)[0]["pid"], signal.SIGKILL)
    assert [start["forked"] for start in made.starts(2)] == [True, True]
    assert gone(made.events("left")[0]["child"], within_s=SOON_S), "an orphan, unlike the server"
    assert len(made.servers) == 1


def test_a_killed_fork_server_leaves_its_replicas_and_is_replaced_for_the_next(run: NewRun) -> None:
    made = run({"0": [{}, {}]})
    [first] = made.starts(1)
    os.kill(made.servers[0], signal.SIGKILL)
    assert gone(made.servers[0], within_s=SOON_S)
    os.kill(first["pid"], signal.SIGKILL)
    assert [start["forked"] for start in made.starts(2)] == [True, True]
    assert len(made.servers) == 2


@pytest.mark.parametrize("how", ["refuse", "exit", "hang"])
def test_without_a_usable_fork_server_replicas_start_in_the_ordinary_way(
    run: NewRun, how: str
) -> None:
    made = run({"0": [{}, {}]}, how, supervisor__start_within_s=3 if how == "hang" else 600)
    os.kill(made.starts(1)[0]["pid"], signal.SIGKILL)
    # A busy machine may exceed the limit of "hang" in a start too, which is then repeated.
    assert not any(start["forked"] for start in made.starts(2))
    assert len(made.servers) == 1


def test_a_replica_that_failed_when_forked_starts_in_the_ordinary_way(run: NewRun) -> None:
    made = run({"0": [{}, {"exit": 1}, {}, {}]})
    os.kill(made.starts(1)[0]["pid"], signal.SIGKILL)
    os.kill(made.starts(2)[2]["pid"], signal.SIGKILL)
    assert [start["forked"] for start in made.starts(3)] == [True, True, False, True]


def test_server_and_replicas_die_with_the_supervisor(run: NewRun) -> None:
    made = run({"0": [{"term": "ignore"}]})
    [start] = made.starts(1)
    made.process.kill()
    assert gone(start["pid"], made.servers[0], within_s=SOON_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_group_drains_forked_replicas(run: NewRun, number: signal.Signals) -> None:
    made = run({"0": [{"term": 0.1}]})
    made.starts(1)
    os.killpg(made.process.pid, number)
    assert made.exits() == 0
    assert made.events("term")
    assert not made.events("abort")
    assert gone(made.servers[0], within_s=SOON_S)


def test_a_signal_while_the_fork_server_imports_ends_the_run(run: NewRun) -> None:
    made = run(how="hang")
    made.process.wait_for(
        lambda: made.servers and made.get("/livez")[0] == 200,
        timeout_s=SOON_S,
        what="the fork server",
    )
    made.process.send(signal.SIGTERM)
    assert made.exits() == 0
    assert gone(made.servers[0], within_s=SOON_S)
    assert not made.events("start")
