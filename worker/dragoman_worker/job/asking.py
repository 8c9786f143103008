"""Ask the engine for the pieces of a remedy: planned one after another, generated together."""

from __future__ import annotations

import asyncio
from functools import partial

from dragoman_worker.errors import JobError
from dragoman_worker.flow.concurrent import first_failure
from dragoman_worker.flow.planning import Planning
from dragoman_worker.job.generating import Generator
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.quality import remedies
from dragoman_worker.quality.remedies import Try


class Remedies:
    """Asks for a unit's text again. Its pieces count as planned tokens until they are answered."""

    def __init__(self, *, planner: Planner, generator: Generator, planning: Planning) -> None:
        self._planner = planner
        self._generator = generator
        self._planning = planning

    async def ask(self, plan: Plan, unit: Unit, tried: Try) -> list[str] | None:
        """Return the answer to each piece of a remedy; None if one of them has none.

        The costs are added to those of the unit. Raises Halt.
        """
        pieces: list[Unit] = []
        try:
            return await self._answers(plan, unit, tried, pieces)
        except JobError:
            return None
        finally:
            unit.count(pieces)

    async def _answers(self, plan: Plan, unit: Unit, tried: Try, pieces: list[Unit]) -> list[str]:
        tasks: list[asyncio.Task[str]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for asked in tried.asked:
                    piece = await self._piece(plan, unit, asked.text, tried)
                    pieces.append(piece)
                    tasks.append(group.create_task(self._generator.generate(plan, piece)))
                    tasks[-1].add_done_callback(partial(self._leave, unit, piece.tokens))
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        return [task.result() for task in tasks]

    async def _piece(self, plan: Plan, unit: Unit, text: str, tried: Try) -> Unit:
        """Return a piece of the unit as a request of its own, once there is capacity for it.

        A unit without a waiting piece plans one regardless: its job may run by itself. Raises
        TooLong.
        """
        size = self._planner.request_size(plan, unit, text)
        async with self._planning.turn(size, unit) as turn:
            piece = await turn.plan(size, partial(self._request, plan, unit, text, tried))
            self._planning.tokens.enter(unit, piece.tokens)
        return piece

    def _leave(self, unit: Unit, tokens: int, _: asyncio.Task[str]) -> None:
        self._planning.tokens.leave(unit, tokens)

    def _request(self, plan: Plan, unit: Unit, text: str, tried: Try) -> Unit:
        piece = self._planner.request(
            plan,
            plan.items[unit.item],
            text,
            warmer=tried.warmer,
            seed_step=round(tried.warmer / remedies.WARMER),
            correction=tried.correction,
            protected_tokens=tried.tokens,
        )
        piece.attempts = unit.attempts
        return piece
