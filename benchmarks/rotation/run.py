"""Short-lived identities under load, per role: what is lost, and what restarts.

usage: run.py [--mode oauth|scram|mtls] [--period 60] [--periods 4] [--rate 25] [--out row.json]

A real Kafka with access control lists. Client, worker and operator have a user each, whose secret
lives for a period:
  oauth  a token, with which Kafka ends every connection; renewed after two thirds of its life;
  scram  a password, changed at the broker and a second later in the role's file; Kafka ends every
         session after half a period;
  mtls   certificates of a new authority, of Kafka, Redis over TLS and the roles, while old and new
         authority are both trusted; then every connection is ended and the old one is dropped.
The client submits `--rate` jobs per second by one TranslationClient; one in ten fails. The operator
replays dead letters by one command that takes as long as the load, and audits every 20 s. At the
end an audit must find every acknowledged job once. Connections are counted per role by their local
ports. Prints one JSON object; exits with 1 if anything was lost or restarted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import redis

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from identities import MODES, Identity

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_producer import DragomanError, TranslationClient
from dragoman_schemas.jobs import TranslationJob
from support.processes.child_process import command
from support.processes.waiting import wait_until
from support.processes.worker_process import WorkerProcess
from support.services.plain_clients import TERMINAL
from support.services.redis_server import RedisServer
from support.services.secure_broker import Right

TOPIC = "tokens"
DEAD, GROUP = f"{TOPIC}-dead", f"{TOPIC}-group"
RIGHTS = {
    "client": [Right("topic", TOPIC, "write")],
    "worker": [
        Right("topic", TOPIC, "read"),
        Right("group", GROUP, "read"),
        Right("topic", DEAD, "write"),
    ],
    "operator": [
        Right("topic", TOPIC, "read"),
        Right("topic", TOPIC, "write"),
        Right("topic", DEAD, "read"),
        Right("group", GROUP, "describe"),
    ],
}


@dataclass
class Watch:
    """Counts of what happens beside the load, twice per second."""

    worker: WorkerProcess
    port: int
    operators: list[int] = field(default_factory=list)
    connections: dict[str, set[int]] = field(default_factory=lambda: {r: set() for r in RIGHTS})
    replicas: set[int] = field(default_factory=set)
    looks: Counter[str] = field(default_factory=Counter)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Look until `ended`."""
        while not self.ended.wait(0.5):
            pids = [replica.pid for replica in self.worker.replicas()]
            self.replicas.update(pids)
            ready = self.worker.get("/readyz")[0] == 200
            self.looks["ready" if ready else "not ready"] += 1
            for role, of in (
                ("worker", pids),
                ("client", [os.getpid()]),
                ("operator", self.operators),
            ):
                for pid in of:
                    self.connections[role] |= self._ports(pid)

    def _ports(self, pid: int) -> set[int]:
        with suppress(psutil.Error):
            found = psutil.Process(pid).net_connections()
            return {one.laddr.port for one in found if one.raddr and one.raddr.port == self.port}
        return set()


@dataclass
class Place:
    """The servers of one mode, and a settings file per role."""

    identity: Identity
    folder: Path

    @property
    def server(self) -> RedisServer:
        """The Redis of all roles."""
        return self.identity.server

    def config(self, role: str) -> Path:
        """Write the settings of a role and return their file."""
        file = self.folder / f"{role}.toml"
        kafka = {**self.identity.kafka(role), "dead_letter_topic": DEAD, "group_id": GROUP}
        lines = [f"{name} = {json.dumps(value)}" for name, value in kafka.items()]
        text = "\n".join(["[kafka]", f'topics = "{TOPIC}"', *lines])
        file.write_text(f"{text}\n[redis]\nurl = {json.dumps(self.identity.redis_url(role))}\n")
        return file


async def submit(place: Place, first: int, count: int, rate: float, refused: list[str]) -> int:
    """Submit jobs at a pace by one client; return how many were acknowledged."""
    settings = load_settings(DragomanSettings, place.config("client"))
    acknowledged, began = 0, time.monotonic()
    async with TranslationClient(settings=settings) as client:
        for number in range(first, first + count):
            await asyncio.sleep(began + (number - first) / rate - time.monotonic())
            text = "#!fatal\nThis fails." if number % 10 == 0 else f"This is sentence {number}."
            job = TranslationJob(job_id=f"{TOPIC}-{number}", text=text, target_lang="de")
            try:
                await client.submit(job)
                acknowledged += 1
            except DragomanError as error:
                refused.append(f"{type(error).__name__}: {error}")
    return acknowledged


