"""Settle a job: dead letter, terminal state and what follows it, in the one legal order."""

from __future__ import annotations

from typing import assert_never

from dragoman_schemas.results import TranslationResult
from dragoman_worker.errors import Conflict, Unencodable
from dragoman_worker.job.outages import DEAD_LETTERS, RESULTS, STORE, Outages
from dragoman_worker.job.outcome import Completed, Rejected
from dragoman_worker.job.reporter import of_document, unencodable, without_texts
from dragoman_worker.log import logger
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Claim, DeadLetter, DeadLetters, Delivery, Results, Store


class EndLost(Exception):
    """The terminal state that a claim found is gone: a fail-over went to a server without it."""


class Settler:
    """Writes what an outcome needs, in the order of docs/explanation/internals.md.

    The caller completes the offset afterwards.
    """

    def __init__(
        self,
        *,
        store: Store,
        dead_letters: DeadLetters,
        results: Results | None,
        outages: Outages,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._dead_letters = dead_letters
        self._results = results
        self._until_available = outages.until_available
        self._metrics = metrics
        self._log = logger()

    async def settle(
        self, delivery: Delivery, outcome: Completed | Rejected
    ) -> TranslationResult | None:
        """Do all steps before the offset is completed, and return the result that stands.

        A crash between two steps repeats the rest. None if there is no result that an exact
        duplicate may share: the duplicate has to be executed itself. Raises EndLost: then this
        delivery has to be executed again.
        """
        match outcome:
            case Completed():
                return await self._complete(delivery, outcome)
            case Rejected():
                return await self._reject(delivery, outcome)
            case _:
                assert_never(outcome)

    async def _complete(self, delivery: Delivery, outcome: Completed) -> TranslationResult | None:
        result, claim, ttl_s = outcome
        try:
            if claim is not None:
                stands = await self._finish(claim, result)
            else:
                if not await self._until_available(STORE, self._store.confirm, result.job_id):
                    raise EndLost
                stands = result
        except Conflict as conflict:
            await self._dead_letter(delivery, Rejected(conflict, job_id=result.job_id))
            return None
        except Unencodable:
            return await self._reject(delivery, unencodable(result, claim))
        await self._publish(stands, ttl_s)
        return stands

    async def _reject(self, delivery: Delivery, outcome: Rejected) -> TranslationResult | None:
        await self._dead_letter(delivery, outcome)
        if outcome.result is None or outcome.claim is None:
            return None
        try:
            stands = await self._finish_failed(outcome.claim, outcome.result)
        except Conflict:
            return None  # the id belongs to another payload; this record has its dead letter
        await self._publish(stands, outcome.claim.ttl_s)
        return stands

    async def _finish_failed(
        self, claim: Claim, result: TranslationResult
    ) -> TranslationResult | None:
        try:
            return await self._finish(claim, result)
        except Unencodable:
            return await self._finish(claim, without_texts(result))

    async def _dead_letter(self, delivery: Delivery, outcome: Rejected) -> None:
        failure = outcome.failure
        dead_letter = DeadLetter(
            delivery,
            code=failure.code.value,
            message=failure.message,
            job_id=outcome.job_id,
            attempts=outcome.attempts,
            deliveries=outcome.deliveries,
            first_seen=outcome.first_seen,
        )
        await self._until_available(DEAD_LETTERS, self._dead_letters.publish, dead_letter)
        self._metrics.dead_letters.labels(failure.code.value).inc()
        self._log.warning(
            "rejected", job_id=outcome.job_id, place=delivery.origin, code=failure.code.value
        )

    async def _finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        """Write the terminal state and return the result that stands: this or an earlier one."""
        stands = await self._until_available(STORE, self._store.finish, claim, result)
        if stands is None:
            return None
        if stands is result or _same_end(stands, result):  # or its first reply was lost
            self._count(result)
        return of_document(stands, result.document)

    async def _publish(self, stands: TranslationResult | None, ttl_s: int) -> None:
        """Do what follows a finish, with the result that stands; None: a later replay does it."""
        if stands is None:
            return
        await self._until_available(STORE, self._store.announce, stands, ttl_s)
        if self._results is not None:
            await self._until_available(RESULTS, self._results.publish, stands)

    def _count(self, result: TranslationResult) -> None:
        metrics, timing = self._metrics, result.timing
        metrics.jobs_by_status[result.status].inc()
        verdicts = [item.quality for item in result.translations]
        for verdict in set(verdicts):
            metrics.items_by_verdict[verdict].inc(verdicts.count(verdict))
        metrics.prompt_tokens.inc(result.usage.prompt_tokens)
        metrics.completion_tokens.inc(result.usage.completion_tokens)
        metrics.queue_seconds.observe(timing.queue_ms / 1000)
        metrics.engine_seconds.observe(timing.engine_ms / 1000)
        metrics.total_seconds.observe(timing.total_ms / 1000)


def _same_end(one: TranslationResult, other: TranslationResult) -> bool:
    return (one.worker_id, one.timing.finished_at) == (other.worker_id, other.timing.finished_at)
