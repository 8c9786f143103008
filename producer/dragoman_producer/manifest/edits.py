"""Translations of a person: kept whatever the settings of a run, unless they are overwritten."""
# ruff: noqa: S608  what is formatted into statements here are constants

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.schema import EDITED

_EDITS: Final = (
    "translation t JOIN target g ON g.id = t.target JOIN segment s ON s.id = t.segment"
    f" WHERE t.code='{EDITED}' AND g.lang=?"
)
_EDIT_TABLES: Final = (
    (
        "CREATE TEMP TABLE IF NOT EXISTS edit"
        " (target, segment, source TEXT, context, max_chars, text, run)"
    ),
    "CREATE INDEX IF NOT EXISTS temp.edit_source ON edit (source)",
    "CREATE TEMP TABLE IF NOT EXISTS edited (wanted, target, segment, text, run)",
    "DELETE FROM edit",
    "DELETE FROM edited",
)
_COLLECT_EDITS: Final = (
    "INSERT INTO edit SELECT t.target, t.segment, s.text, s.context, s.max_chars, t.text,"
    f" t.run FROM {_EDITS}"
)
_MATCH_EDITS: Final = (
    "INSERT INTO edited SELECT w.segment, e.target, e.segment, e.text, e.run"
    " FROM wanted w CROSS JOIN segment s ON s.id = w.segment"
    " CROSS JOIN edit e ON e.source = s.text AND e.context IS s.context"
    " AND e.max_chars IS s.max_chars"
)
"""The glossary terms in the segment of an edit alone may differ."""
_DROP_EDITS: Final = (
    f"DELETE FROM translation WHERE code='{EDITED}'"
    " AND (target, segment) IN (SELECT target, segment FROM edited)"
)
_SETTLE_EDITS: Final = (
    "INSERT OR REPLACE INTO translation (target, segment, text, quality, code, run)"
    f" SELECT ?, wanted, text, 'ok', '{EDITED}', run FROM"
    " (SELECT wanted, text, run, MAX(e.target) FROM edited e WHERE NOT EXISTS"
    " (SELECT 1 FROM translation t WHERE t.target=? AND t.segment = e.wanted"
    f" AND t.code='{EDITED}') GROUP BY wanted)"
)


class KeptEdits:
    """The edits of earlier reviews in what a run wants: the temporary table `wanted`."""

    def __init__(self, manifest: Manifest, *, overwrite: bool) -> None:
        self._manifest = manifest
        self._overwrite = overwrite

    def collect(self, lang: str) -> None:
        """Find the edits of a language, under any settings, of the texts that are wanted."""
        db = self._manifest.db
        for statement in _EDIT_TABLES:
            db.execute(statement)
        if db.execute(_COLLECT_EDITS, (lang,)).rowcount:
            db.execute(_MATCH_EDITS)

    def settle(self, target: int) -> None:
        """Put the edits that were collected into a target; with `overwrite` remove them."""
        with self._manifest.writing() as db:
            if self._overwrite:
                db.execute(_DROP_EDITS)
            else:
                db.execute(_SETTLE_EDITS, (target, target))


def put_edits(manifest: Manifest, run: str, edits: Iterable[tuple[int, int, str]]) -> None:
    """Store a person's texts of a run: each the target, the segment and the text."""
    with manifest.writing() as db:
        db.executemany(
            "INSERT OR REPLACE INTO translation (target, segment, text, quality, code, run)"
            f" VALUES (?,?,?,'ok','{EDITED}',?)",
            ((*edit, run) for edit in edits),
        )


def agree(manifest: Manifest, lang: str, run: str) -> None:
    """Give the edits of a text under other settings the text that this review gave it.

    Otherwise a run with those settings would bring an older edit back.
    """
    with manifest.writing() as db:
        rows = db.execute(
            "SELECT s.text, s.context, s.max_chars, t.text, t.run, t.target, t.segment"
            f" FROM {_EDITS}",
            (lang,),
        ).fetchall()
        latest = {row[:3]: row[3] for row in rows if row[4] == run}
        older = [row for row in rows if row[4] != run and row[:3] in latest]
        db.executemany(
            "UPDATE translation SET text=?, run=? WHERE target=? AND segment=?",
            ((latest[row[:3]], run, *row[5:]) for row in older),
        )
