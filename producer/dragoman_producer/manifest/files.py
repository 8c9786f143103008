"""Files that runs read, and their segments with the translations: the table `file`.

Paths are as `stored` gives them: bytes where a name is not UTF-8.
"""
# ruff: noqa: S608  what is formatted into statements here are constants

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.outputs import StoredPath, forget_files
from dragoman_producer.manifest.schema import IS_OPEN

_FILES_MISSING: Final = (
    f"SELECT f.id FROM file f WHERE {IS_OPEN} AND EXISTS (SELECT 1 FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file = f.id AND o.segment IS NOT NULL AND (? OR t.text IS NULL)) ORDER BY f.id"
)
_TRANSLATED_OCCURRENCES: Final = (
    "SELECT o.number, o.part, o.segment, o.glue, o.place, t.text, t.quality, t.notes, t.code,"
    " t.cached, t.run, t.segment FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file=? ORDER BY o.number, o.part"
)
_FIRST_UNSETTLED: Final = (
    "SELECT o.number FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file=? AND o.number >= ? AND o.segment IS NOT NULL"
    " AND (t.segment IS NULL OR t.retry = 1) ORDER BY o.number LIMIT 1"
)


class NewFile(NamedTuple):
    """A file as it begins."""

    path: StoredPath
    lang: str
    source: StoredPath
    format: str | None
    codec: int
    site: str | None


