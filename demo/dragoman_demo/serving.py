"""Output of `dragoman-demo serve`: three addresses, and commands to try."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from dragoman_demo.services import Services


def addresses(services: Services, *, as_json: bool) -> str:
    """Return the addresses of broker, Redis and the worker's page; as one object for JSON."""
    if as_json:
        members = {
            "bootstrap_servers": services.bootstrap,
            "redis_url": services.redis_url,
            "worker_url": services.worker.url,
        }
        return json.dumps(members)
    return (
        f"Kafka   {services.bootstrap}\nRedis   {services.redis_url}\nWorker  {services.worker.url}"
    )


def commands_to_try(services: Services) -> str:
    """Return lines that can be pasted into another terminal unchanged."""
    dragoman, worker = _command("dragoman"), _command("dragoman-worker")
    return "\n".join(
        [
            "",
            "In another terminal:",
            "",
            f"  export DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS={services.bootstrap}",
            f"  export DRAGOMAN_REDIS__URL={services.redis_url}",
            f'  {dragoman} submit --from en --to de --id hello "Good morning!"',
            f"  {dragoman} result hello --wait --timeout 30",
            f"  {dragoman} status hello --json",
            f"  {dragoman} audit",
            f"  {worker} why --url {services.worker.url}",
            "",
            f"The worker's log: {services.worker.log}",
            "Ctrl-C stops everything.",
        ]
    )


def _command(name: str) -> str:
    """Return the command's name where PATH finds this installation's script, else its path."""
    script = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found).absolute() == script.absolute():
        return name
    inside = script.is_relative_to(Path.cwd())
    return os.path.relpath(script) if inside else str(script)
