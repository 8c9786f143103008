"""The translations of a folder's last run, read from its manifest for a review."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_args

from dragoman_producer.documents.manifest import Manifest
from dragoman_producer.documents.paths import shown
from dragoman_producer.documents.planning import Target
from dragoman_producer.documents.request import Request, to_write_again
from dragoman_producer.documents.review.page import Finding, Origin, Row, Verdict
from dragoman_producer.documents.review.reasons import REASONS

EDITED: Final = "edited"
"""Value of `translation.code` for a person's text."""
_ALTERED: Final = frozenset({"tags", "read_back", "plural", "plural_lost"})
"""Codes of segments whose document does not hold the translation as it came."""
_ROWS: Final = (
    "SELECT f.path, o.file, o.number, o.place, s.id, s.text, s.context, s.max_chars, t.text,"
    " t.quality, t.code, t.cached, t.run FROM output p JOIN file f ON f.id = p.file"
    " JOIN occurrence o ON o.file = p.file JOIN segment s ON s.id = o.segment"
    " LEFT JOIN translation t ON t.target = p.target AND t.segment = s.id"
    " WHERE p.run=? AND p.target=?{} ORDER BY p.file, o.number, o.part"
)


class NoRun(Exception):
    """A folder without a run that could be reviewed."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A text of a document with its translation, as the manifest has it."""

    file: int
    segment: int
    """Of the table `segment`."""
    context: str | None
    row: Row


class LastRun:
    """The last run of a folder that ended."""

    def __init__(self, manifest: Manifest, out: Path) -> None:
        """Read what the run was. Raises NoRun."""
        self.manifest = manifest
        found = manifest.one("SELECT id, options FROM run ORDER BY began DESC LIMIT 1")
        if found is None:
            raise NoRun(f"no run of `dragoman translate --out {out}` has ended; run it to its end")
        self.id: str = found[0]
        self.request: Request = to_write_again(out, json.loads(found[1]))

    @cached_property
    def targets(self) -> list[Target]:
        """Targets of the run, by language."""
        rows = self.manifest.rows(
            "SELECT DISTINCT t.id, t.lang FROM output o JOIN target t ON t.id = o.target"
            " WHERE o.run=? ORDER BY t.lang",
            (self.id,),
        )
        return [Target(*row) for row in rows]

    def settings(self, run: str) -> str | None:
        """Return the digest of what changed the translations of a run; None if none has this id."""
        found = self.manifest.one("SELECT options FROM run WHERE id=?", (run,))
        return None if found is None else str(json.loads(found[0]).get("settings"))

    def count(self, target: Target, verdicts: Collection[Verdict]) -> int:
        """Return the number of rows of `rows`."""
        if set(verdicts) >= set(get_args(Verdict)):
            return self.manifest.number(
                "SELECT COUNT(*) FROM output p JOIN occurrence o ON o.file = p.file"
                " WHERE p.run=? AND p.target=? AND o.segment IS NOT NULL",
                (self.id, target.number),
            )
        return sum(1 for _ in self.rows(target, verdicts))

    def rows(self, target: Target, verdicts: Collection[Verdict]) -> Iterator[Row]:
        """Yield the texts with these verdicts, in the order of the documents."""
        return (each.row for each in self.stored(target) if each.row.verdict in verdicts)

    def stored(self, target: Target, document: str | None = None) -> Iterator[Stored]:
        """Yield all texts of a target, or those of the document that is shown as this path."""
        files = self._files.get(document, []) if document is not None else None
        within = "" if files is None else f" AND p.file IN ({','.join('?' * len(files))})"
        values = (self.id, target.number, *(files or ()))
        file, index, issues = -1, 0, dict[int, list[Finding]]()
        for found in self.manifest.rows(_ROWS.format(within), values):
            if found[1] != file:
                file, index, issues = found[1], 0, self._issues(found[1], target)
            yield Stored(file, found[4], found[6], self._row(found, index, issues))
            index += 1

    @cached_property
    def _files(self) -> dict[str, list[int]]:
        """Files of the run by the paths that pages show."""
        found: dict[str, list[int]] = {}
        rows = self.manifest.rows("SELECT id, path FROM file WHERE run=?", (self.id,))
        for number, path in rows:
            found.setdefault(shown(path), []).append(number)
        return found

    def _issues(self, file: int, target: Target) -> dict[int, list[Finding]]:
        found: dict[int, list[Finding]] = {}
        for number, code, detail in self.manifest.rows(
            "SELECT number, code, detail FROM issue WHERE file=? AND target=? AND number >= 0",
            (file, target.number),
        ):
            finding = Finding(code, REASONS.get(code, detail or ""))
            if finding not in (known := found.setdefault(number, [])):
                known.append(finding)
        return found

    def _row(self, found: Any, index: int, issues: dict[int, list[Finding]]) -> Row:
        path, _, number, place, _, source, _, max_chars, text, quality, code, cached, run = found
        findings = tuple(issues.get(number, ()))
        altered = any(each.gate in _ALTERED for each in findings)
        verdict: Verdict = "fail" if text is None else quality or "unchecked"
        if altered and verdict == "ok":
            verdict = "warn"
        origin: Origin = "new" if run == self.id else "reused"
        if code == EDITED:
            origin = "edited"
        elif cached:
            origin = "memory"
        return Row(
            shown(path), index, place, source, text, verdict, findings, origin, max_chars
        )  # fmt: skip
