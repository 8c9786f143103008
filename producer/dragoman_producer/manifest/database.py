"""The manifest of a folder of translations: one SQLite file, `.dragoman/manifest.db`.

It holds what was read, what is translated and what was written, so that a run can be stopped at
any point and the next one pays only for what is missing. Tables: docs/reference/manifest.md.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from dragoman_producer.manifest.schema import NoManifest, migrate

_CHUNK: Final = 2_000
_LAZY_S: Final = 0.5
"""What a crash may lose of lazy writes. Each commit writes the changed pages of the digests' index
to the log, about one per new segment: commits per 500 rows were a third of a run's CPU time."""
_LOG_PAGES: Final = 8_000
"""Pages of the write-ahead log, 32 MB, after which they are written to the database."""
_ADD_SEGMENT: Final = (
    "INSERT OR IGNORE INTO segment (digest, text, context, max_chars) VALUES (?,?,?,?)"
)
_ADD_OCCURRENCE: Final = (
    "INSERT INTO occurrence (file, number, part, segment, glue, place)"
    " VALUES (?,?,?,(SELECT id FROM segment WHERE digest=?),?,?)"
)


class FolderBusy(Exception):
    """Another run writes to the same folder."""


class NoFolder(Exception):
    """The folder of the outputs cannot be made or written; the message says why."""


class NoSpace(Exception):
    """The disk of the manifest is full."""


class Manifest:
    """One open manifest. A process that holds it keeps every other one out."""

    def __init__(self, db: sqlite3.Connection, replaced: Path | None = None) -> None:
        self.db = db
        self.replaced = replaced
        """Where an unreadable manifest was moved to."""
        self._committed_at = 0.0

    @classmethod
    def open(cls, path: Path) -> Manifest:
        """Open or create the manifest. Raises FolderBusy, NoFolder, NoSpace and OSError.

        An older manifest is migrated; a file that is none, or of a later version, is moved aside.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NoFolder(error.strerror or str(error)) from error
        try:
            return cls(_opened(path))
        except NoManifest:
            aside = _aside(path)
            path.replace(aside)
            for more in ("-wal", "-shm"):
                path.with_name(path.name + more).unlink(missing_ok=True)
            return cls(_opened(path), aside)

    def close(self) -> None:
        """Keep what is written and let others in."""
        with suppress(sqlite3.Error):
            self.db.commit()
        self.db.close()

    @contextmanager
    def writing(self, *, lazily: bool = False) -> Iterator[sqlite3.Connection]:
        """Write all or nothing, without waiting for the disk. Raises NoSpace.

        A crash may lose what was written lazily in the last half second, whole writes of it.
        """
        try:
            yield self.db
            if not lazily or time.monotonic() - self._committed_at >= _LAZY_S:
                self.db.commit()
                self._committed_at = time.monotonic()
        except sqlite3.OperationalError as error:
            self.db.rollback()
            raise _told(error) from error
        except BaseException:
            self.db.rollback()
            raise

    def rows(self, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query, read in chunks."""
        cursor = self.db.execute(query, values)
        while chunk := cursor.fetchmany(_CHUNK):
            yield from chunk

    def one(self, query: str, values: Sequence[Any] = ()) -> Any:
        """Return the first row, None if there is none."""
        return self.db.execute(query, values).fetchone()

    def number(self, query: str, values: Sequence[Any] = ()) -> int:
        """Return the only value of the only row as an integer; 0 for NULL."""
        return int(self.one(query, values)[0] or 0)

    def target(self, lang: str, settings: str) -> int:
        """Return the number of a target: a language and the digest of its settings."""
        with self.writing() as db:
            db.execute(
                "INSERT OR IGNORE INTO target (lang, settings) VALUES (?,?)", (lang, settings)
            )
        return self.number("SELECT id FROM target WHERE lang=? AND settings=?", (lang, settings))

    def add_segments(self, file: int, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add occurrences: (number, part, digest, text, context, max_chars, glue, place).

        A digest of None is a segment that is not translated.
        """
        kept = list(rows)
        with self.writing(lazily=True) as db:
            db.executemany(
                _ADD_SEGMENT,
                (row[2:6] for row in kept if row[2] is not None),
            )
            db.executemany(
                _ADD_OCCURRENCE,
                ((file, *row[:3], *row[6:]) for row in kept),
            )


def _opened(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, timeout=0.5, cached_statements=64)
    except sqlite3.DatabaseError as error:
        raise _told(error) from error
    try:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA cache_size=-32000")
        db.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        db.execute("PRAGMA temp_store=FILE")
        with db:
            db.execute("BEGIN IMMEDIATE")
            migrate(db)
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise _told(error) from error
        raise
    return db


def _told(error: sqlite3.DatabaseError) -> Exception:
    """Return the error of this module for one of SQLite."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return FolderBusy("another run writes to this folder; wait for it, or give another --out")
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return NoSpace("the manifest cannot be written: the disk is full, read-only or fails")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
        return NoManifest()
    return OSError(errno.EIO, f"it cannot be opened: {error}", "manifest.db")


def _aside(path: Path) -> Path:
    number = 1
    while (found := path.with_name(f"{path.name}.unreadable-{number}")).exists():
        number += 1
    return found
