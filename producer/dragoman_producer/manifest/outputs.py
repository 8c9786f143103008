"""What runs wrote: the tables `output`, `issue` and `written`, and what stands in their place.

Paths are as `stored` gives them: bytes where a name is not UTF-8.
"""
# ruff: noqa: S608  what is formatted into statements here are constants

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from dragoman_producer.manifest.database import Manifest

StoredPath = str | bytes

_IS_SOURCE: Final = "number >= 0 AND detail IS NULL AND code <> 'plural'"
"""Condition for the issue of a segment that keeps its source."""
_REMEMBER_OUTPUTS: Final = (
    "INSERT OR IGNORE INTO stood SELECT p.path, o.segment FROM output p"
    " JOIN occurrence o ON o.file = p.file WHERE p.file=? AND p.status<>'failed'"
    " AND o.segment IS NOT NULL AND o.number NOT IN (SELECT number FROM issue i"
    f" WHERE i.file = p.file AND i.target = p.target AND {_IS_SOURCE})"
)
_STOOD_TABLES: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS stood_text (text PRIMARY KEY) WITHOUT ROWID",
    "CREATE TEMP TABLE IF NOT EXISTS in_source (number INTEGER PRIMARY KEY)",
    "DELETE FROM stood_text",
    "DELETE FROM in_source",
)
_FILL_STOOD_TEXTS: Final = (
    "INSERT OR IGNORE INTO stood_text SELECT s.text FROM stood t"
    " JOIN segment s ON s.id = t.segment WHERE t.path=?"
)
_COUNT_LOST: Final = (
    "SELECT COUNT(*) FROM in_source n WHERE NOT EXISTS (SELECT 1 FROM occurrence o"
    " JOIN segment s ON s.id = o.segment WHERE o.file=? AND o.number = n.number"
    " AND s.text NOT IN (SELECT text FROM stood_text))"
)
"""Of the segments in the source language those whose parts all stood translated."""
_OF_A_FILE: Final = (("occurrence", "file"), ("issue", "file"), ("output", "file"), ("file", "id"))


class OutputRows:
    """Rows of documents: a file in a target."""

    def __init__(self, manifest: Manifest, run: str) -> None:
        self._manifest = manifest
        self._run = run

    def find(self, file: int, target: int) -> Any:
        """Return sha256, source, status, counts, path and detail of an output, None without one."""
        return self._manifest.one(
            "SELECT sha256, source, status, counts, path, detail FROM output"
            " WHERE file=? AND target=?",
            (file, target),
        )

    def keep(
        self, file: int, target: int, outcome: tuple[str, str | None, str | None, str]
    ) -> None:
        """Record that an output stays: its status, reason, detail and counts in this run."""
        with self._manifest.writing(lazily=True) as db:
            db.execute(
                "UPDATE output SET status=?, reason=?, detail=?, counts=?, run=?"
                " WHERE file=? AND target=?",
                (*outcome, self._run, file, target),
            )

    def end(
        self,
        file: int,
        target: int,
        path: StoredPath,
        outcome: tuple[str | None, str, str, str | None, str | None, str],
        issues: Iterable[Sequence[Any]],
    ) -> None:
        """Record how a document ended: sha256, source, status, reason, detail and counts.

        One that failed leaves what stands there: that is remembered.
        """
        key, is_failed = (file, target), outcome[2] == "failed"
        with self._manifest.writing(lazily=True) as db:
            if is_failed:
                db.execute(f"{_REMEMBER_OUTPUTS} AND p.target=?", key)
            else:
                db.execute("DELETE FROM stood WHERE path=?", (path,))
            db.execute("DELETE FROM issue WHERE file=? AND target=?", key)
            db.executemany(
                "INSERT INTO issue (file, target, number, place, code, detail)"
                " VALUES (?,?,?,?,?,?)",
                ((*key, *each) for each in issues),
            )
            if not is_failed:  # it stands in the place of one of other settings
                others = "DELETE FROM output WHERE file=? AND target<>? AND path=?"
                db.execute(others, (*key, path))
            put = "INSERT OR REPLACE INTO output VALUES (?,?,?,?,?,?,?,?,?,?)"
            db.execute(put, (*key, path, *outcome, self._run))

    def lost(self, file: int, path: StoredPath, in_source: Collection[int]) -> int:
        """Return how many segments are translated in what stands there, and would not be any more.

        `in_source` are the numbers of the segments of the file that a new output would leave in the
        source language. Segments that the file did not have then are not lost.
        """
        stands = "SELECT target FROM output WHERE file=? AND path=? AND status<>'failed'"
        row = self._manifest.one(stands, (file, path))
        if row is None:
            return self._lost_of_before(file, path, in_source)
        left = f"SELECT number FROM issue WHERE file=? AND target=? AND {_IS_SOURCE}"
        kept = {number for (number,) in self._manifest.rows(left, (file, row[0]))}
        return len(set(in_source) - kept)

    def _lost_of_before(self, file: int, path: StoredPath, in_source: Collection[int]) -> int:
        """Count by their texts the segments of a file that has changed since."""
        if self._manifest.one("SELECT 1 FROM stood WHERE path=? LIMIT 1", (path,)) is None:
            return 0
        db = self._manifest.db
        for statement in _STOOD_TABLES:
            db.execute(statement)
        db.execute(_FILL_STOOD_TEXTS, (path,))
        numbers = ((number,) for number in in_source)
        db.executemany("INSERT OR IGNORE INTO in_source VALUES (?)", numbers)
        return self._manifest.number(_COUNT_LOST, (file,))


