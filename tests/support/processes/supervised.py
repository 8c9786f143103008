"""A supervisor over scripted replicas, as a script because it owns all of its children.

Usage: `python supervised.py FOLDER OPTIONS`, with dotted settings as JSON; "places" among them is a
list with the fields of each replica's Place, "fork_server" what scripted_fork_server.py is to do.
If FOLDER/early exists, it sends itself the signal named there as it starts its first replica.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.exits import exit_now
from dragoman_worker.process.launcher import supervise
from dragoman_worker.process.placement import Place
from dragoman_worker.process.signals import stop_signals_blocked
from dragoman_worker.settings import WorkerSettings
from support.processes import scripted_fork_server, scripted_replica, scripted_standby


def main(folder: str, options: str) -> NoReturn:
    given = json.loads(options)
    places = [
        Place(**{**fields, "gpus": tuple(fields.get("gpus", ()))}) for fields in given.pop("places")
    ]
    how = given.pop("fork_server", None)
    settings = load_settings(WorkerSettings, None, {"engine.kind": "echo", **given})

    def command(number: int, socket: Path, parent_link: str) -> Sequence[str]:
        if Path(folder, "early").exists():  # before the supervisor has any handler
            os.kill(os.getpid(), getattr(signal, Path(folder, "early").read_text()))
        script = str(scripted_replica.__file__)
        return [sys.executable, script, str(number), str(socket), parent_link, folder]

    def fork_server(connection: str) -> Sequence[str]:
        return [sys.executable, str(scripted_fork_server.__file__), folder, how, connection]

    with stop_signals_blocked():
        standby = [sys.executable, str(scripted_standby.__file__), folder]
        backoff = partial(Backoff, initial_s=0.05, max_s=1.0)
        try:
            result = supervise(
                settings,
                command,
                backoff,
                places=places,
                end_memberships=standby,
                fork_server=fork_server if how else None,
            )
        except SettingsError as error:
            sys.exit(f"{error}")
        sys.stdout.write(f"{result.status}: {result.message}\n")
        exit_now(result.status)


if __name__ == "__main__":
    main(*sys.argv[1:])
