"""The translations that stand in a folder, read from its manifest for a review."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_args

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.runs import RunRows, last_run
from dragoman_producer.manifest.schema import EDITED
from dragoman_producer.manifest.standing import StandingOutputs, standing_segments
from dragoman_producer.review.page import Origin, ReviewRow, RowFinding, Verdict
from dragoman_producer.review.reasons import REASONS
from dragoman_producer.runs.paths import shown
from dragoman_producer.runs.planning import Target
from dragoman_producer.runs.request import RunRequest, to_write_again

_ALTERED: Final = frozenset({"tags", "read_back", "plural", "plural_lost", "message_incomplete"})
"""Codes of segments whose document does not hold the translation as it came."""


class NoRun(Exception):
    """A folder without a run that could be reviewed."""


@dataclass(frozen=True, slots=True)
class Output:
    """A row of the table `output`."""

    file: int
    target: int
    run: str


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text of a document with its translation, as the manifest has it."""

    file: int
    target: int
    """Of the table `target`."""
    segment: int
    """Of the table `segment`."""
    context: str | None
    row: ReviewRow
    number: int = 0
    """Of the segment in its document, which may be in several parts."""
    run: str = ""
    """That wrote the document last."""


class StandingFolder:
    """What stands in a folder, whichever run wrote it; `id` and `request` are of the last run."""

    def __init__(self, manifest: Manifest, out: Path, *, only_last_run: bool = False) -> None:
        """Read what the last run was; `only_last_run` shows its documents alone. Raises NoRun."""
        self.manifest = manifest
        self._out = out
        last = last_run(manifest)
        options = None if last is None else RunRows(manifest, last).options()
        if last is None or options is None:
            raise NoRun(f"no run of `dragoman translate --out {out}` has ended; run it to its end")
        self.id = last
        self.request: RunRequest = to_write_again(out, json.loads(options))
        self._stored = StandingOutputs(manifest, last if only_last_run else None)

    def request_of(self, run: str) -> RunRequest:
        """Return the request of a run; of the last one if its own was not recorded."""
        options = RunRows(self.manifest, run).options()
        return self.request if options is None else to_write_again(self._out, json.loads(options))

    @cached_property
    def langs(self) -> list[str]:
        """Languages of the documents, sorted."""
        return self._stored.langs()

    @cached_property
    def targets(self) -> list[Target]:
        """Targets of the last run, by language."""
        return [Target(*row) for row in RunRows(self.manifest, self.id).targets()]

    def settings(self, run: str) -> str | None:
        """Return the digest of what changed the translations of a run; None if none has this id."""
        options = RunRows(self.manifest, run).options()
        return None if options is None else str(json.loads(options).get("settings"))

    def count(self, lang: str, verdicts: Collection[Verdict]) -> int:
        """Return the number of rows of `rows`."""
        if set(verdicts) >= set(get_args(Verdict)):
            return self._stored.count(lang)
        return sum(1 for _ in self.rows(lang, verdicts))

    def rows(self, lang: str, verdicts: Collection[Verdict]) -> Iterator[ReviewRow]:
        """Yield the texts with these verdicts, in the order of the documents."""
        return (each.row for each in self.stored(lang) if each.row.verdict in verdicts)

    def stored(self, lang: str, document: str | None = None) -> Iterator[StoredText]:
        """Yield all texts of a language, or those of the document that is shown as this path."""
        files = self._files.get(document, []) if document is not None else None
        document_of, index, issues = (-1, -1), 0, dict[int, list[RowFinding]]()
        for found in self._stored.texts(lang, files):
            file, target = found[1], found[13]
            if (file, target) != document_of:
                document_of, index, issues = (file, target), 0, self._issues(file, target)
            row = self._row(found[:13], index, issues)
            yield StoredText(file, target, found[4], found[6], row, found[2], found[14])
            index += 1

    def holding(self, lang: str, segments: Collection[tuple[int, int]]) -> Iterator[Output]:
        """Yield the documents that hold one of these pairs of a target and a segment."""
        rows = standing_segments(self.manifest, lang)
        return (Output(*row[:3]) for row in rows if (row[1], row[3]) in segments)

    @cached_property
    def _files(self) -> dict[str, list[int]]:
        """Files by the paths that pages show."""
        found: dict[str, list[int]] = {}
        for number, path in self._stored.files():
            found.setdefault(shown(path), []).append(number)
        return found

    def _issues(self, file: int, target: int) -> dict[int, list[RowFinding]]:
        found: dict[int, list[RowFinding]] = {}
        for number, code, detail in self._stored.issues(file, target):
            finding = RowFinding(code, REASONS.get(code, detail or ""))
            if finding not in (known := found.setdefault(number, [])):
                known.append(finding)
        return found

    def _row(self, found: Any, index: int, issues: dict[int, list[RowFinding]]) -> ReviewRow:
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
        return ReviewRow(
            shown(path), index, place, source, text, verdict, findings, origin, max_chars
        )  # fmt: skip
