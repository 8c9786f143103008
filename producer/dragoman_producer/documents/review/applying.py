"""Edits of a review into the outputs of a folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman_producer.documents.codecs.inline_codes import same_tags
from dragoman_producer.documents.events import DocumentEnded, Event
from dragoman_producer.documents.extracting import Children
from dragoman_producer.documents.manifest import Manifest
from dragoman_producer.documents.planning import Target
from dragoman_producer.documents.report import Report
from dragoman_producer.documents.review.edits import BadEdits, Edit, Edits
from dragoman_producer.documents.review.page import digest
from dragoman_producer.documents.review.rows import EDITED, LastRun, Stored
from dragoman_producer.documents.selecting import REPORT
from dragoman_producer.documents.writing import Writer
from dragoman_schemas.approved import ApprovedTranslation


@dataclass(frozen=True, slots=True)
class Refused:
    """An edit that was not applied, without its text."""

    document: str
    segment: int
    why: str


@dataclass(slots=True)
class Applied:
    """What became of the edits."""

    changed: int = 0
    approved: int = 0
    """Translations that a person approved as they are."""
    unchanged: int = 0
    refused: list[Refused] = field(default_factory=list)
    unwritten: list[DocumentEnded] = field(default_factory=list)
    """Documents that hold an edited text and could not be written again."""
    entries: list[ApprovedTranslation] = field(default_factory=list)
    """Of all changed and approved texts, for the approved memory."""


class Applying:
    """Applies edits to the last run of a folder, and writes its documents again."""

    def __init__(self, manifest: Manifest, out: Path) -> None:
        """Read what the run was. Raises NoRun."""
        self._manifest = manifest
        self._out = out
        self._run = LastRun(manifest, out)
        self._id = secrets.token_hex(4)
        """In place of the id of a run, so that outputs are seen to lack the edits."""
        self.applied = Applied()

    def target(self, edits: Edits) -> Target:
        """Return the target that edits are for. Raises BadEdits."""
        self._check_run(edits.run)
        for target in self._run.targets:
            if target.lang == edits.target_lang:
                return target
        known = ", ".join(target.lang for target in self._run.targets) or "none"
        raise BadEdits(
            f"it is for {edits.target_lang}, the last run translated into: {known}; "
            "give edits of a review of that run"
        )

    def _check_run(self, run: str) -> None:
        """Refuse edits of another folder, and of a run with other settings. Raises BadEdits.

        An editor may drop the id of the run; the digests of the sources are compared in any case.
        """
        if not run or run == self._run.id:
            return
        settings = self._run.settings(run)
        if settings is None:
            raise BadEdits(
                f"run {run} is not one of this folder; give the folder that was reviewed"
            )
        if settings != self._run.settings(self._run.id):
            raise BadEdits(
                f"it is of run {run}, and the last run had other options that change translations; "
                "repeat the review, or the run with those options"
            )

    async def apply(self, target: Target, edits: Sequence[Edit], children: Children) -> None:
        """Store the edits of one target and write the documents that hold them again."""
        by_document: dict[str, list[Edit]] = {}
        for edit in edits:
            by_document.setdefault(edit.document, []).append(edit)
        changed: set[int] = set()
        for document, wanted in by_document.items():
            changed |= self._store(target, document, wanted)
        await self._write(target, self._files_with(changed), children)

    def _store(self, target: Target, document: str, edits: Sequence[Edit]) -> set[int]:
        """Store the edits of one document; return the changed segments."""
        indices = {edit.segment for edit in edits}
        held = {
            each.row.segment: each
            for each in self._run.stored(target, document)
            if each.row.segment in indices
        }
        changed: dict[int, tuple[Any, ...]] = {}
        for edit in edits:
            stored = held.get(edit.segment)
            if stored is not None and self._is_applied(edit, stored, target):
                values = (edit.text, EDITED, self._id)
                changed[stored.segment] = (target.number, stored.segment, *values)
        with self._manifest.writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO translation"
                " (target, segment, text, quality, code, run) VALUES (?,?,?,'ok',?,?)",
                changed.values(),
            )
        return set(changed)

    def _is_applied(self, edit: Edit, stored: Stored, target: Target) -> bool:
        """Return whether an edit changes something; count it."""
        why = _problem(edit, stored)
        if why is not None:
            self.applied.refused.append(Refused(edit.document, edit.segment, why))
            return False
        is_new = edit.text != stored.row.target
        if not is_new and not edit.approved:
            self.applied.unchanged += 1
            return False
        self.applied.changed += is_new
        self.applied.approved += not is_new
        self.applied.entries.append(self._entry(edit, stored, target))
        return True

    def _entry(self, edit: Edit, stored: Stored, target: Target) -> ApprovedTranslation:
        return ApprovedTranslation(
            stored.row.source.strip(),
            edit.text.strip(),
            target.lang,
            self._run.request.translation.source_lang,
            stored.context,
        )

    def _files_with(self, segments: set[int]) -> set[int]:
        """Return the files that hold one of the segments, in one pass over all."""
        rows = self._manifest.rows(
            "SELECT o.file, o.segment FROM occurrence o JOIN file f ON f.id = o.file"
            " WHERE f.run=? AND o.segment IS NOT NULL",
            (self._run.id,),
        )
        return {file for file, segment in rows if segment in segments}

    async def _write(self, target: Target, files: set[int], children: Children) -> None:
        writer = Writer(self._run.request, self._manifest, children, self._run.id, self._ended)
        writer.repeats = False  # a file that has changed since the run is a failure here
        for document in writer.documents(target):
            if document.file in files:
                await writer.write(document)

    def _ended(self, event: Event) -> None:
        if isinstance(event, DocumentEnded) and event.status == "failed":
            self.applied.unwritten.append(event)

    def report(self) -> Path:
        """Write the report of the run again; return its path. Raises OSError."""
        report = Report(self._run.request, self._manifest, self._run.id)
        totals = report.totals(self._run.targets, 0, 0)
        return report.write({**totals, **_of_the_run(self._out / REPORT)})


def missing(edits: Sequence[Edit], applied: Applied) -> int:
    """Return how many edits name a document or segment that the last run does not have."""
    known = applied.changed + applied.approved + applied.unchanged + len(applied.refused)
    return len(edits) - known


def _problem(edit: Edit, stored: Stored) -> str | None:
    if edit.digest != digest(stored.row.source):
        return "its source has changed since the review"
    if not edit.text.strip():
        return "it is empty"
    if not same_tags(stored.row.source, edit.text):
        return "its tags are not those of its source"
    return None


def _of_the_run(path: Path) -> dict[str, Any]:
    """Return what the report says of the run itself: an edit changes none of that."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    names = ("began", "seconds", "tokens", "options", "hidden", "stopped", "manifest_moved_to")
    return {name: held[name] for name in names if isinstance(held, dict) and name in held}
