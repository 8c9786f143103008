"""Stands in for the process that ends memberships: records the requests it gets.

Usage: `python scripted_standby.py FOLDER`. FOLDER/requests.jsonl holds its process id at its start
and then each request; FOLDER/refuse makes it exit after the first request of each start.
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
