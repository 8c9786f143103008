"""Which segments an output that stands in the folder has translated: no run may take them back."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from dragoman_producer.manifest import sql
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.runs.paths import stored


class Standing:
    """What the manifest knows of the outputs that earlier runs wrote."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def lost(self, file: int, output: Path, in_source: Collection[int]) -> int:
        """Return how many segments are translated in an output, and would not be any more.

        `in_source` are the numbers of the segments of the file that a new output would leave in the
        source language. Segments that the file did not have then are not lost.
        """
        if not in_source or not os.path.lexists(output):
            return 0
        path = stored(str(output))
        row = self._manifest.one(sql.STANDING_TARGET, (file, path))
        if row is not None:
            left = self._manifest.rows(sql.LEFT_IN_SOURCE, (file, row[0]))
            return len(set(in_source) - {number for (number,) in left})
        return self._lost_of_before(file, path, in_source)

    def _lost_of_before(self, file: int, path: str | bytes, in_source: Collection[int]) -> int:
        """Count by their texts the segments of a file that has changed since."""
        if self._manifest.one(sql.STOOD, (path,)) is None:
            return 0
        db = self._manifest.db
        for statement in sql.STOOD_TABLES:
            db.execute(statement)
        db.execute(sql.FILL_STOOD_TEXTS, (path,))
        db.executemany(sql.ADD_IN_SOURCE, ((number,) for number in in_source))
        return self._manifest.number(sql.COUNT_LOST, (file,))
