"""The memory around the engine: recall units before they are generated, remember good answers."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.memory.in_flight import SHARED_VERDICTS, Coalesced
from dragoman_worker.memory.key import Question, memory_key
from dragoman_worker.ports import Memory, Remembered
from dragoman_worker.prompts.base import identity_of


class Recall:
    """The machine tier of the memory and the units in flight, both by the units' keys."""

    def __init__(self, memory: Memory, in_flight: Coalesced, *, engine: str) -> None:
        """`engine` is `Engine.identity`."""
        self._memory = memory
        self._engine = engine
        self.in_flight = in_flight

    def key_of(self, plan: Plan, unit: Unit) -> bytes:
        """Return the unit's key, computed once, from its first request."""
        if unit.key is None:
            unit.key = memory_key(self._question(plan, unit))
        return unit.key

    async def fill(self, plan: Plan, units: Sequence[Unit]) -> None:
        """Fill the units that the memory knows, unless the job asks for new answers."""
        if plan.job.memory == "refresh":
            return
        keys = [self.key_of(plan, unit) for unit in units]
        for unit, remembered in zip(units, await self._memory.recall(keys), strict=True):
            if remembered is not None:
                unit.recall(remembered)

    def remember(self, key: bytes, translation: Remembered) -> None:
        """Remember an answer whose verdict is ok or warn; ignore any other."""
        if translation.quality in SHARED_VERDICTS:
            self._memory.remember(key, translation)

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
            protected=unit.protected,
            terms=unit.terms,
            words=plan.words(unit),
            max_chars=None if item.in_pieces else item.item.max_chars,
        )