class FileRows:
    """The files of one run."""

    def __init__(self, manifest: Manifest, run: str) -> None:
        self._manifest = manifest
        self._run = run

    # --- reading ----------------------------------------------------------------------------------

    def readings(self, path: StoredPath) -> list[Any]:
        """Return id, lang, sha256, reading and codec of a path, once per language it depends on."""
        return list(
            self._manifest.rows(
                "SELECT id, lang, sha256, reading, codec FROM file WHERE path=?", (path,)
            )
        )

    def outcome(self, path: StoredPath) -> tuple[str | None, int | None, str | None]:
        """Return reason, segments and detail of a path that was read before."""
        found: tuple[str | None, int | None, str | None] = self._manifest.one(
            "SELECT reason, segments, detail FROM file WHERE path=?", (path,)
        )
        return found

    def take_over(self, files: Iterable[int], source: StoredPath) -> None:
        """Record that files that were read before are of this run, and where they are."""
        with self._manifest.writing(lazily=True) as db:
            db.executemany(
                "UPDATE file SET run=?, source=? WHERE id=?",
                ((self._run, source, file) for file in files),
            )

    def begin(self, new: NewFile) -> int:
        """Begin a file anew; return its number."""
        with self._manifest.writing(lazily=True) as db:
            return self._begin(db, new)

    def refuse(self, new: NewFile, reason: str, detail: str) -> None:
        """Record a file that is not read."""
        with self._manifest.writing(lazily=True) as db:
            file = self._begin(db, new)
            db.execute("UPDATE file SET reason=?, detail=? WHERE id=?", (reason, detail, file))

    def _begin(self, db: sqlite3.Connection, new: NewFile) -> int:
        forget_files(db, "path=? AND lang=?", (new.path, new.lang))
        made = db.execute(
            "INSERT INTO file (path, lang, source, format, codec, site, segments, run)"
            " VALUES (?,?,?,?,?,?,0,?)",
            (*new, self._run),
        )
        return int(made.lastrowid or 0)

    def end(
        self,
        file: int,
        path: StoredPath,
        reading: tuple[str, str, str, str | None, int, str | None],
        remarks: Iterable[Sequence[Any]],
    ) -> None:
        """Record what was read: lang, reading, sha256, encoding, segments and unmatched names.

        It replaces the readings of the path in the same language; without one, in all.
        """
        lang = reading[0]
        with self._manifest.writing(lazily=True) as db:
            others = "path=? AND id<>? AND (lang=? OR lang='' OR ?='')"
            forget_files(db, others, (path, file, lang, lang))
            db.execute(
                "UPDATE file SET lang=?, reading=?, sha256=?, encoding=?, segments=?, detail=?"
                " WHERE id=?",
                (*reading, file),
            )
            db.executemany(
                "INSERT INTO issue (file, target, number, place, code, detail, kind, count)"
                " VALUES (?,0,-1,?,'remark',?,?,?)",
                ((file, *each) for each in remarks),
            )

    # --- of this run ------------------------------------------------------------------------------

    def of_target(self, target: int, lang: str) -> list[int]:
        """Return the files that can be translated for a target, in their order."""
        statement = f"SELECT f.id FROM file f WHERE {IS_OPEN} ORDER BY f.id"
        rows = self._manifest.rows(statement, (self._run, lang, target))
        return [file for (file,) in rows]

    def lacking(self, target: int, lang: str, *, is_anew: bool) -> list[int]:
        """Return those with a segment that is to be sent; all with one if all is sent anew."""
        values = (self._run, lang, target, target, is_anew)
        return [file for (file,) in self._manifest.rows(_FILES_MISSING, values)]

    def read(self) -> Iterator[Any]:
        """Yield path, format, segments, whether it is refused, and unmatched names of each file."""
        return self._manifest.rows(
            "SELECT path, format, segments, reason IS NOT NULL,"
            " CASE WHEN reason IS NULL THEN detail END"
            " FROM file WHERE run=? AND format IS NOT NULL ORDER BY id",
            (self._run,),
        )

    def unread(self) -> list[tuple[StoredPath, StoredPath]]:
        """Return path and source of the files of no known format, and of configuration."""
        return list(
            self._manifest.rows(
                "SELECT path, source FROM file WHERE run=? AND format IS NULL"
                " AND reason IN ('unsupported_format', 'configuration')",
                (self._run,),
            )
        )

    def linked(self) -> list[StoredPath]:
        """Return the paths of the files whose links are checked."""
        rows = self._manifest.rows(
            "SELECT DISTINCT path FROM file WHERE run=? AND format IN ('markdown', 'mdx', 'ipynb')",
            (self._run,),
        )
        return [path for (path,) in rows]

    # --- one file ---------------------------------------------------------------------------------

    def find(self, file: int) -> Any:
        """Return path, source, format, site, sha256 and reading."""
        return self._manifest.one(
            "SELECT path, source, format, site, sha256, reading FROM file WHERE id=?", (file,)
        )

    def texts(self, file: int, target: int) -> Iterator[Any]:
        """Yield the parts of its segments in their order, with their translations."""
        return self._manifest.rows(_TRANSLATED_OCCURRENCES, (target, file))

    def unsettled(self, file: int, target: int, first: int) -> int | None:
        """Return the first segment from `first` on that may still get a translation, or None."""
        row = self._manifest.one(_FIRST_UNSETTLED, (target, file, first))
        return None if row is None else int(row[0])

    def place(self, file: int, number: int) -> str:
        """Return the place of a segment."""
        statement = "SELECT place FROM occurrence WHERE file=? AND number=?"
        return str(self._manifest.one(statement, (file, number))[0])

    def segments(self, file: int) -> int:
        """Return the number of segments."""
        return self._manifest.number("SELECT segments FROM file WHERE id=?", (file,))

    def remarks(self, file: int) -> dict[str, int]:
        """Return what was remarked, by its kind the number of times, most often first."""
        return dict(
            self._manifest.rows(
                "SELECT kind, SUM(count) FROM issue WHERE file=? AND target=0 AND kind IS NOT NULL"
                " GROUP BY kind ORDER BY 2 DESC, 1",
                (file,),
            )
        )

    def runs(self, file: int, target: int) -> list[str]:
        """Return the runs that made its translations."""
        rows = self._manifest.rows(
            "SELECT DISTINCT t.run FROM occurrence o"
            " JOIN translation t ON t.target=? AND t.segment = o.segment WHERE o.file=?",
            (target, file),
        )
        return [run for (run,) in rows]
