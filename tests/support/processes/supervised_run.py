"""A supervisor over scripted replicas, as tests start, signal and observe it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from support.processes.supervised import Supervised
from support.processes.waiting import wait_until
from support.services.ports import free_port

SOON_S = 30.0  # a start takes less than a second on a quiet machine


class Run:
    """A supervisor over scripted replicas: their plans, and the events that they recorded."""

    def __init__(self, folder: Path, plan: dict[str, Any], options: dict[str, Any]) -> None:
        self.port = free_port()
        self.folder = folder
        (folder / "plan.json").write_text(json.dumps(plan))
        (folder / "events.jsonl").touch()
        settings = {"http.port": self.port, "places": [{}] * max(1, len(plan)), **options}
        self.process = Supervised(folder, settings)

    def events(self, event: str = "", number: int = 0) -> list[dict[str, Any]]:
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        return [row for row in rows if row["event"] == event and row["number"] == str(number)]

    def seen(self, event: str, count: int = 1, number: int = 0) -> list[dict[str, Any]]:
        return self.process.wait_for(
            lambda: found if len(found := self.events(event, number)) >= count else [],
            timeout_s=SOON_S,
            what=f"{event} {count} times",
        )

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metrics(self, up: Mapping[int, int]) -> str:
        """Wait until a scrape finds these replicas up or not, and return its page."""
        lines = {f'dragoman_replica_up{{replica="{each}"}} {up[each]:.1f}' for each in up}

        def page() -> str:
            text = self.get("/metrics")[1]
            return text if lines <= set(text.splitlines()) else ""

        return self.process.wait_for(page, timeout_s=SOON_S, what=f"replicas {up}")

    def both_ready(self) -> None:
        self.seen("ready", number=0)
        self.seen("ready", number=1)

    def is_ready(self) -> None:
        self.process.wait_for(
            lambda: self.get("/readyz")[0] == 200, timeout_s=SOON_S, what="/readyz"
        )

    def exits(self, timeout_s: float = SOON_S) -> int:
        return self.process.wait(timeout_s=timeout_s)


def gone(*pids: int, within_s: float) -> bool:
    def none_left() -> bool:
        return not any(lives(pid) for pid in pids)

    wait_until(none_left, timeout_s=within_s, what=f"{pids} gone")
    return True


def lives(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
