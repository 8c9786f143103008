"""Tokens that earlier runs spent, by model and target: the table `spent`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dragoman_producer.manifest.database import Manifest

_ADD: Final = (
    "INSERT INTO spent VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
    " jobs = jobs + excluded.jobs, chars = chars + excluded.chars,"
    " prompt = prompt + excluded.prompt, completion = completion + excluded.completion,"
    " squares = squares + excluded.squares"
)
_ROWS: Final = (
    "SELECT COUNT(*) FROM (SELECT DISTINCT o.file, SUBSTR(o.place, 1, INSTR(o.place || ',', ','))"
    " FROM occurrence o JOIN file f ON f.id = o.file WHERE f.run=? AND f.reason IS NULL"
    " AND f.format IN ('parquet', 'csv', 'tsv', 'jsonl'))"
)


def add_spent(manifest: Manifest, rows: Sequence[Sequence[Any]]) -> None:
    """Add rows of the table: target, model, jobs, chars, prompt, completion and squares."""
    with manifest.writing(lazily=True) as db:
        db.executemany(_ADD, rows)


def spent_in(manifest: Manifest, lang: str) -> tuple[Any, ...] | None:
    """Return model, jobs, chars, prompt, completion and squares of the model used last."""
    found: tuple[Any, ...] | None = manifest.one(
        "SELECT s.model, SUM(s.jobs), SUM(s.chars), SUM(s.prompt), SUM(s.completion),"
        " SUM(s.squares) FROM spent s JOIN target t ON t.id = s.target WHERE t.lang=?"
        " GROUP BY s.model ORDER BY MAX(s.target) DESC LIMIT 1",
        (lang,),
    )
    return found


def count_rows(manifest: Manifest, run: str) -> int:
    """Return how many rows of tables have a text, in the files of a run."""
    return manifest.number(_ROWS, (run,))