def operate(place: Place, watch: Watch, seconds: float, letters: int) -> dict[str, Any]:
    """Replay dead letters for `seconds` in one command, and audit meanwhile."""
    config = ["--config", str(place.config("operator"))]
    rate = str(letters / seconds)
    replay = command("dragoman", "dead-letters", "replay", "--all", "--rate", rate, *config)
    audits: Counter[int] = Counter()
    with (place.folder / "replay.log").open("w+") as log:
        running = subprocess.Popen(replay, stdout=log, stderr=log)
        watch.operators.append(running.pid)
        began = time.monotonic()
        while running.poll() is None:
            audit = command("dragoman", "audit", "--json", "--show", "0", *config)
            audits[subprocess.run(audit, capture_output=True, check=False).returncode] += 1
            with suppress(subprocess.TimeoutExpired):
                running.wait(20)
        took = time.monotonic() - began
        log.seek(0)
        last = log.read().splitlines()[-1:]
    status = running.returncode
    return {
        "replay": {"exit_status": status, "seconds": round(took), "last": last},
        "audits": {f"exit status {code}": count for code, count in audits.items()},
    }


def final_audit(place: Place) -> dict[str, Any]:
    """Return the exit status and the accounts of the last audit."""
    argv = command("dragoman", "audit", "--json", "--config", str(place.config("operator")))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return {"exit_status": done.returncode, "accounts": json.loads(lines[-1]) if lines else None}


def all_ended(server: RedisServer, count: int) -> bool:
    """Return whether every job has reached a terminal status."""
    return all(status in TERMINAL for status, *_ in _stored(server, count))


def job_seconds(server: RedisServer, count: int) -> dict[str, float]:
    """Return percentiles of the seconds from submission to end, of the jobs that completed."""
    took = sorted(
        (_moment(finished) - _moment(queued)).total_seconds()
        for status, queued, finished in _stored(server, count)
        if status == b"completed"
    )
    return {"p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100], "max": took[-1]}


def _stored(server: RedisServer, count: int) -> list[Any]:
    with redis.Redis.from_url(server.url) as client, client.pipeline(transaction=False) as pipe:
        for number in range(count):
            names = ["status", "queued_at", "finished_at"]
            pipe.hmget(f"dragoman:job:{TOPIC}-{number}", names)
        return pipe.execute()


def _moment(text: bytes) -> datetime:
    return datetime.fromisoformat(text.decode())


def measure(given: argparse.Namespace, place: Place) -> dict[str, Any]:
    """Run the load; return one row."""
    seconds, identity = given.period * given.periods, place.identity
    count, letters = int(seconds * given.rate), 60
    kafka = identity.kafka("worker")
    settings = {f"kafka.{name}": value for name, value in kafka.items()}
    with WorkerProcess(
        place.folder,
        kafka=kafka["bootstrap_servers"],
        redis=identity.redis_url("worker"),
        topic=TOPIC,
        settings={**settings, "engine.echo.latency_s": 0.5},
    ) as worker:
        worker.ready(60)
        watch = Watch(worker, identity.port)
        refused: list[str] = []
        # Dead letters for the replay: the first tenth of these fails.
        acknowledged = asyncio.run(submit(place, 0, 10 * letters, 500.0, refused))
        wait_until(lambda: all_ended(place.server, 10 * letters), timeout_s=60, what="dead letters")
        watching = threading.Thread(target=watch.run)
        watching.start()
        operated: dict[str, Any] = {}
        operator = threading.Thread(
            target=lambda: operated.update(operate(place, watch, seconds, letters))
        )
        operator.start()
        with identity.rotating():
            acknowledged += asyncio.run(submit(place, 10 * letters, count, given.rate, refused))
            operator.join()
        total = 10 * letters + count
        wait_until(lambda: all_ended(place.server, total), timeout_s=60, what="the last job")
        time.sleep(5)  # for the last commit, which the audit expects
        watch.ended.set()
        watching.join()
        restarts = worker.metric("dragoman_replica_restarts_total")
        final = final_audit(place)
    return {
        "mode": given.mode,
        "period_s": given.period,
        "seconds": seconds,
        "rotations": identity.rotations,
        "problems": identity.problems,
        "submitted": total,
        "acknowledged": acknowledged,
        "refused": refused[:5],
        "restarts": restarts,
        "replica_processes": len(watch.replicas),
        "looks": dict(watch.looks),
        "connections": {role: len(ports) for role, ports in watch.connections.items()},
        "job_seconds": job_seconds(place.server, total),
        **operated,
        "final_audit": final,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mode", choices=MODES, default="oauth")
    parser.add_argument("--period", type=float, default=60.0)
    parser.add_argument("--periods", type=float, default=4.0)
    parser.add_argument("--rate", type=float, default=25.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        identity = MODES[given.mode](folder, list(RIGHTS), given.period)
        identity.start(stack)
        identity.broker.create_topic(TOPIC, 4)
        identity.broker.create_topic(DEAD)
        for role, rights in RIGHTS.items():
            identity.broker.grant(role, rights)
        row = measure(given, Place(identity, folder))
    text = json.dumps(row, indent=1)
    print(text, flush=True)
    if given.out:
        given.out.write_text(text + "\n")
    lost = row["submitted"] - row["acknowledged"] or row["final_audit"]["exit_status"]
    wrong = lost or row["problems"] or row["restarts"] or row["replica_processes"] != 1
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
