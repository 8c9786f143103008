"""The approved translations of a job's items, judged for what the job asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dragoman_schemas.jobs import Item, TranslationJob
from dragoman_text.detection import Detection
from dragoman_text.verdicts import Candidate
from dragoman_worker.flow.concurrent import together
from dragoman_worker.job.assessments import UNJUDGED, QualityRules
from dragoman_worker.job.plan import certain_lang
from dragoman_worker.job.terms import JobTerms, job_terms, occurring
from dragoman_worker.memory.approved import lost, unfit, with_findings
from dragoman_worker.ports import (
    ApprovedQuery,
    Judge,
    Memory,
    Remembered,
    StoredGlossary,
)

_DEFAULT: Final = "default"


class Approved(NamedTuple):
    """The approved translation of an item, or why the one that was found is not used."""

    translation: Remembered | None = None
    refused: str | None = None


NONE: Final = Approved()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a job asks of its translations."""

    job: TranslationJob
    rules: QualityRules
    terms: JobTerms | None

    def candidate(self, item: Item, lang: str | None, found: Remembered) -> Candidate:
        """Return the translation and all that the gates need to judge it."""
        words = self.job.do_not_translate or ()
        kept = occurring(item.protect, words, item.text)
        return Candidate(
            source=item.text,
            target=found.text,
            target_lang=self.job.target_lang,
            source_lang=lang,
            strict=self.rules.level == "strict",
            protected=kept,
            words=tuple(word for word in words if word in kept),
            terms=self.terms.find(item.text, lang)[0] if self.terms else (),
            max_chars=item.max_chars,
        )

    def with_formality(self, found: Remembered) -> Remembered:
        """Return the translation with a warning if the job asks for a form of address."""
        if self.job.formality in (None, _DEFAULT):
            return found
        said = "formality: a person approved this translation; its form of address is not judged"
        return replace(found, quality="warn", warnings=(*found.warnings, said))


class Approvals:
    """Finds approved translations and judges them; without gates only what the item demands."""

    def __init__(self, memory: Memory, judge: Judge, rules: QualityRules) -> None:
        self._memory = memory
        self._judge = judge
        self._rules = rules

    async def of(
        self,
        job: TranslationJob,
        detections: Sequence[Detection | None] | None,
        glossary: StoredGlossary | None,
    ) -> Sequence[Approved]:
        """Return the approved translation of each item of the job."""
        langs = [certain_lang(job, found) for found in detections or [None] * len(job.items)]
        found = await self._memory.approved(_queries(job, langs))
        if not any(found):
            return [NONE] * len(found)
        asked = _Asked(job, self._rules.of(job.quality), job_terms(job.glossary, glossary))
        return await together(
            self._judged(asked, item, lang, each)
            for item, lang, each in zip(job.items, langs, found, strict=True)
        )

    async def _judged(
        self, asked: _Asked, item: Item, lang: str | None, found: Remembered | None
    ) -> Approved:
        if found is None:
            return NONE
        why = unfit(found.text, item.text, protect=item.protect or (), max_chars=item.max_chars)
        if why is not None:
            return Approved(refused=why)
        if not asked.rules.decide:
            return Approved(found)
        judgement = await self._judge.judge(asked.candidate(item, lang, found))
        if judgement is None:
            return Approved(replace(found, quality="unchecked", warnings=UNJUDGED.warnings))
        if (why := lost(judgement)) is not None:
            return Approved(refused=why)
        return Approved(asked.with_formality(with_findings(found, judgement)))


def _queries(job: TranslationJob, langs: Sequence[str | None]) -> list[ApprovedQuery]:
    return [
        ApprovedQuery(item.text, job.target_lang, lang, item.context or job.context)
        for item, lang in zip(job.items, langs, strict=True)
    ]
