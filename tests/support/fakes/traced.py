"""Ports that record the order of settling and can fail at each step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dragoman_schemas.results import TranslationResult
from dragoman_schemas.scripts import ClaimAnswer
from dragoman_worker.ports import Claim, ClaimRequest, DeadLetter, Delivery
from support.fakes.core import Core
from support.fakes.local_jobs import LocalJobs
from support.fakes.local_kafka import MemoryConsumer, MemoryDeadLetters, MemoryResults


@dataclass
class Diary:
    """Finished steps, and errors that steps raise, once each."""

    steps: list[str] = field(default_factory=list)
    failures: dict[str, deque[BaseException]] = field(default_factory=dict)

    def fail(self, step: str, *errors: BaseException) -> None:
        """Let the next calls of `step` raise these errors before they take effect."""
        self.failures[step] = deque(errors)

    def begin(self, step: str) -> None:
        """Raise the next error of a step, if there is one, before it takes effect."""
        if waiting := self.failures.get(step):
            raise waiting.popleft()

    def done(self, step: str) -> None:
        """Record a step that has taken effect; raises the next error of `after-STEP`."""
        self.steps.append(step)
        self.begin(f"after-{step}")


class TracedStore(LocalJobs):
    """LocalJobs with a diary."""

    def __init__(self, diary: Diary, **options: Any) -> None:
        super().__init__(**options)
        self._diary = diary

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        self._diary.begin("claim")
        reply = await super().claim(request)
        self._diary.done("claim")
        return reply

    async def release(self, claim: Claim) -> None:
        self._diary.begin("release")
        await super().release(claim)
        self._diary.done("release")

    async def finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        self._diary.begin("finish")
        stands = await super().finish(claim, result)
        self._diary.done("finish")
        return stands

    async def confirm(self, job_id: str) -> bool:
        self._diary.begin("confirm")
        confirmed = await super().confirm(job_id)
        self._diary.done("confirm")
        return confirmed

    async def announce(self, result: TranslationResult, ttl_s: int) -> None:
        self._diary.begin("announce")
        await super().announce(result, ttl_s)
        self._diary.done("announce")


class TracedSource(MemoryConsumer):
    """MemoryConsumer with a diary."""

    def __init__(self, diary: Diary, **options: Any) -> None:
        super().__init__(poll_s=0.01, **options)
        self._diary = diary

    def complete(self, delivery: Delivery) -> None:
        self._diary.begin("complete")
        super().complete(delivery)
        self._diary.done("complete")


class TracedDeadLetters(MemoryDeadLetters):
    """MemoryDeadLetters with a diary."""

    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self._diary = diary

    async def publish(self, dead_letter: DeadLetter) -> None:
        self._diary.begin("dead-letter")
        await super().publish(dead_letter)
        self._diary.done("dead-letter")


class TracedResults(MemoryResults):
    """MemoryResults with a diary."""

    def __init__(self, diary: Diary) -> None:
        super().__init__()
        self._diary = diary

    async def publish(self, result: TranslationResult) -> None:
        self._diary.begin("result")
        await super().publish(result)
        self._diary.done("result")


def traced(**options: Any) -> tuple[Core, Diary]:
    """Return a core whose ports all write to the same diary, and the diary."""
    diary = Diary()
    core = Core(
        store=TracedStore(diary),
        consumer=TracedSource(diary),
        dead_letters=TracedDeadLetters(diary),
        results=TracedResults(diary),
        **options,
    )
    return core, diary
