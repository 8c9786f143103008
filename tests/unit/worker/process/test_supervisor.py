"""The supervisor restarts replicas after any exit, and leaves no process behind.

The replicas are scripts (support/processes/scripted_replica.py).
Processes, signals and sockets are real.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman_worker.process.probes import PROBE_S, ask_for_one
from support.processes.supervised_run import SOON_S, Run, gone
from support.processes.waiting import wait_until

NewRun = Callable[..., Run]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[NewRun]:
    """Start a supervisor: `run(plan, setting__name=value)`."""
    started: list[Run] = []

    def start(plan: dict[str, Any] | None = None, **options: Any) -> Run:
        given = {name.replace("__", "."): value for name, value in options.items()}
        made = Run(tmp_path, plan or {"0": [{}]}, given)
        made.process.start()
        started.append(made)
        return made

    yield start
    for each in started:
        each.process.stop()


# --- starts ---------------------------------------------------------------------------------------


def test_replicas_start_side_by_side_and_the_first_ready_one_serves(run: NewRun) -> None:
    made = run({"0": [{"ready": False}], "1": [{}], "2": [{"ready": False}]})
    made.is_ready()
    assert all(made.seen("start", number=number) for number in (0, 1, 2))
    assert made.get("/startupz")[0] == 200


def test_replicas_that_measure_the_memory_of_another_gpu_start_side_by_side(run: NewRun) -> None:
    measuring = [{"gpus": (name,), "measures_memory": True} for name in ("0", "1")]
    made = run({"0": [{"ready": False}], "1": [{}]}, places=measuring)
    made.seen("ready", number=1)


def test_a_replica_sees_its_own_gpus_alone(run: NewRun) -> None:
    made = run(
        {"0": [{}], "1": [{}], "2": [{}]}, places=[{"gpus": ("1",)}, {"gpus": ("2", "3")}, {}]
    )
    for number, gpus in enumerate(("1", "2,3", os.environ.get("CUDA_VISIBLE_DEVICES"))):
        made.seen("ready", number=number)
        assert made.events("start", number)[0]["gpus"] == gpus


def test_a_killed_replica_comes_back_on_its_gpu_and_the_others_stay(run: NewRun) -> None:
    made = run({"0": [{}, {}], "1": [{}]}, places=[{"gpus": ("0",)}, {"gpus": ("1",)}])
    made.seen("ready", number=1)
    os.kill(made.seen("ready", number=0)[0]["pid"], signal.SIGKILL)
    made.seen("ready", 2, number=0)
    assert [start["gpus"] for start in made.events("start", 0)] == ["0", "0"]
    assert len(made.events("start", 1)) == 1


def test_replicas_that_measure_the_same_gpu_start_one_after_another(run: NewRun) -> None:
    plan: dict[str, Any] = {"0": [{"load_s": 0.5}], "1": [{"load_s": 0.5}], "2": [{}]}
    made = run(plan, places=[{"measures_memory": True}] * 3)
    made.seen("ready", number=2)
    for before, after in ((0, 1), (1, 2)):
        ready = made.seen("ready", number=before)[0]["at"]
        assert made.events("start", after)[0]["at"] >= ready


def test_a_replica_that_fails_does_not_block_the_next_start(run: NewRun) -> None:
    made = run({"0": [{"exit": 1}, {"exit": 1}, {}], "1": [{}]})
    made.seen("ready", number=0)
    made.seen("ready", number=1)
    assert len(made.events("start", 0)) == 3


def test_five_failed_starts_in_a_row_exit_with_1_and_drain_the_others(run: NewRun) -> None:
    plan = {"0": [{"term": 0.3}], "1": [{"say": ["failed", "no memory"], "exit": 1}]}
    made = run(plan, places=[{"measures_memory": True}] * 2)  # 0 is ready before 1 starts
    assert made.exits() == 1
    assert len(made.events("start", 1)) == 5
    assert made.process.output.count("no memory") == 1
    assert len(made.events("term", 0)) == 1


def test_readiness_resets_the_count_of_failed_starts(run: NewRun) -> None:
    fails, dies = [{"exit": 3}] * 4, [{"load_s": 0.1}]
    made = run({"0": [*fails, *dies, *fails, {}]})
    made.seen("ready", 1)
    os.kill(made.events("ready")[0]["pid"], signal.SIGKILL)
    made.seen("ready", 2)
    assert len(made.events("start")) == 10


def test_an_invalid_setting_exits_with_2_at_once(run: NewRun) -> None:
    made = run({"0": [{"say": ["settings", "engine.model: none"], "exit": 2}]})
    assert made.exits() == 2
    assert made.process.output == "2: engine.model: none\n"
    assert len(made.events("start")) == 1


def test_a_setting_refused_after_a_replica_was_ready_is_a_failed_start(run: NewRun) -> None:
    refused = {"say": ["settings", "engine.options: memory is taken"], "exit": 2}
    made = run({"0": [{}, refused, {}]})
    os.kill(made.seen("ready")[0]["pid"], signal.SIGKILL)
    made.seen("ready", 2)
    assert len(made.events("start")) == 3


def test_an_unreachable_broker_at_the_first_start_exits_with_1(
    run: NewRun,
) -> None:
    unreachable = {"say": ["unreachable", "nobody at 127.0.0.1:1"], "exit": 1}
    made = run({"0": [unreachable]})
    assert made.exits() == 1
    assert made.process.output == "1: nobody at 127.0.0.1:1\n"


def test_dropped_records_end_a_run_that_was_ready(run: NewRun) -> None:
    dropped = {"say": ["dropped", "7 records dropped"], "exit": 1}
    made = run({"0": [{}, dropped, {}]})
    os.kill(made.seen("ready")[0]["pid"], signal.SIGKILL)
    assert made.exits() == 1
    assert made.process.output == "1: 7 records dropped\n"


def test_an_unreachable_broker_later_is_a_failed_start(run: NewRun) -> None:
    unreachable = {"say": ["unreachable", "nobody at 127.0.0.1:1"], "exit": 1}
    made = run({"0": [{}, unreachable, unreachable, {}]})
    os.kill(made.seen("ready")[0]["pid"], signal.SIGKILL)
    made.seen("ready", 2)
    assert len(made.events("start")) == 4


def test_a_port_in_use_exits_at_once_and_leaves_no_replica(run: NewRun) -> None:
    first = run()
    first.is_ready()
    made = run(http__port=first.port)
    made.process.wait(timeout_s=SOON_S)
    assert made.process.returncode == 1
    assert "http.port" in made.process.errors
    assert made.process.session() == []


# --- several GPUs ---------------------------------------------------------------------------------

TWO_GPUS = [{"gpus": ("0",)}, {"gpus": ("1",)}]
NO_MEMORY = {"say": ["device", "other processes hold 39 GiB"], "exit": 2}


def failures(made: Run) -> list[dict[str, Any]]:
    """Return the log events `replica_failed` so far."""
    lines = made.process.errors.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return [row for row in rows if row["event"] == "replica_failed"]


def test_a_gpu_without_memory_is_tried_again_while_another_starts(run: NewRun) -> None:
    """It fails within a second; the others load their weights meanwhile."""
    made = run({"0": [{"ready": False}], "1": [*[NO_MEMORY] * 7, {}]}, places=TWO_GPUS)
    made.seen("ready", number=1)
    assert len(made.events("start")) == 1, "the other GPU was left alone"
    rows = failures(made)
    assert [row["failed_starts"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert {row["reason"] for row in rows} == {"other processes hold 39 GiB"}
    assert all((row["replica"], row["gpus"], row["status"]) == (1, ["1"], 2) for row in rows)


def test_a_gpu_without_memory_is_not_ready_while_another_works(run: NewRun) -> None:
    made = run({"0": [{}], "1": [NO_MEMORY]}, places=TWO_GPUS)
    made.seen("start", 7, number=1)
    made.is_ready()
    page = made.metrics({0: 1, 1: 0})
    restarts = 'dragoman_replica_restarts_total{replica="1"} '
    assert float(page.partition(restarts)[2].split()[0]) >= 6
    made.process.terminate()
    assert made.exits() == 0


def test_a_gpu_that_fails_later_is_tried_again_while_another_works(run: NewRun) -> None:
    broken = {"say": ["failed", "the driver is lost"], "exit": 1}
    made = run({"0": [{}], "1": [{}, *[broken] * 6, {}]}, places=TWO_GPUS)
    made.seen("ready", number=0)
    os.kill(made.seen("ready", number=1)[0]["pid"], signal.SIGKILL)
    made.seen("ready", 2, number=1)
    assert made.get("/readyz")[0] == 200
    assert len(made.events("start")) == 1


def test_the_run_ends_with_2_once_no_gpu_has_memory(run: NewRun) -> None:
    made = run({"0": [{"load_s": 60}, NO_MEMORY], "1": [NO_MEMORY]}, places=TWO_GPUS)
    made.seen("start", 3, number=1)  # its further starts are none that others wait for
    os.kill(made.seen("start")[0]["pid"], signal.SIGKILL)
    assert made.exits() == 2
    assert made.process.output == (
        "2: GPU 1: other processes hold 39 GiB; the replicas on all other GPUs have failed too\n"
    )


def test_the_run_ends_with_1_once_every_gpu_has_failed_five_starts(run: NewRun) -> None:
    broken = {"say": ["failed", "the driver is lost"], "exit": 1}
    made = run({"0": [{}, broken], "1": [broken]}, places=TWO_GPUS)
    os.kill(made.seen("ready")[0]["pid"], signal.SIGKILL)
    assert made.exits() == 1
    assert len(made.events("start")) == 6
    assert "GPU 1" in made.process.output


def test_a_replica_beside_the_failed_one_keeps_the_run_when_no_other_gpu_works(run: NewRun) -> None:
    plan = {"0": [NO_MEMORY], "1": [NO_MEMORY], "2": [{"ready": False}, {}]}
    made = run(plan, places=[*TWO_GPUS, TWO_GPUS[1]])
    for number in (0, 1):
        made.seen("start", 3, number=number)
    os.kill(made.seen("start", number=2)[0]["pid"], signal.SIGKILL)
    made.is_ready()


def test_a_wrong_setting_ends_the_run_at_once_although_other_gpus_start(run: NewRun) -> None:
    wrong = {"say": ["settings", "engine.model: none"], "exit": 2}
    made = run({"0": [{"load_s": 60}], "1": [wrong]}, places=TWO_GPUS)
    assert made.exits() == 2
    assert made.process.output == "2: engine.model: none\n"
    assert len(made.events("start", 1)) == 1


def test_memory_that_the_only_gpu_lacks_ends_the_run_at_once(run: NewRun) -> None:
    made = run({"0": [{"load_s": 60}], "1": [NO_MEMORY]}, places=[{"gpus": ("7",)}] * 2)
    assert made.exits() == 2
    assert made.process.output == "2: GPU 7: other processes hold 39 GiB\n"
    assert len(made.events("start", 1)) == 1


# --- exits ----------------------------------------------------------------------------------------


def test_orphans_of_a_dead_replica_are_gone_before_the_next_start(run: NewRun) -> None:
    made = run({"0": [{"leave": True}, {}]})
    made.is_ready()
    orphan = made.events("left")[0]["child"]
    replica = made.events("start")[0]["pid"]
    assert os.getsid(orphan) == orphan
    os.kill(replica, signal.SIGKILL)
    made.seen("start", 2)
    assert not psutil.pid_exists(orphan), "killed and reaped"
    assert not psutil.pid_exists(replica)


def test_the_replicas_die_with_the_supervisor(run: NewRun) -> None:
    made = run({"0": [{"term": "ignore"}], "1": [{"deaf_once_ready": True}]})
    made.both_ready()
    pids = [made.events("ready", number)[0]["pid"] for number in (0, 1)]
    made.process.kill()
    assert gone(*pids, within_s=1.0)


def test_a_stuck_replica_is_killed_and_restarted(run: NewRun) -> None:
    made = run({"0": [{"deaf_once_ready": True}, {}]}, supervisor__stuck_after_s=2)
    made.seen("ready", 2)
    made.is_ready()
    wait_until(lambda: made.get("/livez")[0] == 200, timeout_s=SOON_S, what="/livez")
    assert made.process.errors.count("replica_stuck") == 1


def test_a_start_that_hangs_is_killed_and_counts_as_failed(run: NewRun) -> None:
    made = run({"0": [{"ready": False}]}, supervisor__start_within_s=1)
    assert made.exits(4 * SOON_S) == 1
    # By the supervisor's log: on a busy machine a replica is killed before it can record its start.
    assert made.process.errors.count("replica_started") == 5
    assert "supervisor.start_within_s" in made.process.output


def test_startupz_answers_200_from_the_first_ready_replica_on(run: NewRun, tmp_path: Path) -> None:
    made = run({"0": [{"ready": False, "startupz": 503}, {}, {"ready": False}]})
    made.seen("start")
    wait_until(lambda: made.get("/startupz")[0] == 503, timeout_s=SOON_S, what="/startupz")
    assert "replica 0: " in made.get("/startupz")[1]
    os.kill(made.events("start")[0]["pid"], signal.SIGKILL)
    made.seen("ready")
    wait_until(lambda: made.get("/startupz")[0] == 200, timeout_s=SOON_S, what="/startupz")
    os.kill(made.events("ready")[0]["pid"], signal.SIGKILL)
    made.seen("start", 3)
    assert made.get("/startupz")[0] == 200


def test_crashes_per_opened_record_are_counted_over_replicas_and_restarts(
    run: NewRun,
) -> None:
    bad, near = "t/0/7@1", "t/1/9@1"
    made = run(
        {
            "0": [{"opens": [bad, near]}, {"opens": [bad]}, {}],
            "1": [{"opens": [bad]}, {"opens": [bad]}, {"opened": near, "opens": []}, {}],
        },
        places=[{"measures_memory": True}] * 2,  # one start at a time
    )
    made.seen("ready", 4, number=1)
    tables = {event["at"]: event["crashes"] for n in (0, 1) for event in made.events("table", n)}
    in_order = [tables[at] for at in sorted(tables)]
    assert [crashes.get(bad, 0) for crashes in in_order] == [0, 1, 2, 3, 4]
    assert in_order[1][near] == 1


def test_a_process_group_that_was_stopped_and_continued_is_not_restarted(run: NewRun) -> None:
    made = run(supervisor__stuck_after_s=2)
    made.is_ready()
    group = made.process.pid
    os.killpg(group, signal.SIGSTOP)
    stopped_at = time.monotonic()
    wait_until(lambda: time.monotonic() - stopped_at > 3, timeout_s=30, what="a long stop")
    os.killpg(group, signal.SIGCONT)
    wait_until(lambda: time.monotonic() - stopped_at > 6, timeout_s=30, what="two probes")
    assert len(made.events("start")) == 1


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_all_replicas_drain_at_the_same_time(
    run: NewRun, number: signal.Signals
) -> None:
    made = run({str(each): [{"term": 1.5}] for each in range(3)})
    for each in range(3):  # a replica that starts is not asked to drain
        made.seen("ready", number=each)
    made.process.send(number)
    signalled = [made.seen("term", number=each)[0]["at"] for each in range(3)]
    assert made.get("/readyz")[0] == 503
    assert made.exits() == 0
    assert max(signalled) - min(signalled) < 1.5, "one deadline for all"
    assert not any(made.events("abort", each) for each in range(3))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_to_the_whole_group_only_drains(run: NewRun, number: signal.Signals) -> None:
    made = run({"0": [{"term": 0.5}], "1": [{"term": 0.5}]})
    made.both_ready()
    os.killpg(made.process.pid, number)
    assert made.exits() == 0
    for each in (0, 1):
        assert made.events("term", each)
        assert not made.events("abort", each)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_handlers_are_installed_drains_too(
    run: NewRun, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "early").write_text(number.name)
    made = run({"0": [{}], "1": [{}]})
    assert made.exits() == 0
    assert not made.events("start", 1)
    assert made.process.session() == []


@pytest.mark.parametrize("how", ["ignore", 30])
def test_a_second_signal_stops_everything_at_once(run: NewRun, how: str | int) -> None:
    made = run({"0": [{"term": how, "leave": True}], "1": [{"term": how}]})
    made.both_ready()
    made.process.terminate()
    made.seen("term", number=0)
    asked_at = time.monotonic()
    os.kill(made.process.pid, signal.SIGTERM)
    assert made.exits() == 0
    assert time.monotonic() - asked_at < 20, "the replicas would take 30 s and longer"
    assert made.events("abort", 1)
    assert gone(made.events("left")[0]["child"], within_s=1)


def test_a_signal_while_a_replica_starts_exits_quickly(run: NewRun) -> None:
    one_at_a_time = [{"measures_memory": True}] * 2
    made = run({"0": [{"load_s": 60, "term": "ignore"}], "1": [{}]}, places=one_at_a_time)
    made.seen("start")
    wait_until(lambda: made.get("/livez")[0] == 200, timeout_s=SOON_S, what="/livez")
    made.process.terminate()
    asked_at = time.monotonic()
    assert made.exits() == 0
    assert time.monotonic() - asked_at < 40, "the replica would load for 60 s"
    assert not made.events("start", 1)


def test_a_replica_killed_while_it_drains_is_not_restarted(run: NewRun) -> None:
    made = run({"0": [{"term": 30}]})
    made.is_ready()
    made.process.terminate()
    os.kill(made.seen("term")[0]["pid"], signal.SIGKILL)
    assert made.exits() == 1
    assert len(made.events("start")) == 1


# --- pages ----------------------------------------------------------------------------------------


def test_the_metrics_page_has_each_family_once_with_the_samples_of_all_replicas(
    run: NewRun,
) -> None:
    made = run({"0": [{}], "1": [{}]})
    made.both_ready()
    page = made.metrics({0: 1, 1: 1})
    families = list(text_string_to_metric_families(page))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    samples = {
        (sample.name, sample.labels["replica"]): sample.value
        for family in families
        for sample in family.samples
    }
    for number in ("0", "1"):
        assert samples["dragoman_jobs_total", number] == 3
        assert samples["dragoman_replica_up", number] == 1
        assert samples["dragoman_replica_restarts_total", number] == 0


def test_a_replica_that_does_not_answer_blocks_no_page(run: NewRun) -> None:
    made = run({"0": [{}], "1": [{"deaf_once_ready": True}]})
    made.both_ready()
    assert 'dragoman_jobs_total{replica="0"} 3.0' in made.metrics({0: 1, 1: 0})
    asked_at = time.monotonic()
    wait_until(  # a busy machine may not give replica 0 the time to answer either
        lambda: made.get("/livez") == (503, "not yet: replica 1: no answer\n"),
        timeout_s=SOON_S,
        what="replica 1 alone",
    )
    assert time.monotonic() - asked_at > PROBE_S, "the replica had its time"
    made.is_ready()
    made.process.kill(everything=True)  # a replica that is deaf drains for long


async def test_the_first_ok_answer_is_returned_without_waiting_for_the_others(
    tmp_path: Path,
) -> None:
    """Sockets that answer 200, 503 and never, and one that does not exist."""

    async def answer(
        status: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if status:
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        await reader.read()  # until the client disconnects
        writer.close()

    async with AsyncExitStack() as stack:
        sockets = {number: tmp_path / f"{number}.sock" for number in range(4)}
        for number, status in enumerate((0, 503, 200)):
            server = await asyncio.start_unix_server(partial(answer, status), sockets[number])
            stack.push_async_callback(server.wait_closed)
            stack.callback(server.close)
        async with asyncio.timeout(20):
            found = await ask_for_one(sockets, "/readyz", within_s=60)
        assert {number: answer.status for number, answer in found.items()} == {2: 200}
        del sockets[2]
        found = await ask_for_one(sockets, "/readyz", within_s=0.2)
        assert {number: answer.status for number, answer in found.items()} == {0: 0, 1: 503, 3: 0}
