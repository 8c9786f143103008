"""What stands in a folder of outputs, whichever run wrote it: read for its review."""
# ruff: noqa: S608  what is formatted into statements here are constants and marks

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.schema import marks

_STANDING: Final = (
    "output p JOIN target g ON g.id = p.target AND g.lang=? WHERE (? IS NULL OR p.run=?)"
    " AND (p.status <> 'failed' OR NOT EXISTS (SELECT 1 FROM output q JOIN target h"
    " ON h.id = q.target AND h.lang = g.lang WHERE q.file = p.file AND q.target <> p.target"
    " AND (q.status <> 'failed' OR q.target > p.target)))"
)
"""The documents of a language: its language, then twice a run or NULL for all.

One that failed is left out if an output of other settings stands in its place.
"""
_COUNT_STANDING: Final = (
    "SELECT COUNT(*) FROM occurrence o"
    f" JOIN (SELECT p.file FROM {_STANDING}) p ON o.file = p.file"
    " WHERE o.segment IS NOT NULL"
)
_STANDING_SEGMENTS: Final = (
    "SELECT p.file, p.target, p.run, o.segment FROM occurrence o"
    f" JOIN (SELECT p.file, p.target, p.run FROM {_STANDING}) p ON o.file = p.file"
    " WHERE o.segment IS NOT NULL"
)


class StandingOutputs:
    """The documents that stand in a folder, of all runs or of one."""

    def __init__(self, manifest: Manifest, run: str | None) -> None:
        """Read from this manifest; with `run` only what that run wrote."""
        self._manifest = manifest
        self._run = run

    def langs(self) -> list[str]:
        """Return the languages of the documents, sorted."""
        rows = self._manifest.rows(
            "SELECT DISTINCT t.lang FROM output o JOIN target t ON t.id = o.target"
            " WHERE ? IS NULL OR o.run=? ORDER BY t.lang",
            (self._run, self._run),
        )
        return [lang for (lang,) in rows]

    def count(self, lang: str) -> int:
        """Return the number of texts in a language."""
        return self._manifest.number(_COUNT_STANDING, (lang, self._run, self._run))

    def texts(self, lang: str, files: Sequence[int] | None = None) -> Iterator[Any]:
        """Yield the texts in a language with their translations, of all files or of some."""
        within = "" if files is None else f" AND p.file IN ({marks(len(files))})"
        return self._manifest.rows(
            "SELECT f.path, o.file, o.number, o.place, s.id, s.text, s.context, s.max_chars,"
            " t.text, t.quality, t.code, t.cached, t.run, p.target, p.run FROM"
            f" (SELECT p.file, p.target, p.run FROM {_STANDING}{within}) p"
            " JOIN file f ON f.id = p.file"
            " JOIN occurrence o ON o.file = p.file JOIN segment s ON s.id = o.segment"
            " LEFT JOIN translation t ON t.target = p.target AND t.segment = s.id"
            " ORDER BY p.file, p.target, o.number, o.part",
            (lang, self._run, self._run, *(files or ())),
        )

    def issues(self, file: int, target: int) -> Iterator[tuple[int, str, str | None]]:
        """Yield number, code and detail of the issues of the segments of a document."""
        return self._manifest.rows(
            "SELECT number, code, detail FROM issue WHERE file=? AND target=? AND number >= 0",
            (file, target),
        )

    def files(self) -> Iterator[tuple[int, str | bytes]]:
        """Yield the number and the path of each file."""
        return self._manifest.rows("SELECT id, path FROM file")


def standing_segments(manifest: Manifest, lang: str) -> Iterator[tuple[int, int, str, int]]:
    """Yield file, target, run and segment of every text that stands in a language, of all runs."""
    return manifest.rows(_STANDING_SEGMENTS, (lang, None, None))
