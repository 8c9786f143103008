"""How is a supervisor run over scripted replicas? A script, for it owns all children it has.

Usage: `python supervised.py FOLDER OPTIONS`: dotted settings as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dragoman_schemas.connections import load_settings
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.supervisor import supervise
from dragoman_worker.supervisor.backoff import Backoff
from support import scripted_replica


def main(folder: str, options: str) -> int:
    settings = load_settings(WorkerSettings, None, {"engine.kind": "echo", **json.loads(options)})

    def command(number: int, socket: Path, tether: int) -> Sequence[str]:
        script = str(scripted_replica.__file__)
        return [sys.executable, script, str(number), str(socket), str(tether), folder]

    end = supervise(settings, command, lambda: Backoff(initial_s=0.05))
    sys.stdout.write(f"{end.status}: {end.message}\n")
    return end.status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
