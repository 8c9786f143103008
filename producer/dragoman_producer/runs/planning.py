"""Jobs of what is missing: planned in the manifest before the first of them is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.edits import KeptEdits
from dragoman_producer.manifest.jobs import JobRows
from dragoman_producer.runs.batching import Glossary, WaitingSegment, batches, kept_of, terms_of
from dragoman_producer.runs.request import RunRequest
from dragoman_schemas.jobs import MAX_DOCUMENT_JOBS, DocumentRef, TranslationJob


@dataclass(frozen=True, slots=True)
class Target:
    """A target language with the settings of the run."""

    number: int
    lang: str


@dataclass(frozen=True, slots=True)
class Need:
    """What a target needs: segments of its documents, and those without a translation."""

    segments: int
    unique: int
    missing: int
    characters: int


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One row of the table `job`."""

    job_id: str
    target: Target
    document: str
    number: int
    total: int
    segments: tuple[int, ...]


class RunPlanner:
    """Plans the jobs of one run."""

    def __init__(
        self, request: RunRequest, manifest: Manifest, glossary: Glossary, run: str
    ) -> None:
        self._request = request
        self._manifest = manifest
        self._glossary = glossary
        self._run = run
        self._waves: dict[str, int] = {}
        self._refreshes = request.translation.memory == "refresh"
        self._stored = JobRows(manifest, run)
        self._edits = KeptEdits(manifest, overwrite=request.overwrite)
        digest = request.translation.digest()
        self.targets = [Target(manifest.target(lang, digest), lang) for lang in request.to]

    def need(self, target: Target) -> Need:
        """Return what a target needs; its failures of earlier runs are to be translated again."""
        self._stored.want(target.number, target.lang)
        self._edits.collect(target.lang)
        if not self._request.dry_run:
            self._stored.forget(target.number, refreshes=self._refreshes)
            self._edits.settle(target.number)
        counts = self._stored.counts(
            target.number,
            target.lang,
            refreshes=self._refreshes,
            overwrite=self._request.overwrite,
        )
        return Need(*counts)

    def plan(self, target: Target) -> None:
        """Write the jobs for what is missing and in no open job. Wave 1 of the target."""
        self._stored.want(target.number, target.lang)
        with self._manifest.writing():
            self._stored.begin(target.number)
            self._write(target, batches(self._missing(target), self._glossary))

    def plan_again(self, target: Target) -> int:
        """Write a job of its own for each segment that may succeed now; return their number."""
        with self._manifest.writing():
            self._stored.begin_again(target.number)
            self._stored.want(target.number, target.lang)
            return self._write(target, ([item] for item in self._missing(target)))

    def jobs(self, target: Target) -> Iterator[PlannedJob]:
        """Yield the open jobs of a target in their order, wave by wave."""
        totals: dict[str, int] = {}
        for job_id, document, number, segments in self._stored.open(target.number):
            if document not in totals:
                totals[document] = self._stored.total(target.number, document)
            yield PlannedJob(job_id, target, document, number, totals[document], segments)

    def job(self, planned: PlannedJob) -> TranslationJob:
        """Return the job of a plan: always the same for the same plan."""
        items = [WaitingSegment(*row) for row in self._stored.segments(planned.segments)]
        fields: dict[str, Any] = self._request.translation.fields()
        if terms := terms_of(items, self._glossary):
            fields["glossary"] = terms
        fields["do_not_translate"] = kept_of(items, self._glossary) or None
        document = DocumentRef(
            document_id=planned.document, index=planned.number, total=planned.total
        )
        return TranslationJob.model_validate(
            {
                "job_id": planned.job_id,
                "text": [item.field() for item in items],
                "target_lang": planned.target.lang,
                "document": document,
                **fields,
            }
        )

    def refreshed(self) -> None:
        """Record that nothing is left to refresh: the next run with `refresh` begins anew."""
        self._stored.refreshed(target.number for target in self.targets)

    def _missing(self, target: Target) -> Iterator[WaitingSegment]:
        return (WaitingSegment(*row) for row in self._stored.missing(target.number))

    def _write(self, target: Target, jobs: Iterator[list[WaitingSegment]]) -> int:
        count = 0
        document = ""
        for items in jobs:
            number = count % MAX_DOCUMENT_JOBS
            if number == 0:
                wave = self._waves[target.lang] = self._waves.get(target.lang, 0) + 1
                document = f"{self._run}-{target.lang}-{wave}"
            segments = (item.segment for item in items)
            self._stored.add(target.number, document, number, segments)
            count += 1
        return count
