"""A scripted replica: a stand-in for a worker under a supervisor.

Usage: `python scripted_replica.py NUMBER SOCKET PARENT_LINK FOLDER`. FOLDER/plan.json maps numbers
to a list of steps, one per start (the last one repeats). Events are appended to
FOLDER/events.jsonl. A step may hold: `say` [kind, message], `ready` (default true), `exit` (status,
at once), `leave` (a grandchild in its own session), `term` ("exit", "ignore" or seconds to take),
`livez`, `startupz` (a status), `deaf_once_ready`, `load_s` (before it is ready). Once ready:
`settles`, `opened` (a record that it reports as opened), `opens` (records that it is opening when
it kills itself).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman_worker.process import fork_server
from dragoman_worker.process.journal import JournalEntry, Slots, Stage, journal_file, table_file
from dragoman_worker.process.parent_link import ParentLink
from dragoman_worker.process.signals import supervised_signals


class Scripted:
    """One start of one replica."""

    def __init__(self, number: str, parent_link: ParentLink, folder: Path) -> None:
        self._number = number
        self._parent_link = parent_link
        self._folder = folder
        self._step: dict[str, Any] = self._own_step()
        self._over = asyncio.Event()

    def _own_step(self) -> dict[str, Any]:
        plan: dict[str, list[dict[str, Any]]] = json.loads((self._folder / "plan.json").read_text())
        steps = plan.get(self._number, [{}])
        lines = self._folder.joinpath("events.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        own = [row for row in rows if row["number"] == self._number]
        starts = len([row for row in own if row["event"] == "start"])
        return steps[min(starts, len(steps) - 1)]

    def log(self, event: str, **more: Any) -> None:
        row = {"number": self._number, "event": event, "pid": os.getpid(), "at": time.monotonic()}
        with (self._folder / "events.jsonl").open("a") as file:
            file.write(json.dumps(row | more) + "\n")

    async def live(self, place: str) -> int:
        step = self._step
        self.log(
            "start",
            gpus=os.environ.get("CUDA_VISIBLE_DEVICES"),
            forked=fork_server.forked(),
            parent=os.getppid(),
            group=os.getpgrp(),
            random=random.random(),
            title=_title(),
        )
        with supervised_signals(self._on_term, self._on_abort):
            return await self._follow(step, place)

    async def _follow(self, step: dict[str, Any], place: str) -> int:
        if step.get("leave"):
            child = subprocess.Popen(["sleep", "300"], start_new_session=True)  # noqa: ASYNC220
            self.log("left", child=child.pid)
        if "say" in step:
            self._parent_link.failed(*step["say"])
        if "exit" in step:
            return int(step["exit"])
        async with await asyncio.start_unix_server(self._answer, place):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), step.get("load_s", 0))
                return 0
            if step.get("ready", True):
                at = time.monotonic()
                self._parent_link.ready()  # first: a test that sees the event may kill this process
                self.log("ready", at=at)
            self._work(Path(place))
            if step.get("deaf_once_ready"):
                time.sleep(300)  # noqa: ASYNC251  the test needs a blocked loop
            await self._over.wait()
        return 0

    def _work(self, place: Path) -> None:
        step = self._step
        if step.get("settles"):
            self._parent_link.settled()
        if "opened" in step:
            self._parent_link.opened(step["opened"])
        if "opens" in step:
            table = Slots.open(table_file(place.parent)).entries()
            self.log("table", crashes={entry.name: entry.crashes for entry in table})
            journal = Slots.create(journal_file(place.parent, int(self._number)), 8)
            for slot, name in enumerate(step["opens"]):
                journal.put(slot, JournalEntry(name, Stage.PLANNING))
            os.kill(os.getpid(), signal.SIGKILL)

    def _on_term(self) -> None:
        self.log("term")
        how = self._step.get("term", "exit")
        if how == "exit":
            self._over.set()
        elif how != "ignore":
            asyncio.get_running_loop().call_later(how, self._over.set)

    def _on_abort(self) -> None:
        self.log("abort")
        if self._step.get("term") != "ignore":
            self._over.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        status = self._step.get(path.removeprefix("/"), 200)
        body = self._metrics() if path == "/metrics" else "not yet: the poll loop\n"
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write((head + body).encode())
        await writer.drain()
        writer.close()

    def _metrics(self) -> str:
        return (
            "# HELP dragoman_jobs_total Jobs.\n# TYPE dragoman_jobs_total counter\n"
            f'dragoman_jobs_total{{replica="{self._number}"}} 3.0\n'
            "# HELP dragoman_ready Ready.\n# TYPE dragoman_ready gauge\n"
            f'dragoman_ready{{replica="{self._number}"}} 1.0\n'
        )


def _title() -> str:
    return Path("/proc/self/cmdline").read_text().strip("\0")


def main(number: str, place: str, parent_link: str, folder: str) -> int:
    """Run one start of one replica and return its exit status."""
    link = ParentLink.hold(int(parent_link))
    return asyncio.run(Scripted(number, link, Path(folder)).live(place))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
