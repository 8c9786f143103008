"""What a run wants and lacks, and the jobs for it: the tables `job` and `refresh`."""
# ruff: noqa: S608  what is formatted into statements here are constants and marks

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.schema import EDITED, IS_OPEN, marks

_WANT_SEGMENTS: Final = (
    "INSERT OR IGNORE INTO wanted SELECT o.segment FROM occurrence o"
    f" JOIN file f ON f.id = o.file WHERE o.segment IS NOT NULL AND {IS_OPEN}"
)
_COUNT_OCCURRENCES: Final = (
    "SELECT COUNT(*) FROM occurrence o JOIN file f ON f.id = o.file"
    f" WHERE o.segment IS NOT NULL AND {IS_OPEN}"
)
_STALE: Final = f"code IS NOT '{EDITED}' AND run NOT IN (SELECT run FROM refresh WHERE target=?)"
"""Condition for a machine's translation from before the refresh that is under way."""
_HELD: Final = (
    f"SELECT segment FROM translation WHERE target=? AND text IS NOT NULL AND NOT (? AND {_STALE})"
    f" AND NOT (? AND code IS '{EDITED}') UNION SELECT wanted FROM edited WHERE NOT ?"
)
"""Segments that need nothing; a dry run has removed nothing."""
_COUNT_MISSING: Final = (
    "SELECT COUNT(*), SUM(LENGTH(s.text)) FROM wanted w JOIN segment s "
    f" ON s.id = w.segment WHERE w.segment NOT IN ({_HELD})"
)
_MISSING: Final = (
    "wanted w JOIN segment s ON s.id = w.segment"
    " LEFT JOIN translation t ON t.target=? AND t.segment = w.segment WHERE t.segment IS NULL"
)
_MISSING_SEGMENTS: Final = (
    f"SELECT s.id, s.text, s.context, s.max_chars FROM {_MISSING}"
    " AND w.segment NOT IN planned ORDER BY w.segment"
)
_OPEN_JOBS: Final = (
    "SELECT id, document, number, segments FROM job WHERE target=? AND ended=0"
    " AND (document, number) > (?,?) ORDER BY document, number LIMIT 500"
)
_END_JOB: Final = "UPDATE job SET ended=1 WHERE id=?"
_END_JOBS_OF_TARGET: Final = "UPDATE job SET ended=1 WHERE target=?"
_PUT_TRANSLATION: Final = (
    "INSERT INTO translation (target, segment, text, quality, notes, code, retry, cached, run)"
    " VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET text=excluded.text,"
    " quality=excluded.quality, notes=excluded.notes, code=excluded.code, retry=excluded.retry,"
    f" cached=excluded.cached, run=excluded.run WHERE code IS NOT '{EDITED}'"
)
"""A person may have edited the segment of a job that an earlier run left in flight."""


