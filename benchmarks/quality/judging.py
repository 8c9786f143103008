"""Answers judged as a worker does at `basic`: cleaned as profiles do, then by the gates."""

from __future__ import annotations

from dataclasses import dataclass

from pairs import Pair

from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import ONCE, judge
from dragoman_text.verdicts import Candidate, Finding, Judgement
from dragoman_worker.prompts.cleaning import cleaned

_DETECT = LanguageDetector().detect


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer as it was judged, the first of its item, and what the gates say of it."""

    answer: str
    judgement: Judgement

    @property
    def verdict(self) -> str:
        """`fail`, `warn` or `ok` of this first answer; a gate that softens later still fails."""
        severities = {each.severity for each in self.judgement.findings}
        return "fail" if "fail" in severities else "warn" if "warn" in severities else "ok"

    @property
    def is_hard(self) -> bool:
        """Whether a gate fails that fails every later answer as well."""
        return any(each.gate not in ONCE for each in self.findings("fail"))

    def findings(self, severity: str) -> tuple[Finding, ...]:
        """Return the findings of one severity."""
        return tuple(each for each in self.judgement.findings if each.severity == severity)


def judged(pair: Pair, answer: str, *, joined: bool = False) -> Judged:
    """Judge one answer to the source of a pair; `joined` is an item put together from pieces."""
    answer = answer if joined else cleaned(answer, pair.source)
    candidate = Candidate(
        pair.source, answer, pair.target_lang, pair.source_lang or None, joined=joined
    )
    return Judged(answer, judge(candidate, detect=_DETECT))


def warm() -> None:
    """Load the model of the detector, so that it is not measured."""
    _DETECT("Load the model.")
