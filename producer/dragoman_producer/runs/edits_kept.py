"""Translations of a person: kept whatever the settings of a run, unless they are overwritten."""

from __future__ import annotations

from typing import Any, Final

from dragoman_producer.manifest.database import Manifest

EDITED: Final = "edited"
"""Value of `translation.code` for a person's text."""
_EDITS: Final = (
    "translation t JOIN target g ON g.id = t.target JOIN segment s ON s.id = t.segment"
    f" WHERE t.code='{EDITED}' AND g.lang=?"
)
_SAME_TEXT: Final = "e.source = s.text AND e.context IS s.context AND e.max_chars IS s.max_chars"
"""Condition for the segment of an edit: the glossary terms in it alone may differ."""

_TABLES: Final = (
    (
        "CREATE TEMP TABLE IF NOT EXISTS edit"
        " (target, segment, source TEXT, context, max_chars, text, run)"
    ),
    "CREATE INDEX IF NOT EXISTS temp.edit_source ON edit (source)",
    "CREATE TEMP TABLE IF NOT EXISTS edited (wanted, target, segment, text, run)",
    "DELETE FROM edit",
    "DELETE FROM edited",
)


class KeptEdits:
    """The edits of earlier reviews in what a run wants: the temporary table `wanted`."""

    def __init__(self, manifest: Manifest, *, overwrite: bool) -> None:
        self._manifest = manifest
        self._overwrite = overwrite

    def collect(self, lang: str) -> None:
        """Find the edits of a language, under any settings, of the texts that are wanted."""
        db = self._manifest.db
        for statement in _TABLES:
            db.execute(statement)
        found = db.execute(
            "INSERT INTO edit SELECT t.target, t.segment, s.text, s.context, s.max_chars, t.text,"  # noqa: S608  constants
            f" t.run FROM {_EDITS}",
            (lang,),
        )
        if found.rowcount:
            db.execute(
                "INSERT INTO edited SELECT w.segment, e.target, e.segment, e.text, e.run"  # noqa: S608  constants
                " FROM wanted w CROSS JOIN segment s ON s.id = w.segment"
                f" CROSS JOIN edit e ON {_SAME_TEXT}"
            )

    def settle(self, target: int) -> None:
        """Put the edits that were collected into a target; with `overwrite` remove them."""
        with self._manifest.writing() as db:
            if self._overwrite:
                db.execute(
                    f"DELETE FROM translation WHERE code='{EDITED}'"  # noqa: S608  a constant
                    " AND (target, segment) IN (SELECT target, segment FROM edited)"
                )
                return
            db.execute(
                "INSERT OR REPLACE INTO translation (target, segment, text, quality, code, run)"  # noqa: S608  constants
                f" SELECT ?, wanted, text, 'ok', '{EDITED}', run FROM"
                " (SELECT wanted, text, run, MAX(e.target) FROM edited e WHERE NOT EXISTS"
                " (SELECT 1 FROM translation t WHERE t.target=? AND t.segment = e.wanted"
                f" AND t.code='{EDITED}') GROUP BY wanted)",
                (target, target),
            )


def agree(db: Any, lang: str, run: str) -> None:
    """Give the edits of a text under other settings the text that this review gave it.

    Otherwise a run with those settings would bring an older edit back.
    """
    rows = db.execute(
        "SELECT s.text, s.context, s.max_chars, t.text, t.run, t.target, t.segment"  # noqa: S608  constants
        f" FROM {_EDITS}",
        (lang,),
    ).fetchall()
    latest = {row[:3]: row[3] for row in rows if row[4] == run}
    db.executemany(
        "UPDATE translation SET text=?, run=? WHERE target=? AND segment=?",
        ((latest[row[:3]], run, *row[5:]) for row in rows if row[4] != run and row[:3] in latest),
    )
