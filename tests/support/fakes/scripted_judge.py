"""A judge that answers as its test says: by the candidate, with findings, late or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from dragoman_text.detection import Detection
from dragoman_text.verdicts import Candidate, Finding, Judgement

ENGLISH = Detection("en", 1.0)


def fine(candidate: Candidate) -> Judgement:
    """Judge an answer to be without a defect."""
    return Judgement(candidate.target)


@dataclass
class ScriptedJudge:
    """The port `Judge`; every answer is fine and every text English unless the test says else."""

    script: Callable[[Candidate], Judgement | None] = fine
    """Returns the judgement about a candidate, None if it stays unjudged."""
    languages: Callable[[str], Detection | None] = lambda _: ENGLISH
    """Returns the language of a text."""
    available: bool = True
    """Whether there are answers at all; without, each is None."""
    open: asyncio.Event | None = None
    """If it is set up, every answer waits until it is set."""
    judged: list[Candidate] = field(default_factory=list)
    asked: list[tuple[Sequence[str], Collection[str] | None, str | None]] = field(
        default_factory=list
    )
    """The detections that were asked for: texts, candidates and target."""

    async def judge(self, candidate: Candidate) -> Judgement | None:
        """See `Judge`."""
        self.judged.append(candidate)
        await self._wait()
        return self.script(candidate) if self.available else None

    async def detect(
        self,
        texts: Sequence[str],
        candidates: Collection[str] | None,
        target_lang: str | None = None,
    ) -> Sequence[Detection | None]:
        """See `Judge`."""
        self.asked.append((texts, candidates, target_lang))
        await self._wait()
        return [self.languages(text) if self.available else None for text in texts]

    async def _wait(self) -> None:
        if self.open is not None:
            await self.open.wait()


def judging(findings: Callable[[Candidate], Sequence[Finding] | None]) -> ScriptedJudge:
    """Return a judge with these findings about each candidate; None leaves it unjudged."""

    def script(candidate: Candidate) -> Judgement | None:
        found = findings(candidate)
        return None if found is None else Judgement(candidate.target, tuple(found))

    return ScriptedJudge(script=script)
