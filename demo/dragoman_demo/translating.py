"""Submit the samples through the real client, and collect their results."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dragoman_demo.samples import Sample
from dragoman_producer import JobHandle, ResultTimeout, TranslationClient

_RESULT_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """Outcome of one sample.

    `error` is the reason where `text` is None. `total_ms` counts from the record's timestamp.
    """

    sample: Sample
    status: str
    text: str | None
    error: str | None
    total_ms: int | None


@dataclass(frozen=True)
class DemoReport:
    """Outcomes in the order of the samples; seconds from the first submit to the last result."""

    done: Sequence[SampleOutcome]
    seconds: float

    @cached_property
    def failures(self) -> Counter[str]:
        """Number of samples without a translation, by reason."""
        return Counter(one.error or one.status for one in self.done if one.text is None)

    @property
    def completed(self) -> int:
        """Number of samples with a translation."""
        return len(self.done) - self.failures.total()


async def translate(
    samples: Sequence[Sample],
    *,
    bootstrap: str,
    redis_url: str,
    on_done: Callable[[SampleOutcome], None],
) -> DemoReport:
    """Submit all samples and wait for their results; call `on_done` with each as it arrives.

    Raises the client's errors where broker or Redis cannot be reached.
    """
    started = time.monotonic()

    async def follow(sample: Sample, handle: JobHandle) -> SampleOutcome:
        done = await _outcome(sample, handle)
        on_done(done)
        return done

    by_id = {sample.job.job_id: sample for sample in samples}
    async with TranslationClient(bootstrap_servers=bootstrap, redis_url=redis_url) as client:
        jobs = (sample.job for sample in samples)
        handles = [handle async for handle in client.submit_many(jobs)]
        done = await asyncio.gather(*(follow(by_id[handle.job_id], handle) for handle in handles))
    return DemoReport(done, time.monotonic() - started)


async def _outcome(sample: Sample, handle: JobHandle) -> SampleOutcome:
    try:
        result = await handle.result(timeout_s=_RESULT_S)
    except ResultTimeout as late:
        return SampleOutcome(sample, str(late.status or "unknown"), None, str(late), None)
    texts = [item.text for item in result.translations]
    text = texts[0] if texts else None
    error = f"{result.error.code}: {result.error.message}" if result.error else None
    return SampleOutcome(sample, result.status, text, error, result.timing.total_ms)
