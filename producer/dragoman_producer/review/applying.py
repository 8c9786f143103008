"""Edits of a review into the outputs of a folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dragoman_documents.inline_codes import same_tags
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.edits import agree, put_edits
from dragoman_producer.review.edits import BadEdits, Edit, Edits
from dragoman_producer.review.page import digest
from dragoman_producer.review.rows import Output, StandingFolder, StoredText
from dragoman_producer.runs.events import DocumentEnded, Event
from dragoman_producer.runs.extracting import Children
from dragoman_producer.runs.planning import Target
from dragoman_producer.runs.report import RunReport
from dragoman_producer.runs.selecting import REPORT
from dragoman_producer.runs.writing import DocumentWriter
from dragoman_schemas.approved import ApprovedTranslation

_BLANKS: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class RefusedEdit:
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
    refused: list[RefusedEdit] = field(default_factory=list)
    unwritten: list[DocumentEnded] = field(default_factory=list)
    """Documents that hold an edited text and could not be written again."""
    entries: list[ApprovedTranslation] = field(default_factory=list)
    """Of all changed and approved texts, for the approved memory."""


class Applying:
    """Applies edits to the translations of a folder, and writes its documents again."""

    def __init__(self, manifest: Manifest, out: Path) -> None:
        """Read what the run was. Raises NoRun."""
        self._manifest = manifest
        self._out = out
        self._standing = StandingFolder(manifest, out)
        self._id = secrets.token_hex(4)
        """In place of the id of a run, so that outputs are seen to lack the edits."""
        self.applied = Applied()

    def language(self, edits: Edits) -> str:
        """Return the language that edits are for. Raises BadEdits."""
        self._check_run(edits.run)
        if edits.target_lang in self._standing.langs:
            return edits.target_lang
        known = ", ".join(self._standing.langs) or "none"
        raise BadEdits(
            f"it is for {edits.target_lang}, the folder has translations into: {known}; "
            "give edits of a review of this folder"
        )

    def _check_run(self, run: str) -> None:
        """Refuse edits of another folder, and of a run with other settings. Raises BadEdits.

        An editor may drop the id of the run; the digests of the sources are compared in any case.
        """
        if not run or run == self._standing.id:
            return
        settings = self._standing.settings(run)
        if settings is None:
            raise BadEdits(
                f"run {run} did not write this folder; give the folder that was reviewed"
            )
        if settings != self._standing.settings(self._standing.id):
            raise BadEdits(
                f"it is of run {run}, and the last run had other options that change translations; "
                "repeat the review, or the run with those options"
            )

    async def apply(self, lang: str, edits: Sequence[Edit], children: Children) -> None:
        """Store the edits of one language and write the documents that hold them again."""
        by_document: dict[str, list[Edit]] = {}
        for edit in edits:
            by_document.setdefault(edit.document, []).append(edit)
        changed: set[tuple[int, int]] = set()
        for document, wanted in by_document.items():
            changed |= self._store(lang, document, wanted)
        agree(self._manifest, lang, self._id)
        await self._write(lang, set(self._standing.holding(lang, changed)), children)

    def _store(self, lang: str, document: str, edits: Sequence[Edit]) -> set[tuple[int, int]]:
        """Store the edits of one document; return the target and segment of each change."""
        indices = {edit.segment for edit in edits}
        held = {
            each.row.segment: each
            for each in self._standing.stored(lang, document)
            if each.row.segment in indices
        }
        changed: dict[tuple[int, int], tuple[int, int, str]] = {}
        for given in edits:
            stored = held.get(given.segment)
            if stored is None:
                continue
            edit = _fitted(given, stored)
            if self._is_applied(edit, stored, lang):
                key = (stored.target, stored.segment)
                changed[key] = (*key, edit.text)
        put_edits(self._manifest, self._id, changed.values())
        return set(changed)

    def _is_applied(self, edit: Edit, stored: StoredText, lang: str) -> bool:
        """Return whether an edit changes something; count it."""
        why = _problem(edit, stored)
        if why is not None:
            self.applied.refused.append(RefusedEdit(edit.document, edit.segment, why))
            return False
        is_new = edit.text != stored.row.target
        if not is_new and not edit.approved:
            self.applied.unchanged += 1
            return False
        self.applied.changed += is_new
        self.applied.approved += not is_new
        self.applied.entries.append(self._entry(edit, stored, lang))
        return True

    def _entry(self, edit: Edit, stored: StoredText, lang: str) -> ApprovedTranslation:
        return ApprovedTranslation(
            stored.row.source.strip(),
            edit.text.strip(),
            lang,
            self._standing.request.translation.source_lang,
            stored.context,
        )

    async def _write(self, lang: str, outputs: Collection[Output], children: Children) -> None:
        """Write outputs again, with the options of the runs that wrote them."""
        for run in sorted({each.run for each in outputs}):
            request = self._standing.request_of(run)
            writer = DocumentWriter(request, self._manifest, children, run, self._ended)
            writer.repeats = False  # a file that has changed since the run is a failure here
            for each in sorted((each.file, each.target) for each in outputs if each.run == run):
                await writer.write(writer.document(each[0], Target(each[1], lang)))

    def _ended(self, event: Event) -> None:
        if isinstance(event, DocumentEnded) and event.status == "failed":
            self.applied.unwritten.append(event)

    def report(self) -> Path:
        """Write the report of the last run again; return its path. Raises OSError."""
        standing = self._standing
        report = RunReport(standing.request, self._manifest, standing.id)
        totals = report.totals(standing.targets, 0)
        return report.write({**totals, **_of_the_run(self._out / REPORT)})


def missing(edits: Sequence[Edit], applied: Applied) -> int:
    """Return how many edits name a document or segment that the folder does not have."""
    known = applied.changed + applied.approved + applied.unchanged + len(applied.refused)
    return len(edits) - known


def _fitted(edit: Edit, stored: StoredText) -> Edit:
    """Return an edit with the blanks at its ends that its source has.

    A blank that was typed behind a text is not seen, and some formats cannot hold it.
    """
    source = stored.row.source
    if edit.text == stored.row.target or not (text := edit.text.strip(_BLANKS)):
        return edit
    before = source[: len(source) - len(source.lstrip(_BLANKS))]
    return replace(edit, text=before + text + source[len(source.rstrip(_BLANKS)) :])


def _problem(edit: Edit, stored: StoredText) -> str | None:
    if edit.digest != digest(stored.row.source):
        return "its source has changed since the review"
    if not edit.text.strip():
        return "it is empty"
    if not same_tags(stored.row.source, edit.text):
        return "its tags differ from those of the source"
    return None


def _of_the_run(path: Path) -> dict[str, Any]:
    """Return what the report says of the run itself: an edit changes none of that."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    names = (
        "began",
        "seconds",
        "tokens",
        "options",
        "hidden",
        "stopped",
        "manifest_moved_to",
        "not_cancelled",
    )
    return {name: held[name] for name in names if isinstance(held, dict) and name in held}
