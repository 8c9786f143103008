"""What `dragoman-demo serve` prints: three addresses and commands to try."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from dragoman_demo.trial import Trial


def addresses(trial: Trial, *, as_json: bool) -> str:
    """Addresses of broker, Redis and the worker's page; with `as_json` as one object."""
    if as_json:
        members = {
            "bootstrap_servers": trial.bootstrap,
            "redis_url": trial.redis_url,
            "worker_url": trial.worker.url,
        }
        return json.dumps(members)
    return f"Kafka   {trial.bootstrap}\nRedis   {trial.redis_url}\nWorker  {trial.worker.url}"


def commands_to_try(trial: Trial) -> str:
    """Lines to paste into another terminal, ready as they are."""
    dragoman, worker = _command("dragoman"), _command("dragoman-worker")
    return "\n".join(
        [
            "",
            "In another terminal:",
            "",
            f"  export DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS={trial.bootstrap}",
            f"  export DRAGOMAN_REDIS__URL={trial.redis_url}",
            f'  {dragoman} submit --from en --to de --id hello "Good morning!"',
            f"  {dragoman} result hello --wait 30",
            f"  {dragoman} status hello --json",
            f"  {dragoman} audit",
            f"  {worker} why --url {trial.worker.url}",
            "",
            f"The worker's log: {trial.worker.log}",
            "Ctrl-C stops everything.",
        ]
    )


def _command(name: str) -> str:
    """The command as this terminal finds it, or its path."""
    ours = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if found is not None and Path(found).absolute() == ours.absolute():
        return name
    inside = ours.is_relative_to(Path.cwd())
    return os.path.relpath(ours) if inside else str(ours)
