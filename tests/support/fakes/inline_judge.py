"""The judge of answers in this process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dragoman_text.detection import Detection, LanguageDetector
from dragoman_text.verdicts import Candidate, Judgement
from dragoman_worker.quality import judge_wire as wire
from dragoman_worker.quality.judge import GATES
from dragoman_worker.quality.judge_child import Gates, Work, load_gates


class InlineJudge:
    """The port `Judge` in this process."""

    def __init__(self, gates: Gates | None = None) -> None:
        """Without `gates` the project's own are used."""
        self._work = Work(gates or load_gates(GATES), LanguageDetector())

    async def judge(self, candidate: Candidate) -> Judgement | None:
        """See `Judge`."""
        answer = self._answer(wire.pack_candidate(candidate))
        return None if answer is None else wire.unpack_judgement(answer, candidate)

    async def detect(
        self,
        texts: Sequence[str],
        candidates: Collection[str] | None,
        target_lang: str | None = None,
    ) -> Sequence[Detection | None]:
        """See `Judge`."""
        answer = self._answer(wire.pack_texts(wire.DetectRequest(texts, candidates, target_lang)))
        return [None] * len(texts) if answer is None else wire.unpack_detections(answer)

    def _answer(self, payload: bytes) -> Any:
        answer = self._work.answer(payload)
        return None if isinstance(answer, wire.Failed) else answer
