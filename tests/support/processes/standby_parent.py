"""A process that forks a standby process, as a replica does, and lets it run a function.

Usage: `python standby_parent.py FOLDER use|wait`. With "use" it starts two processes and prints
what they were; with "wait" it prints the standby process' id and waits.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

from dragoman_worker.engines.vllm.patches import fork
from dragoman_worker.process.parent_link import ParentLink


def child(file: str) -> None:
    """Write down what the process is, and exit with status 3."""
    own = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "session": os.getsid(0),
        "variable": os.environ.get("SET_LATER"),
        "method": os.environ.get("VLLM_WORKER_MULTIPROC_METHOD"),
        "threads": threading.active_count(),
    }
    Path(file).write_text(json.dumps(own))
    raise SystemExit(3)


def main(folder: str, what: str) -> None:
    ours, _ = socket.socketpair()
    fork.prepare(ParentLink(ours))
    [waiting] = fork._ready
    report: dict[str, object] = {"standby": waiting.pid, "own": os.getpid()}
    if what == "use":
        threading.Thread(target=signal.pause, daemon=True).start()
        os.environ["SET_LATER"] = "yes"
        report["started"] = [started(Path(folder, name)) for name in ("first", "second")]
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()
    if what == "wait":
        signal.pause()


def started(file: Path) -> dict[str, object]:
    """Start a process as vLLM does and return what it was."""
    module = SimpleNamespace(get_mp_context=lambda: None)
    with fork.used(module):
        context = module.get_mp_context()
        if context is None:  # vLLM's own
            return {}
        process = context.Process(target=child, args=(str(file),))
        process.start()
    process.join()
    return {"exitcode": process.exitcode, **json.loads(file.read_text())}


if __name__ == "__main__":
    from support.processes import standby_parent  # so that the function has an importable name

    standby_parent.main(*sys.argv[1:])
