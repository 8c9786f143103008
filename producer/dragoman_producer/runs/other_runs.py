"""Outputs that runs into another folder wrote, where that folder lies among the sources."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dragoman_producer.manifest import sql
from dragoman_producer.runs.paths import loaded


def outputs_in(manifest: Path) -> frozenset[str]:
    """Return the paths, relative to the folder of outputs, that the runs of a manifest wrote.

    Empty without a manifest, and for a file that is none. Nothing is locked or changed: what a run
    that goes on has written since its last checkpoint is missing.
    """
    if not manifest.is_file():
        return frozenset()
    try:
        place = f"{manifest.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(place, uri=True)) as db:
            return frozenset(loaded(path) for (path,) in db.execute(sql.WRITTEN_PATHS))
    except (sqlite3.DatabaseError, OSError):
        return frozenset()
