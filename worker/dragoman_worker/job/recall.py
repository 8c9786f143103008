"""The memory around the engine: recall units before they are generated, remember good answers."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman_worker.job.assessments import remembered
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.memory.in_flight import SHARED_VERDICTS, Coalesced, Flight
from dragoman_worker.memory.key import Question, memory_key
from dragoman_worker.ports import Memory
from dragoman_worker.prompts.base import identity_of


class Recall:
    """The machine tier of the memory and the units in flight, both by the units' keys."""

    def __init__(self, memory: Memory, in_flight: Coalesced, *, engine: str) -> None:
        """`engine` is `Engine.identity`."""
        self._memory = memory
        self._engine = engine
        self._in_flight = in_flight

    async def fill(self, plan: Plan, units: Sequence[Unit]) -> None:
        """Fill the units that are known, unless the job asks for new answers."""
        unknown = [unit for unit in units if not self.shared(plan, unit)]
        if plan.job.memory == "refresh" or not unknown:
            return
        found = await self._memory.recall([self.key_of(plan, unit) for unit in unknown])
        for unit, translation in zip(unknown, found, strict=True):
            if translation is not None:
                unit.recall(translation)

    def shared(self, plan: Plan, unit: Unit) -> bool:
        """Fill the unit if an equal unit in flight has been answered; return whether one has."""
        answer = self.flight_of(plan, unit).answer
        if answer is None:
            return False
        unit.recall(answer)
        self._in_flight.joined()
        return True

    def flight_of(self, plan: Plan, unit: Unit) -> Flight:
        """Return the unit's flight, which it joins at the first call.

        In a job that asks for new answers only its own units are equal: others may be older.
        """
        if unit.flight is None:
            key = self.key_of(plan, unit)
            own = plan.job.job_id.encode() if plan.job.memory == "refresh" else b""
            unit.flight = self._in_flight.join(key + own)
        return unit.flight

    def answered(self, plan: Plan, unit: Unit) -> None:
        """Share the unit's answer and remember it if its verdict is ok or warn."""
        if unit.text is None or unit.assessment.quality not in SHARED_VERDICTS:
            return
        key, translation = self.key_of(plan, unit), remembered(unit.text, unit.assessment)
        self._in_flight.share(key, self.flight_of(plan, unit), translation)
        self._memory.remember(key, translation)

    def key_of(self, plan: Plan, unit: Unit) -> bytes:
        """Return the unit's key, computed once, from its first request."""
        if unit.key is None:
            unit.key = memory_key(self._question(plan, unit))
        return unit.key

    def _question(self, plan: Plan, unit: Unit) -> Question:
        item = plan.items[unit.item]
        return Question(
            engine=self._engine,
            profile=identity_of(plan.profile),
            prompt_ids=unit.prompt_ids,
            decoding=unit.decoding,
            source=unit.source,
            target_lang=plan.target_lang,
            source_lang=item.source_lang,
            level=plan.rules.level,
            token_style=plan.rules.token_style.name,
            protected=unit.protected,
            terms=unit.terms,
            words=plan.words(unit),
            max_chars=item.unit_max_chars,
        )
