"""Runs and what they did, for their reports: the table `run`."""
# ruff: noqa: S608  what is formatted into statements here are constants

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from dragoman_producer.manifest.database import Manifest

_SKIPPED: Final = "format IS NULL AND reason IN ('unsupported_format', 'configuration', 'outside')"
"""Condition for files that are not to be read: of no known format, configuration, and links."""
_DOCUMENTS: Final = (
    "SELECT o.file, o.target, f.path, t.lang, f.format, f.site, f.encoding, o.status,"
    " o.reason, o.detail, o.path, o.sha256, o.counts FROM output o JOIN file f ON f.id = o.file"
    " JOIN target t ON t.id = o.target WHERE o.run=? ORDER BY o.target, o.file"
)
_LINKED_DOCUMENTS: Final = (
    "SELECT f.path, f.source, f.format, f.site, o.path FROM output o JOIN file f ON f.id = o.file"
    " WHERE o.run=? AND o.target=? AND o.status <> 'failed'"
    " AND f.format IN ('markdown', 'mdx', 'ipynb') ORDER BY o.file"
)


class RunRows:
    """What one run did."""

    def __init__(self, manifest: Manifest, run: str) -> None:
        self._manifest = manifest
        self._run = run

    def put(self, began: float, segments: int, seconds: float, options: str) -> None:
        """Record the run as it is now."""
        with self._manifest.writing() as db:
            row = (self._run, began, segments, seconds, options)
            db.execute("INSERT OR REPLACE INTO run VALUES (?,?,?,?,?)", row)

    def statuses(self) -> dict[str, int]:
        """Return the number of documents by status."""
        statement = "SELECT status, COUNT(*) FROM output WHERE run=? GROUP BY status"
        return dict(self._manifest.rows(statement, (self._run,)))

    def count_refused(self) -> int:
        """Return the number of files that could not be read."""
        return self._manifest.number(
            f"SELECT COUNT(*) FROM file WHERE run=? AND reason IS NOT NULL AND NOT ({_SKIPPED})",
            (self._run,),
        )

    def count_outputs(self, reason: str) -> int:
        """Return the number of documents with this reason."""
        statement = "SELECT COUNT(*) FROM output WHERE run=? AND reason=?"
        return self._manifest.number(statement, (self._run, reason))

    def sums(self, target: int, counts: Iterable[str]) -> tuple[int | None, ...]:
        """Return the documents of a target, those not failed, and the sums of their counts."""
        sums = ", ".join(f"SUM(counts ->> '{name}')" for name in counts)
        found: tuple[int | None, ...] = self._manifest.one(
            f"SELECT COUNT(*), SUM(status <> 'failed'), {sums} FROM output"
            " WHERE run=? AND target=?",
            (self._run, target),
        )
        return found

    def unique(self, target: int) -> tuple[int, int]:
        """Return how many segments of a target the run translated, and took from the memory."""
        new, cached = self._manifest.one(
            "SELECT SUM(NOT cached), SUM(cached) FROM translation"
            " WHERE target=? AND run=? AND text IS NOT NULL",
            (target, self._run),
        )
        return int(new or 0), int(cached or 0)

    def refused(self) -> Iterator[Any]:
        """Yield path, format, site, reason, detail and whether it is skipped of files not read."""
        return self._manifest.rows(
            f"SELECT path, format, site, reason, detail, {_SKIPPED} FROM file"
            " WHERE run=? AND reason IS NOT NULL ORDER BY path",
            (self._run,),
        )

    def documents(self) -> Iterator[Any]:
        """Yield a row per document."""
        return self._manifest.rows(_DOCUMENTS, (self._run,))

    def linked(self, target: int) -> Iterator[Any]:
        """Yield path, source, format, site and output of documents whose links are checked."""
        return self._manifest.rows(_LINKED_DOCUMENTS, (self._run, target))

    def issues(self, file: int, target: int) -> Iterator[Any]:
        """Yield number, place, code, detail, kind and count of the issues of a document."""
        return self._manifest.rows(
            "SELECT number, place, code, detail, kind, count FROM issue"
            " WHERE file=? AND target IN (0,?) ORDER BY number",
            (file, target),
        )

    def targets(self) -> list[tuple[int, str]]:
        """Return number and language of the targets, by language."""
        return list(
            self._manifest.rows(
                "SELECT DISTINCT t.id, t.lang FROM output o JOIN target t ON t.id = o.target"
                " WHERE o.run=? ORDER BY t.lang",
                (self._run,),
            )
        )

    def options(self) -> str | None:
        """Return the options, None if no run of this id has ended."""
        found = self._manifest.one("SELECT options FROM run WHERE id=?", (self._run,))
        return None if found is None else str(found[0])


def last_run(manifest: Manifest) -> str | None:
    """Return the id of the last run, None if none has ended."""
    found = manifest.one("SELECT id FROM run ORDER BY began DESC LIMIT 1")
    return None if found is None else str(found[0])


def seconds_for(manifest: Manifest, missing: int) -> float | None:
    """Return the seconds for so many segments at the rate of all runs, None without any."""
    statement = "SELECT SUM(segments), SUM(seconds) FROM run WHERE segments > 0"
    segments, seconds = manifest.one(statement)
    return missing * seconds / segments if segments else None


def target_langs(manifest: Manifest) -> list[str]:
    """Return the languages of all targets."""
    return [lang for (lang,) in manifest.rows("SELECT DISTINCT lang FROM target")]