def forget_files(db: sqlite3.Connection, which: str, values: tuple[object, ...]) -> None:
    """Remove files and what was found in them; their translations stay.

    What their outputs hold is remembered: the outputs still stand. `which` is a condition for rows
    of the table `file`. It runs in a transaction of the caller.
    """
    files = db.execute(f"SELECT id FROM file WHERE {which}", values).fetchall()
    db.executemany(_REMEMBER_OUTPUTS, files)
    for table, column in _OF_A_FILE:
        db.executemany(f"DELETE FROM {table} WHERE {column}=?", files)


class WrittenFiles:
    """Paths in the folder of outputs that runs wrote, each with the digests of what they wrote."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def any(self) -> bool:
        """Return whether any file is known."""
        return self._manifest.one("SELECT path FROM written") is not None

    def has(self, path: StoredPath) -> bool:
        """Return whether a run wrote this path, whatever it holds now."""
        return self._manifest.one("SELECT 1 FROM written WHERE path=? LIMIT 1", (path,)) is not None

    def holds(self, path: StoredPath, sha256: str | None) -> bool:
        """Return whether a run wrote these bytes there."""
        statement = "SELECT 1 FROM written WHERE path=? AND sha256=?"
        return self._manifest.one(statement, (path, sha256)) is not None

    def add(self, files: Iterable[tuple[StoredPath, str | None]]) -> None:
        """Record paths with their digests, on disk before this returns."""
        with self._manifest.writing() as db:
            db.executemany("INSERT OR IGNORE INTO written VALUES (?,?)", files)

    def keep_only(self, path: StoredPath, sha256: str | None) -> None:
        """Forget the other digests of a path."""
        with self._manifest.writing(lazily=True) as db:
            db.execute("DELETE FROM written WHERE path=? AND sha256<>?", (path, sha256))


def written_paths(manifest: Path) -> frozenset[StoredPath]:
    """Return the paths that the runs of another folder's manifest wrote, relative to that folder.

    Empty without a manifest, and for a file that is none. Nothing is locked or changed: what a run
    that goes on has written since its last checkpoint is missing.
    """
    if not manifest.is_file():
        return frozenset()
    try:
        uri = f"{manifest.absolute().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return frozenset(path for (path,) in db.execute("SELECT path FROM written"))
    except (sqlite3.DatabaseError, OSError):
        return frozenset()
