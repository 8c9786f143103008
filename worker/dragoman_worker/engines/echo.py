"""How does an engine behave that needs no model? It gives texts back, late or wrong if asked to."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from typing import Any, Final
from zlib import crc32

from dragoman_connections.settings import SettingsError
from dragoman_schemas.results import EngineInfo
from dragoman_worker.engines.fault_lines import Fault, split_fault
from dragoman_worker.errors import EngineDead, PermanentEngineError, TooLong, TransientEngineError
from dragoman_worker.ports import (
    EngineLimits,
    EngineStats,
    FinishReason,
    Generation,
    GenerationRequest,
    Prompt,
)
from dragoman_worker.settings import EngineSettings

_MAX_NUM_SEQS: Final = 256
_MAX_NUM_BATCHED_TOKENS: Final = 16_384
_MAX_MODEL_LEN: Final = 1_000_000
_KV_TOKENS_A_SEQUENCE: Final = 1_024
_FULL_BATCH: Final = 1_000_000
"""It sleeps for all at once: more of them always do more."""
_CHARS_A_TOKEN: Final = 4
_TURNS_A_BREATH: Final = 64
_EXIT_STATUS: Final = 70


def latency(mean_s: float, spread: float, text: str) -> float:
    """Seconds a text takes: uniform in `mean_s` x (1 +- `spread`), always the same for a text."""
    if not spread:
        return mean_s
    place = crc32(text.encode("utf-8", "surrogatepass")) / 0xFFFF_FFFF
    return mean_s * (1 + spread * (2 * place - 1))


class EchoEngine:
    """An engine of the product for load tests and users' own tests (contract, section 8).

    It admits ``max_num_seqs`` requests at a time, lets the others wait in order, and holds a
    pretend KV cache, so that its readings mean what vLLM's mean. Of ``engine.options`` it heeds
    ``max_num_seqs``, ``max_num_batched_tokens`` and ``max_model_len``.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._mode = settings.echo.mode
        self._latency_s = settings.echo.latency_s
        self._spread = settings.echo.latency_spread
        self._faults = settings.echo.faults
        self._limits = _limits(settings.options)
        self._running = 0
        self._tokens = 0
        self._turns_without_breath = 0
        self._queue: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._held: set[asyncio.Future[None]] = set()
        self._callbacks: list[Callable[[EngineDead], None]] = []
        self._death: EngineDead | None = None

    @property
    def info(self) -> EngineInfo:
        """Name and version, for results."""
        return EngineInfo(name="echo", version=_version())

    @property
    def model(self) -> str:
        """The model's name, for results."""
        return "echo"

    @property
    def limits(self) -> EngineLimits:
        """What it admits."""
        return self._limits

    async def start(self) -> None:
        """Nothing needs to be built."""

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """As many ids as the prompt has pretended tokens."""
        chars = len(prompt.completion) + sum(
            len(message.content)
            if isinstance(message.content, str)
            else sum(len(part.get("text", "")) for part in message.content)
            for message in prompt.messages
        )
        return range(-(-chars // _CHARS_A_TOKEN))

    def count_tokens(self, text: str) -> int:
        """A token every four characters."""
        return -(-len(text) // _CHARS_A_TOKEN)

    async def generate(self, request: GenerationRequest) -> Generation:
        """The source, tagged or as it is, after the latency; or what its fault line asks for."""
        self._raise_if_dead()
        self._raise_if_too_long(request)
        fault, source = split_fault(request.source) if self._faults else (None, request.source)
        tokens = len(request.prompt_ids) + self.count_tokens(source)
        if self._running >= self._limits.max_num_seqs:
            await self._wait_for_turn()
        else:
            self._running += 1
        self._tokens += tokens
        try:
            await self._spend(fault, source)
            self._raise_if_dead()
            return self._answer(request, fault, source)
        finally:
            self._tokens -= tokens
            self._leave()

    def stats(self) -> EngineStats:
        """Its own counts now."""
        return EngineStats(
            running=self._running,
            waiting=len(self._queue),
            kv_cache_usage=min(1.0, self._tokens / self._limits.kv_cache_tokens),
            preemptions=0,
        )

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call back once when a fault line kills the engine; at once if one has already."""
        if self._death is not None:
            callback(self._death)
        else:
            self._callbacks.append(callback)

    async def close(self) -> None:
        """Let nothing in any more; whoever still waits is told that the engine is gone."""
        self._callbacks.clear()
        self._die(EngineDead("the echo engine is closed"))

    def _raise_if_dead(self) -> None:
        if self._death is not None:
            raise EngineDead(str(self._death))

    def _raise_if_too_long(self, request: GenerationRequest) -> None:
        if len(request.prompt_ids) >= self._limits.max_model_len:
            raise TooLong(
                f"the prompt has {len(request.prompt_ids)} tokens, "
                f"the model's context holds {self._limits.max_model_len}"
            )

    async def _wait_for_turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._queue:
                del self._queue[turn]
            elif not turn.cancelled() and turn.exception() is None:
                self._leave()  # the slot had just been handed over
            raise

    def _leave(self) -> None:
        while self._queue:
            turn, _ = self._queue.popitem(last=False)
            if not turn.done():
                turn.set_result(None)  # the slot goes on to the next in line
                return
        self._running -= 1

    async def _spend(self, fault: Fault | None, source: str) -> None:
        seconds = latency(self._latency_s, self._spread, source)
        if fault is not None:
            if fault.name == "hang":
                await self._hold(None)
            seconds += fault.seconds
        if seconds > 0:
            await self._hold(seconds)
            return
        # At once, without a timer; yet whoever calls in a loop must not keep the others out.
        self._turns_without_breath += 1
        if self._turns_without_breath >= _TURNS_A_BREATH:
            self._turns_without_breath = 0
            await asyncio.sleep(0)

    async def _hold(self, seconds: float | None) -> None:
        """Pass the time, for ever with None; raises EngineDead if the engine dies meanwhile."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _finish, over)
        self._held.add(over)
        try:
            await over
        finally:
            self._held.discard(over)
            if timer is not None:
                timer.cancel()

    def _answer(self, request: GenerationRequest, fault: Fault | None, source: str) -> Generation:
        text = source if self._mode == "identity" else f"[{request.target_lang}] {source}"
        finish: FinishReason = "stop"
        if fault is not None:
            text, finish = self._misbehave(fault, request.attempt, source, text)
        tokens = self.count_tokens(text)
        if request.decoding.exact_length and fault is None:
            tokens, finish = request.decoding.max_tokens, "length"
        return Generation(
            text=text,
            finish_reason=finish,
            prompt_tokens=len(request.prompt_ids),
            completion_tokens=tokens,
        )

    def _misbehave(
        self, fault: Fault, attempt: int, source: str, text: str
    ) -> tuple[str, FinishReason]:
        shown = _shown(source, text)
        if fault.name in shown:
            return shown[fault.name]
        match fault.name:
            case "fatal":
                raise PermanentEngineError("the fault line asks for a failure")
            case "transient" if attempt <= fault.times:
                raise TransientEngineError(
                    f"failure {attempt} of {fault.times} that were asked for"
                )
            case "exit":
                os._exit(_EXIT_STATUS)
            case "engine-dead":
                self._die(EngineDead("the fault line asks for the engine's death"))
                raise EngineDead(str(self._death))
            case _:  # sleep and hang, and transient once it has had its failures
                return text, "stop"

    def _die(self, death: EngineDead) -> None:
        if self._death is not None:
            return
        self._death = death
        for future in (*self._queue, *self._held):
            if not future.done():
                future.set_exception(EngineDead(str(death)))
        self._queue.clear()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(death)


def _shown(source: str, text: str) -> dict[str, tuple[str, FinishReason]]:
    """The faults that show in what is returned."""
    return {
        "empty": ("", "stop"),
        "length": (text, "length"),
        "repeat": (text, "repetition"),
        "copy": (source, "stop"),
    }


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _limits(options: dict[str, Any]) -> EngineLimits:
    seqs = _count(options, "max_num_seqs", _MAX_NUM_SEQS)
    context = _count(options, "max_model_len", _MAX_MODEL_LEN)
    return EngineLimits(
        max_num_seqs=seqs,
        max_num_batched_tokens=_count(options, "max_num_batched_tokens", _MAX_NUM_BATCHED_TOKENS),
        max_model_len=context,
        kv_cache_tokens=max(seqs * _KV_TOKENS_A_SEQUENCE, context),
        full_batch=_FULL_BATCH,
    )


def _count(options: dict[str, Any], name: str, default: int) -> int:
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"engine.options.{name}: give a whole number above 0, not {value!r}")
    return value


@cache
def _version() -> str:
    try:
        return metadata.version("dragoman")
    except metadata.PackageNotFoundError:
        return "unknown"
