"""Translations of a person: kept whatever the settings of a run, unless they are overwritten."""

from __future__ import annotations

from typing import Any

from dragoman_producer.manifest import sql
from dragoman_producer.manifest.database import Manifest


class KeptEdits:
    """The edits of earlier reviews in what a run wants: the temporary table `wanted`."""

    def __init__(self, manifest: Manifest, *, overwrite: bool) -> None:
        self._manifest = manifest
        self._overwrite = overwrite

    def collect(self, lang: str) -> None:
        """Find the edits of a language, under any settings, of the texts that are wanted."""
        db = self._manifest.db
        for statement in sql.EDIT_TABLES:
            db.execute(statement)
        found = db.execute(
            sql.COLLECT_EDITS,
            (lang,),
        )
        if found.rowcount:
            db.execute(sql.MATCH_EDITS)

    def settle(self, target: int) -> None:
        """Put the edits that were collected into a target; with `overwrite` remove them."""
        with self._manifest.writing() as db:
            if self._overwrite:
                db.execute(sql.DROP_EDITS)
                return
            db.execute(
                sql.SETTLE_EDITS,
                (target, target),
            )


def agree(db: Any, lang: str, run: str) -> None:
    """Give the edits of a text under other settings the text that this review gave it.

    Otherwise a run with those settings would bring an older edit back.
    """
    rows = db.execute(
        sql.EDITS,
        (lang,),
    ).fetchall()
    latest = {row[:3]: row[3] for row in rows if row[4] == run}
    db.executemany(
        sql.CHANGE_EDIT,
        ((latest[row[:3]], run, *row[5:]) for row in rows if row[4] != run and row[:3] in latest),
    )
