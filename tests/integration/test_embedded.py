"""Integration tests of the embedded broker, the embedded Redis and their clean-up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from dragoman_producer.box.broker import EmbeddedBroker
from dragoman_producer.box.embedded_redis import EmbeddedRedis
from dragoman_producer.box.linked_child import ChildFailed, LinkedChild
from support.processes.child_process import ChildProcess
from support.processes.waiting import eventually, wait_until

# Starts all three kinds of children, prints their process ids, and runs until terminated.
_PARENT = """
import asyncio, json, psutil, sys
from pathlib import Path
from dragoman_producer.box.broker import EmbeddedBroker
from dragoman_producer.box.linked_child import LinkedChild
from dragoman_producer.box.embedded_redis import EmbeddedRedis

async def main():
    async with (
        EmbeddedBroker({"t": 1}),
        EmbeddedRedis(Path(sys.argv[2]), Path(sys.argv[2])),
        LinkedChild(["sleep", "1000"], log=Path(sys.argv[1])),
    ):
        while len(children := psutil.Process().children(recursive=True)) < 5:
            await asyncio.sleep(0.01)
        print(json.dumps([child.pid for child in children]), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """Provide a folder for a socket; pytest's own paths are too long."""
    with tempfile.TemporaryDirectory(prefix="box-") as folder:
        yield Path(folder)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _alive(pids: list[int]) -> list[int]:
    alive = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                alive.append(pid)
        except psutil.NoSuchProcess:
            continue
    return alive


async def test_a_group_reads_and_commits_what_an_idempotent_producer_wrote() -> None:
    async with EmbeddedBroker({"jobs": 3}) as broker:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, enable_idempotence=True
        ) as producer:
            assert await producer.partitions_for("jobs") == {0, 1, 2}
            await producer.send_and_wait("jobs", b"one", partition=1, headers=[("h", b"v")])
        async with AIOKafkaConsumer(
            "jobs",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            record = await asyncio.wait_for(consumer.getone(), 20)
            assert (record.value, record.headers) == (b"one", (("h", b"v"),))
            await consumer.commit()
            assert await consumer.committed(TopicPartition("jobs", 1)) == 1


async def test_redis_writes_are_in_its_append_only_file(short: Path) -> None:
    async with EmbeddedRedis(short, short) as server:
        with redis.Redis.from_url(server.url) as client:
            client.set("k", "v", ex=60)
            assert client.get("k") == b"v"
            assert _mode(short / "redis.sock") == 0o600
            assert client.config_get("appendonly") == {"appendonly": "yes"}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


@pytest.mark.parametrize("how", ["returns", "raises", "is cancelled"])
async def test_no_child_runs_once_the_context_is_left(how: str, short: Path) -> None:
    started = asyncio.Event()
    others = {child.pid for child in psutil.Process().children(recursive=True)}
    children: list[int] = []

    async def parent() -> None:
        async with EmbeddedBroker({"t": 1}), EmbeddedRedis(short, short):
            pids = (child.pid for child in psutil.Process().children(recursive=True))
            children.extend(pid for pid in pids if pid not in others)
            started.set()
            if how == "raises":
                raise LookupError
            if how == "is cancelled":
                await asyncio.Event().wait()

    task = asyncio.create_task(parent())
    await asyncio.wait_for(started.wait(), 30)
    if how == "is cancelled":
        task.cancel()
    await asyncio.wait([task], timeout=30)
    assert task.done()
    assert len(children) >= 3
    assert _alive(children) == []


@pytest.fixture
def parent(tmp_path: Path, short: Path) -> Iterator[tuple[ChildProcess, list[int]]]:
    """Run a process with all kinds of embedded children; provide it and their process ids."""
    argv = [sys.executable, "-c", _PARENT, str(tmp_path / "child.log"), str(short)]
    # A killed process leaves its temporary files; here they are deleted with the test's.
    env = {"TMPDIR": str(tmp_path)}
    with ChildProcess(argv, log=tmp_path / "parent.log", env=env) as process:
        line = process.wait_for(
            lambda: process.output if "]" in process.output else "", timeout_s=30, what="children"
        )
        yield process, json.loads(line.splitlines()[0])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_children_terminate_with_their_parent(
    parent: tuple[ChildProcess, list[int]], number: signal.Signals
) -> None:
    process, children = parent
    assert len(_alive(children)) == len(children) >= 5
    process.send(number)
    process.wait(timeout_s=20)
    wait_until(lambda: not _alive(children), timeout_s=20, what="the exit of the children")


async def test_a_command_that_ignores_sigterm_and_its_own_children_are_killed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "stubborn.log"
    script = "trap '' TERM; sleep 1000 & echo $!; wait; wait; wait"
    async with LinkedChild(["bash", "-c", script], log=log, grace_s=0.2):
        await eventually(lambda: log.read_text().strip(), timeout_s=30, what="the grandchild")
        grandchild = int(log.read_text())
        assert _alive([grandchild])
    wait_until(lambda: not _alive([grandchild]), timeout_s=30, what="the exit of the grandchild")


@pytest.mark.parametrize(
    "sleeping",
    [
        "sleep 1000",
        pytest.param(
            "setsid bash -c 'sleep 1000 & wait'",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux adopts orphans"),
        ),
    ],
    ids=["in its group", "in another session"],
)
async def test_an_orphan_of_a_command_that_died_is_killed(tmp_path: Path, sleeping: str) -> None:
    log = tmp_path / "dead.log"
    script = f"{sleeping} & echo $! $$; wait"
    async with LinkedChild(["bash", "-c", script], log=log) as child:
        await eventually(lambda: log.read_text().strip(), timeout_s=30, what="the grandchild")
        orphan, parent = map(int, log.read_text().split())
        orphans = [orphan, *(child.pid for child in psutil.Process(orphan).children())]
        os.kill(parent, signal.SIGKILL)
        await eventually(lambda: child.exited, timeout_s=30, what="the exit of the parent link")
        assert child.exit_status == 128 + signal.SIGKILL
        wait_until(lambda: not _alive(orphans), timeout_s=30, what="the exit of the orphans")


def test_the_broker_command_refuses_a_topic_without_a_number_of_partitions() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman_producer.box.broker", "--topic", "jobs:0"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "'jobs:0' is not NAME:PARTITIONS" in done.stderr


async def test_a_broker_that_cannot_start_reports_the_reason() -> None:
    with pytest.raises(ChildFailed, match="'jobs:0' is not NAME:PARTITIONS"):
        async with EmbeddedBroker({"jobs": 0}):
            pass


async def test_a_redis_waits_until_an_earlier_one_has_released_its_files(short: Path) -> None:
    other = Path(tempfile.mkdtemp(dir=short))
    async with EmbeddedRedis(short, short) as first:
        with redis.Redis.from_url(first.url) as client:
            client.set("k", "v")
        second = EmbeddedRedis(short, other)
        starting = asyncio.create_task(second.__aenter__())
        await eventually((short / "redis.lock").exists, timeout_s=20, what="lock")
        assert not starting.done()
    await asyncio.wait_for(starting, 30)
    try:
        with redis.Redis.from_url(second.url) as client:
            assert client.get("k") == b"v"
    finally:
        await second.__aexit__(None, None, None)


def _links() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "parent_link" in " ".join(p.cmdline())]


async def test_a_killed_link_takes_its_command_along(tmp_path: Path) -> None:
    async with LinkedChild(["sleep", "1000"], log=tmp_path / "log") as child:
        await eventually(lambda: bool(_links()), timeout_s=20, what="the link")
        [link] = _links()
        await eventually(lambda: bool(link.children()), timeout_s=20, what="the command")
        [command] = link.children()
        link.kill()
        await eventually(lambda: child.exited, timeout_s=20, what="the link's exit")
        wait_until(lambda: not _alive([command.pid]), timeout_s=20, what="the command's exit")
