"""A stand-in for the process that ends memberships: it records its requests.

Usage: `python scripted_standby.py FOLDER`. It appends its process id at its start, and then each
request, to FOLDER/requests.jsonl. If FOLDER/refuse exists, it exits after its first request.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main(folder: Path) -> None:
    record(folder, {"started": os.getpid()})
    for line in sys.stdin:
        record(folder, json.loads(line))
        if (folder / "refuse").exists():
            return


def record(folder: Path, what: object) -> None:
    with (folder / "requests.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
