"""An engine whose answers and times follow a script per text."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman_schemas.results import EngineInfo
from dragoman_worker.errors import EngineDead
from dragoman_worker.ports import (
    EngineLimits,
    EngineStats,
    FinishReason,
    Generation,
    GenerationRequest,
    Prompt,
)


@dataclass(frozen=True, slots=True)
class Says:
    """An answer: the text and the finish reason."""

    text: str
    finish_reason: FinishReason = "stop"
    completion_tokens: int | None = None


Step = Says | BaseException | asyncio.Event
"""An answer to give, an error to raise, or an event to wait for before the next step."""


class ScriptedEngine:
    """Answers `<text>` with `<TEXT>` unless a script sets another step. A token is a word."""

    def __init__(self, *, max_model_len: int = 10_000) -> None:
        self.info = EngineInfo(name="scripted", version="1")
        self.model = "scripted"
        self.identity = "scripted"
        self.limits = EngineLimits(
            max_num_seqs=8,
            max_num_batched_tokens=1_000,
            max_model_len=max_model_len,
            kv_cache_tokens=100_000,
        )
        self.requests: list[GenerationRequest] = []
        self.inside: list[str] = []
        self.most_inside = 0
        self.aborted: list[str] = []
        self.silent = False
        self._signs = 0
        self._scripts: dict[str, deque[Step]] = {}
        self._callbacks: list[Callable[[EngineDead], None]] = []

    # --- for tests --------------------------------------------------------------------------------

    def script(self, source: str, *steps: Step) -> None:
        """Set the steps for the text `source`, one per request; then comes the usual answer."""
        self._scripts[source] = deque(steps)

    def hold(self, *sources: str) -> asyncio.Event:
        """Keep these texts inside the engine until the event is set."""
        released = asyncio.Event()
        for source in sources:
            self.script(source, released)
        return released

    def die(self, death: EngineDead) -> None:
        """Call back everything registered by `on_death`."""
        for callback in self._callbacks:
            callback(death)

    def asked(self, source: str) -> int:
        """Return the number of requests for a text."""
        return sum(request.source == source for request in self.requests)

    # --- the port ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Do nothing: there is no engine to build."""

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Count one token per word."""
        return range(self.count_tokens(prompt.completion))

    def count_tokens(self, text: str) -> int:
        """Count one token per word."""
        return len(text.split())

    async def generate(self, request: GenerationRequest) -> Generation:
        """Follow the script."""
        self.requests.append(request)
        self.inside.append(request.source)
        self.most_inside = max(self.most_inside, len(self.inside))
        try:
            await asyncio.sleep(0)
            return await self._follow(request)
        except asyncio.CancelledError:
            self.aborted.append(request.source)
            raise
        finally:
            self.inside.remove(request.source)

    async def _follow(self, request: GenerationRequest) -> Generation:
        script = self._scripts.get(request.source, deque())
        while script:
            step = script.popleft()
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, Says):
                return self._generation(request, step)
            else:
                raise step
        return self._generation(request, Says(request.source.upper()))

    def _generation(self, request: GenerationRequest, says: Says) -> Generation:
        tokens = says.completion_tokens
        return Generation(
            text=says.text,
            finish_reason=says.finish_reason,
            prompt_tokens=len(request.prompt_ids),
            completion_tokens=self.count_tokens(says.text) if tokens is None else tokens,
        )

    def stats(self) -> EngineStats:
        """Return the current counts."""
        return EngineStats(len(self.inside), 0, 0.0, 0)

    def signs_of_life(self) -> int:
        """Rise at every look, unless `silent` is set."""
        self._signs += not self.silent
        return self._signs

    def declare_dead(self, reason: str) -> None:
        """Die."""
        self.die(EngineDead(f"the engine {reason}"))

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Register a callback for `die`."""
        self._callbacks.append(callback)

    async def close(self) -> None:
        """Do nothing: there is no engine to stop."""
