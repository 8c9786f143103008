"""A scripted fork server: what it forks are scripted replicas.

Usage: `python scripted_fork_server.py FOLDER HOW CONNECTION`. It appends its process id to
FOLDER/fork_servers, then does what HOW says: "serve", "refuse", "exit" or "hang".
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from dragoman_worker.process import fork_server
from support.processes import scripted_replica


def main(folder: str, how: str, connection: str) -> int:
    with Path(folder, "fork_servers").open("a") as file:
        file.write(f"{os.getpid()}\n")
    supervisor = fork_server.connected_to_supervisor(int(connection))
    os.environ.update(dict(os.environ))  # moves them in memory, as imports that change any do
    if how == "hang":
        signal.pause()
    if how == "exit":
        return 3
    if how == "refuse":
        fork_server.report_unfit(supervisor, "it has threads")
        return 1
    fork_server.report_ready(supervisor)
    forked = fork_server.serve(supervisor)
    forked.set_title("scripted")
    return scripted_replica.main(*forked.argv[2:])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
