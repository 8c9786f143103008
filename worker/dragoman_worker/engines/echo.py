"""Engine without a model: returns its input, after a delay or with a fault if requested."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import crc32

from dragoman_connections.settings import SettingsError
from dragoman_schemas.results import EngineInfo
from dragoman_worker.engines.echo_faults import Fault, StallFile, split_fault
from dragoman_worker.engines.echo_table import EchoTable, load_table
from dragoman_worker.engines.exact_lengths import exact_length
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
from dragoman_worker.version import version

_CHARS_PER_TOKEN: Final = 4
_GENERATIONS_PER_YIELD: Final = 64
_EXIT_STATUS: Final = 70


def latency(mean_s: float, spread: float, text: str) -> float:
    """Return the seconds for a text: uniform in `mean_s` x (1 +- `spread`), fixed by its hash."""
    if not spread:
        return mean_s
    fraction = crc32(text.encode("utf-8", "surrogatepass")) / 0xFFFF_FFFF
    return mean_s * (1 + spread * (2 * fraction - 1))


class EchoEngine:
    """An engine of the product for load tests and users' own tests (docs/reference/settings.md).

    It runs up to ``max_num_seqs`` requests at once, queues the others in order, and simulates a
    KV cache, so its stats mean the same as vLLM's. From ``engine.options`` it reads
    ``max_num_seqs``, ``max_num_batched_tokens`` and ``max_model_len``, and ignores the rest.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._mode = settings.echo.mode
        self._latency_s = settings.echo.latency_s
        self._spread = settings.echo.latency_spread
        self._faults = settings.echo.faults
        self._exact_lengths = settings.exact_lengths
        self._identity = f"echo/{settings.echo.mode}/{settings.echo.faults}"
        self._table_file = settings.echo.table if self._mode == "table" else None
        self._table: EchoTable | None = None
        self._limits = echo_limits(settings.options)
        self._running = 0
        self._tokens = 0
        self._generations_since_yield = 0
        self._queue: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._sleeping: set[asyncio.Future[None]] = set()
        self._signs = 0
        self._working = 0
        """Requests that sleep and will wake up by themselves."""
        self._stall = StallFile(settings.echo.stall_file)
        self._callbacks: list[Callable[[EngineDead], None]] = []
        self._death: EngineDead | None = None

    @property
    def info(self) -> EngineInfo:
        """Name and version that results report."""
        return EngineInfo(name="echo", version=version())

    @property
    def model(self) -> str:
        """Model name that results report."""
        return "echo"

    @property
    def identity(self) -> str:
        """Mode, faults and table; other settings change no answer."""
        return self._identity

    @property
    def limits(self) -> EngineLimits:
        """Batch, context and KV cache limits."""
        return self._limits

    async def start(self) -> None:
        """Read the table, in mode ``table``. Raises SettingsError."""
        self._stall.start()
        await self._stall.gone()
        if self._table_file is not None:
            self._table = await asyncio.to_thread(load_table, self._table_file)
            self._identity += f"/{self._table.digest}"

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return one id per simulated token of the prompt."""
        chars = len(prompt.completion) + sum(
            len(message.content)
            if isinstance(message.content, str)
            else sum(len(part.get("text", "")) for part in message.content)
            for message in prompt.messages
        )
        return range(-(-chars // _CHARS_PER_TOKEN))

    def count_tokens(self, text: str) -> int:
        """Count one token per four characters, rounded up."""
        return -(-len(text) // _CHARS_PER_TOKEN)

    async def generate(self, request: GenerationRequest) -> Generation:
        """Return the answer of the mode after the latency, or execute the source's fault line.

        Raises TooLong, EngineDead, and what the fault lines ``fatal`` and ``transient`` request.
        """
        self._raise_if_dead()
        self._raise_if_too_long(request)
        fault, source = split_fault(request.source) if self._faults else (None, request.source)
        tokens = len(request.prompt_ids) + self.count_tokens(source)
        if self._running >= self._limits.max_num_seqs:
            await self._wait_for_slot()
        else:
            self._running += 1
        self._tokens += tokens
        try:
            await self._delay(fault, source)
            if self._stall.stalled:
                await self._stall.gone()
            self._raise_if_dead()
            self._signs += 1
            return self._answer(request, fault, source)
        finally:
            self._tokens -= tokens
            self._free_slot()

    def stats(self) -> EngineStats:
        """Return the current counts; waiting requests are those without a slot."""
        return EngineStats(
            running=self._running,
            waiting=len(self._queue),
            kv_cache_usage=min(1.0, self._tokens / self._limits.kv_cache_tokens),
            preemptions=0,
        )

    def signs_of_life(self) -> int:
        """Return the answers, and the looks at an engine in which a request sleeps.

        A request that hangs gives no sign, and nothing does while the stall file exists.
        """
        if self._working and not self._stall.stalled:
            self._signs += 1
        return self._signs

    def declare_dead(self, reason: str) -> None:
        """Fail all requests with EngineDead, now and from now on."""
        self._die(EngineDead(f"the echo engine {reason}"))

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call back once when the engine dies; immediately if it is dead."""
        if self._death is not None:
            callback(self._death)
        else:
            self._callbacks.append(callback)

    async def close(self) -> None:
        """Refuse new requests and fail those in flight with EngineDead. Idempotent."""
        self._callbacks.clear()
        self._die(EngineDead("the echo engine is closed"))

    def _raise_if_dead(self) -> None:
        if self._death is not None:
            raise EngineDead(str(self._death))

    def _raise_if_too_long(self, request: GenerationRequest) -> None:
        if len(request.prompt_ids) >= self._limits.max_model_len:
            raise TooLong(
                f"the prompt has {len(request.prompt_ids)} tokens, "
                f"the model's context is {self._limits.max_model_len}"
            )

    async def _wait_for_slot(self) -> None:
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue[slot] = None
        try:
            await slot
        except asyncio.CancelledError:
            if slot in self._queue:
                del self._queue[slot]
            elif not slot.cancelled() and slot.exception() is None:
                self._free_slot()  # it was handed over just before the cancellation
            raise

    def _free_slot(self) -> None:
        """Pass the slot to the first request in the queue, which then counts as running."""
        while self._queue:
            slot, _ = self._queue.popitem(last=False)
            if not slot.done():
                slot.set_result(None)
                return
        self._running -= 1

    async def _delay(self, fault: Fault | None, source: str) -> None:
        seconds = latency(self._latency_s, self._spread, source)
        if fault is not None:
            if fault.name == "hang":
                await self._sleep(None)
            seconds += fault.seconds
        if seconds > 0:
            await self._sleep(seconds)
            return
        # No timer at latency 0; but a caller in a loop must not starve the other tasks.
        self._generations_since_yield += 1
        if self._generations_since_yield >= _GENERATIONS_PER_YIELD:
            self._generations_since_yield = 0
            await asyncio.sleep(0)

    async def _sleep(self, seconds: float | None) -> None:
        """Sleep, forever if `seconds` is None. Raises EngineDead if the engine dies meanwhile."""
        loop = asyncio.get_running_loop()
        wake_up: asyncio.Future[None] = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _finish, wake_up)
        self._sleeping.add(wake_up)
        self._working += timer is not None
        try:
            await wake_up
        finally:
            self._sleeping.discard(wake_up)
            self._working -= timer is not None
            if timer is not None:
                timer.cancel()

    def _answer(self, request: GenerationRequest, fault: Fault | None, source: str) -> Generation:
        text = self._text(request, source)
        finish: FinishReason = "stop"
        if fault is not None:
            text, finish = self._misbehave(fault, request.attempt, source, text)
        tokens = self.count_tokens(text)
        if fault is None:
            tokens = exact_length(self._exact_lengths, request) or tokens
        return Generation(
            text=text,
            finish_reason=finish,
            prompt_tokens=len(request.prompt_ids),
            completion_tokens=tokens,
        )

    def _text(self, request: GenerationRequest, source: str) -> str:
        if self._mode == "identity":
            return source
        table, lang = self._table, request.target_lang
        listed = None if table is None else table.answer(source, lang, request.attempt)
        return f"[{lang}] {source}" if listed is None else listed

    def _misbehave(
        self, fault: Fault, attempt: int, source: str, text: str
    ) -> tuple[str, FinishReason]:
        visible = _visible_faults(source, text)
        if fault.name in visible:
            return visible[fault.name]
        match fault.name:
            case "fatal":
                raise PermanentEngineError("the fault line requests a permanent failure")
            case "transient" if attempt <= fault.times:
                raise TransientEngineError(
                    f"the fault line requests failure {attempt} of {fault.times}"
                )
            case "exit":
                os._exit(_EXIT_STATUS)
            case "engine-dead":
                self._die(EngineDead("the fault line requests the engine's death"))
                raise EngineDead(str(self._death))
            case _:  # sleep, hang, and transient after its failures
                return text, "stop"

    def _die(self, death: EngineDead) -> None:
        if self._death is not None:
            return
        self._death = death
        self._stall.close()
        for future in (*self._queue, *self._sleeping):
            if not future.done():
                future.set_exception(EngineDead(str(death)))
        self._queue.clear()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(death)


