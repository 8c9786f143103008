"""A supervisor over scripted replicas, as a process because it owns all of its children.

Forked, because its imports cost more than the rest of a test.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Self

from dragoman_connections.child import signals_blocked
from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.process.backoff import Backoff
from dragoman_worker.process.exits import exit_now
from dragoman_worker.process.launcher import supervise
from dragoman_worker.process.placement import Place
from dragoman_worker.settings import WorkerSettings
from support.processes import scripted_fork_server, scripted_replica
from support.processes.child_process import ChildProcess
from support.processes.fork_server import Forked, fork_server, own_session


class Supervised(ChildProcess):
    """A supervisor with dotted settings.

    "places" among them is a list with the fields of each replica's Place, "fork_server" what
    scripted_fork_server.py is to do. If FOLDER/early exists, it sends itself the signal named there
    as it starts its first replica.
    """

    def __init__(self, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(["supervisor", str(folder)], log=folder / "log", split_streams=True)
        self._options = options

    def start(self) -> Self:
        """Fork it."""
        streams = self._stream("out"), self._stream("err")
        for stream in streams:
            stream.touch()  # the child opens it later than a test may read it
        run = (str(self.log.parent), self._options, *streams)
        process = fork_server().Process(target=_supervise, args=run)
        process.start()
        self._process = Forked(process)
        return self


def _supervise(folder: str, given: dict[str, Any], out: Path, err: Path) -> NoReturn:
    own_session(out, err)
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

    def server(connection: str) -> Sequence[str]:
        return [sys.executable, str(scripted_fork_server.__file__), folder, how, connection]

    with signals_blocked():
        backoff = partial(Backoff, initial_s=0.05, max_s=0.1)
        try:
            result = supervise(
                settings,
                command,
                backoff,
                places=places,
                fork_server=server if how else None,
            )
        except SettingsError as error:
            sys.exit(f"{error}")
        sys.stdout.write(f"{result.status}: {result.message}\n")
        exit_now(result.status)
