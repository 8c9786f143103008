"""How is a trial that stays up told to a person? Two addresses and three commands to try."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from dragoman_demo.trial import Trial


def addresses(trial: Trial, *, as_json: bool) -> str:
    """Where broker and Redis listen; with `as_json` as one object."""
    if as_json:
        members = {"bootstrap_servers": trial.bootstrap, "redis_url": trial.redis_url}
        return json.dumps(members)
    return f"Kafka  {trial.bootstrap}\nRedis  {trial.redis_url}"


def commands_to_try(trial: Trial) -> str:
    """Lines to paste into another terminal, ready as they are."""
    dragoman = _dragoman()
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
            "",
            f"The worker's log: {trial.worker.log}",
            "Ctrl-C stops everything.",
        ]
    )


def _dragoman() -> str:
    """The command as this terminal finds it, or its path."""
    ours = Path(sys.executable).with_name("dragoman")
    found = shutil.which("dragoman")
    if found is not None and Path(found).absolute() == ours.absolute():
        return "dragoman"
    inside = ours.is_relative_to(Path.cwd())
    return os.path.relpath(ours) if inside else str(ours)
