"""Jobs of what is missing: planned in the manifest before the first of them is submitted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dragoman_producer.manifest import sql
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.runs.batching import Glossary, WaitingSegment, batches, kept_of, terms_of
from dragoman_producer.runs.edits_kept import KeptEdits
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
        self._edits = KeptEdits(manifest, overwrite=request.overwrite)
        digest = request.translation.digest()
        self.targets = [Target(manifest.target(lang, digest), lang) for lang in request.to]

    def need(self, target: Target) -> Need:
        """Return what a target needs; its failures of earlier runs are to be translated again."""
        self._collect_wanted(target)
        self._edits.collect(target.lang)
        overwrite = self._request.overwrite
        if not self._request.dry_run:
            self._forget(target)
            self._edits.settle(target.number)
        count = self._manifest.number
        segments = count(
            sql.COUNT_OCCURRENCES,
            (self._run, target.lang, target.number),
        )
        unique = count(sql.COUNT_WANTED)
        missing, characters = self._manifest.one(
            sql.COUNT_MISSING,
            (target.number, self._refreshes, target.number, overwrite, overwrite),
        )
        return Need(segments, unique, missing, characters or 0)

    def plan(self, target: Target) -> None:
        """Write the jobs for what is missing and in no open job. Wave 1 of the target."""
        self._collect_wanted(target)
        with self._manifest.writing() as db:
            db.execute(sql.PLANNED_TABLE)
            db.execute(sql.EMPTY_PLANNED)
            db.executemany(sql.ADD_PLANNED, self._open_segments(target))
            self._write(db, target, batches(self._missing(target), self._glossary))

    def plan_again(self, target: Target) -> int:
        """Write a job of its own for each segment that may succeed now; return their number."""
        with self._manifest.writing() as db:
            db.execute(sql.DROP_RETRIABLE, (target.number,))
            db.execute(sql.END_JOBS_OF_TARGET, (target.number,))
            db.execute(sql.EMPTY_PLANNED)
            self._collect_wanted(target)
            return self._write(db, target, ([item] for item in self._missing(target)))

    def jobs(self, target: Target) -> Iterator[PlannedJob]:
        """Yield the open jobs of a target in their order, oldest document first."""
        totals: dict[str, int] = {}
        rows = self._manifest.db.execute(
            sql.OPEN_JOBS,
            (target.number,),
        ).fetchall()
        for job_id, document, number, segments in rows:
            if document not in totals:
                totals[document] = self._manifest.number(
                    sql.JOBS_OF_DOCUMENT,
                    (target.number, document),
                )
            ids = tuple(json.loads(segments))
            yield PlannedJob(job_id, target, document, number, totals[document], ids)

    def job(self, planned: PlannedJob) -> TranslationJob:
        """Return the job of a plan: always the same for the same plan."""
        rows = self._manifest.rows(sql.segments_of(len(planned.segments)), planned.segments)
        items = [WaitingSegment(*row) for row in rows]
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

    def _collect_wanted(self, target: Target) -> None:
        db = self._manifest.db
        db.execute(sql.WANTED_TABLE)
        db.execute(sql.EMPTY_WANTED)
        db.execute(
            sql.WANT_SEGMENTS,
            (self._run, target.lang, target.number),
        )

    def _forget(self, target: Target) -> None:
        """Remove failures of earlier runs; with `refresh` also what is to be translated anew."""
        number = target.number
        began = self._manifest.number(sql.COUNT_REFRESHES, (number,))
        with self._manifest.writing() as db:
            db.execute(sql.DROP_FAILED, (number,))
            if bool(began) is not self._refreshes:  # their bytes differ in the field `memory`
                db.execute(sql.END_JOBS_OF_TARGET, (number,))
            if self._refreshes:
                db.execute(
                    sql.DROP_STALE,
                    (number, number),
                )
                db.execute(sql.ADD_REFRESH, (number, self._run))
            else:
                db.execute(sql.END_REFRESH, (number,))

    def refreshed(self) -> None:
        """Record that nothing is left to refresh: the next run with `refresh` begins anew."""
        with self._manifest.writing() as db:
            db.executemany(sql.END_REFRESH, ((each.number,) for each in self.targets))

    def _open_segments(self, target: Target) -> Iterator[tuple[int]]:
        """Yield the segments of open jobs of earlier runs; close those that nobody needs."""
        rows = self._manifest.db.execute(sql.OPEN_JOB_SEGMENTS, (target.number,)).fetchall()
        for job_id, segments in rows:
            ids = json.loads(segments)
            needed = self._manifest.number(sql.count_missing_of(len(ids)), (target.number, *ids))
            if needed:
                yield from ((each,) for each in ids)
            else:
                self._manifest.db.execute(sql.END_JOB, (job_id,))

    def _missing(self, target: Target) -> Iterator[WaitingSegment]:
        yield from (
            WaitingSegment(*row)
            for row in self._manifest.rows(
                sql.MISSING_SEGMENTS,
                (target.number,),
            )
        )

    def _write(self, db: Any, target: Target, jobs: Iterator[list[WaitingSegment]]) -> int:
        count = 0
        document = ""
        for items in jobs:
            if count % MAX_DOCUMENT_JOBS == 0:
                wave = self._waves[target.lang] = self._waves.get(target.lang, 0) + 1
                document = f"{self._run}-{target.lang}-{wave}"
            number = count % MAX_DOCUMENT_JOBS
            ids = json.dumps(sorted(item.segment for item in items), separators=(",", ":"))
            db.execute(
                sql.ADD_JOB,
                (f"{document}.{number}", target.number, document, number, ids),
            )
            count += 1
        return count