def _visible_faults(source: str, text: str) -> dict[str, tuple[str, FinishReason]]:
    """Return the text and finish reason of the faults that change the generation."""
    return {
        "empty": ("", "stop"),
        "length": (text, "length"),
        "repeat": (text, "repetition"),
        "copy": (source, "stop"),
    }


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_MAX_NUM_SEQS: Final = 256
_MAX_NUM_BATCHED_TOKENS: Final = 16_384
_MAX_MODEL_LEN: Final = 1_000_000
_KV_TOKENS_PER_SEQUENCE: Final = 1_024
_FULL_BATCH: Final = 1_000_000
"""Sequences do not slow each other down: throughput grows with their number without a limit."""


def echo_limits(options: dict[str, Any]) -> EngineLimits:
    """Return the limits; options that the echo engine does not have are ignored.

    Raises SettingsError.
    """
    seqs = _count(options, "max_num_seqs", _MAX_NUM_SEQS)
    context = _count(options, "max_model_len", _MAX_MODEL_LEN)
    return EngineLimits(
        max_num_seqs=seqs,
        max_num_batched_tokens=_count(options, "max_num_batched_tokens", _MAX_NUM_BATCHED_TOKENS),
        max_model_len=context,
        kv_cache_tokens=max(seqs * _KV_TOKENS_PER_SEQUENCE, context),
        full_batch=_FULL_BATCH,
    )


def _count(options: dict[str, Any], name: str, default: int) -> int:
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"engine.options.{name}: give a whole number above 0, not {value!r}")
    return value
