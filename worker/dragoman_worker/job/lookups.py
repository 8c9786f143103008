"""What a job needs to know before it is planned: languages, its glossary, approved translations.

All of it comes from outside this process, so it is looked up between two stages of an opening:
a record that waits does not count as being opened (docs/adr/0013).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_schemas.jobs import TranslationJob
from dragoman_text.detection import Detection
from dragoman_worker.job.approvals import Approvals, Approved
from dragoman_worker.job.assessments import NOT_JUDGED, QualityRules
from dragoman_worker.job.outages import STORE, Outages
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Glossaries, Judge, Memory, StoredGlossary


@dataclass(frozen=True, slots=True)
class Known:
    """What was found for one job; the sequences have one entry per item."""

    detections: Sequence[Detection | None] | None = None
    glossary: StoredGlossary | None = None
    approved: Sequence[Approved] | None = None


NOTHING: Final = Known()


class Lookups:
    """Looks up in the judge, the stored glossaries and the memory. Any of them may be missing."""

    def __init__(
        self,
        *,
        outages: Outages,
        metrics: Metrics,
        judge: Judge,
        glossaries: Glossaries | None = None,
        memory: Memory | None = None,
        rules: QualityRules = NOT_JUDGED,
    ) -> None:
        self._until_available = outages.until_available
        self._count_approved = metrics.memory_by_result["approved"].inc
        self._judge = judge
        self._glossaries = glossaries
        self._memory = memory
        self._rules = rules

    def needed(self, job: TranslationJob) -> bool:
        """Return whether anything is to be looked up for the job."""
        given = job.source_lang is not None and job.glossary_id is None
        return not given or self._memory_for(job) is not None

    async def of(self, job: TranslationJob, languages: Collection[str] | None) -> Known:
        """Return what is known for the job; `languages` are those of its profile.

        Waits while Redis is unavailable for its glossary.
        """
        detections = await self._detections(job, languages)
        glossary = await self._glossary(job)
        return Known(detections, glossary, await self._approved(job, detections, glossary))

    async def _detections(
        self, job: TranslationJob, languages: Collection[str] | None
    ) -> Sequence[Detection | None] | None:
        if job.source_lang is not None:
            return None
        texts = [item.text for item in job.items]
        return await self._judge.detect(texts, languages, job.target_lang)

    async def _glossary(self, job: TranslationJob) -> StoredGlossary | None:
        if job.glossary_id is None or self._glossaries is None:
            return None
        find = self._glossaries.find
        return await self._until_available(STORE, find, job.glossary_id, job.target_lang)

    async def _approved(
        self,
        job: TranslationJob,
        detections: Sequence[Detection | None] | None,
        glossary: StoredGlossary | None,
    ) -> Sequence[Approved] | None:
        memory = self._memory_for(job)
        if memory is None:
            return None
        found = await Approvals(memory, self._judge, self._rules).of(job, detections, glossary)
        self._count_approved(sum(each.translation is not None for each in found))
        return found

    def _memory_for(self, job: TranslationJob) -> Memory | None:
        return None if job.memory == "off" else self._memory