class JobRows:
    """The wanted segments of one run in one target after the other, and their jobs."""

    def __init__(self, manifest: Manifest, run: str) -> None:
        self._manifest = manifest
        self._run = run

    # --- what is wanted and missing ---------------------------------------------------------------

    def want(self, target: int, lang: str) -> None:
        """Fill the temporary table `wanted` with the segments of the files that are open."""
        db = self._manifest.db
        db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (segment INTEGER PRIMARY KEY)")
        db.execute("DELETE FROM wanted")
        db.execute(_WANT_SEGMENTS, (self._run, lang, target))

    def counts(
        self, target: int, lang: str, *, refreshes: bool, overwrite: bool
    ) -> tuple[int, int, int, int]:
        """Return the counts of occurrences, of wanted and of missing segments, and of characters.

        The characters are those of the missing segments.
        """
        segments = self._manifest.number(_COUNT_OCCURRENCES, (self._run, lang, target))
        unique = self._manifest.number("SELECT COUNT(*) FROM wanted")
        values = (target, refreshes, target, overwrite, overwrite)
        missing, characters = self._manifest.one(_COUNT_MISSING, values)
        return segments, unique, missing, characters or 0

    def forget(self, target: int, *, refreshes: bool) -> None:
        """Remove failures of earlier runs; with `refreshes` also what is to be translated anew."""
        began = self._manifest.number("SELECT COUNT(*) FROM refresh WHERE target=?", (target,))
        with self._manifest.writing() as db:
            db.execute("DELETE FROM translation WHERE target=? AND text IS NULL", (target,))
            if bool(began) is not refreshes:  # their bytes differ in the field `memory`
                db.execute(_END_JOBS_OF_TARGET, (target,))
            if refreshes:
                stale = f"target=? AND segment IN wanted AND {_STALE}"
                db.execute(f"DELETE FROM translation WHERE {stale}", (target, target))
                db.execute("INSERT INTO refresh VALUES (?,?)", (target, self._run))
            else:
                db.execute("DELETE FROM refresh WHERE target=?", (target,))

    def refreshed(self, targets: Iterable[int]) -> None:
        """Record that nothing is left to refresh in these targets."""
        with self._manifest.writing() as db:
            values = ((target,) for target in targets)
            db.executemany("DELETE FROM refresh WHERE target=?", values)

    def missing(self, target: int) -> Iterator[tuple[Any, ...]]:
        """Yield id, text, context and limit of the segments that no translation and no job has."""
        return self._manifest.rows(_MISSING_SEGMENTS, (target,))

    def segments(self, ids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """Yield id, text, context and limit of these segments, by their ids."""
        return self._manifest.rows(
            "SELECT id, text, context, max_chars FROM segment"
            f" WHERE id IN ({marks(len(ids))}) ORDER BY id",
            ids,
        )

    # --- jobs -------------------------------------------------------------------------------------

    def begin(self, target: int) -> None:
        """Keep the open jobs of earlier runs whose segments are missing; end the others.

        It runs in a transaction of the caller.
        """
        db = self._manifest.db
        db.execute("CREATE TEMP TABLE IF NOT EXISTS planned (segment INTEGER PRIMARY KEY)")
        db.execute("DELETE FROM planned")
        db.executemany("INSERT OR IGNORE INTO planned VALUES (?)", self._open_segments(target))

    def begin_again(self, target: int) -> None:
        """End all jobs, and forget the failures that another attempt may mend.

        It runs in a transaction of the caller.
        """
        db = self._manifest.db
        db.execute("DELETE FROM translation WHERE target=? AND retry=1", (target,))
        db.execute(_END_JOBS_OF_TARGET, (target,))
        db.execute("DELETE FROM planned")

    def add(self, target: int, document: str, number: int, segments: Iterable[int]) -> None:
        """Add a job, in a transaction of the caller."""
        ids = json.dumps(sorted(segments), separators=(",", ":"))
        self._manifest.db.execute(
            "INSERT INTO job (id, target, document, number, segments) VALUES (?,?,?,?,?)",
            (f"{document}.{number}", target, document, number, ids),
        )

    def open(self, target: int) -> Iterator[tuple[str, str, int, tuple[int, ...]]]:
        """Yield id, document, number and segments of the open jobs, wave by wave.

        They are read some at a time: jobs end meanwhile, and all of them would be 200 MB.
        """
        last: tuple[str, int] = ("", -1)
        while rows := list(self._manifest.rows(_OPEN_JOBS, (target, *last))):
            for row in rows:
                yield (*row[:3], tuple(json.loads(row[3])))
            last = (rows[-1][1], rows[-1][2])

    def total(self, target: int, document: str) -> int:
        """Return the number of jobs of a document."""
        statement = "SELECT MAX(number) + 1 FROM job WHERE target=? AND document=?"
        return self._manifest.number(statement, (target, document))

    def open_documents(self, target: int) -> list[str]:
        """Return the documents that have open jobs."""
        statement = "SELECT DISTINCT document FROM job WHERE target=? AND ended=0"
        return [document for (document,) in self._manifest.rows(statement, (target,))]

    def end_document(self, document: str) -> None:
        """End the jobs of a document."""
        with self._manifest.writing() as db:
            db.execute("UPDATE job SET ended=1 WHERE document=?", (document,))

    def end(self, translations: Iterable[Sequence[Any]], jobs: Iterable[Sequence[str]]) -> None:
        """Store rows of the table `translation`, and end the jobs with these ids."""
        with self._manifest.writing() as db:
            db.executemany(_PUT_TRANSLATION, translations)
            db.executemany(_END_JOB, jobs)

    def _open_segments(self, target: int) -> Iterator[tuple[int]]:
        """Yield the segments of open jobs of earlier runs; end those that nobody needs."""
        for job_id, _, _, ids in self.open(target):
            statement = f"SELECT COUNT(*) FROM {_MISSING} AND w.segment IN ({marks(len(ids))})"
            if self._manifest.number(statement, (target, *ids)):
                yield from ((each,) for each in ids)
            else:
                self._manifest.db.execute(_END_JOB, (job_id,))
