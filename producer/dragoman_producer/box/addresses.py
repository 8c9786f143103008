"""How to reach a box: what its data folder names, and what `dragoman up` prints."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def lines_for_people(reached: Mapping[str, Any]) -> list[str]:
    """Return lines that can be pasted into another terminal unchanged."""
    dragoman, worker = program("dragoman"), program("dragoman-worker")
    return [
        f"Kafka   {reached['bootstrap_servers']}",
        f"Redis   {reached['redis_url']}",
        f"Worker  {reached['worker_url']}",
        *([f"Profile {reached['profile']}"] if reached["profile"] else []),
        *_gateway(reached),
        "",
        "In another terminal:",
        "",
        f"  export DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS={reached['bootstrap_servers']}",
        f"  export DRAGOMAN_REDIS__URL={shlex.quote(reached['redis_url'])}",
        f'  {dragoman} submit --from en --to de --wait "Good morning!"',
        f"  {dragoman} translate FILE --to de --out OUT",
        f"  {worker} why --url {reached['worker_url']}",
    ]


def _gateway(reached: Mapping[str, Any]) -> list[str]:
    if not reached["gateway_url"]:
        return []
    return [
        f"Gateway {reached['gateway_url']} (DeepL's and LibreTranslate's APIs)",
        f"Key     {reached['gateway_key']}",
    ]


def promises(data: Path) -> list[str]:
    """Return what a box says at its start: what survives, and who can read."""
    return [
        "The queue is in memory: if this stops, rerun the command that submitted, and it resumes.",
        f"Results are kept in {data}, but for the last second before a crash.",
        "The broker has no password: programs of other users of this host could read the queue.",
    ]


def program(name: str) -> str:
    """Return the absolute path of a command of this installation, quoted for a shell."""
    script = Path(sys.executable).with_name(name)
    found = script if script.exists() else shutil.which(name) or name
    return shlex.quote(str(found))
