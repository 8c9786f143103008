"""The `Engine` port implemented by vLLM's AsyncLLMEngine."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from dragoman_schemas.results import EngineInfo
from dragoman_worker.engines.exact_lengths import completed, exact_length
from dragoman_worker.engines.one_line import one_line
from dragoman_worker.engines.sample import ask_sample, is_judged
from dragoman_worker.engines.vllm import arguments, core_process, identity, profiles
from dragoman_worker.engines.vllm.launch import Built, Launch
from dragoman_worker.engines.vllm.outputs import decodes_once, generation_of, text_of
from dragoman_worker.engines.vllm.patches.sockets import Messages, close_sockets, stop_outputs
from dragoman_worker.engines.vllm.patches.table import SIGNS_OF_LIFE, SOCKETS
from dragoman_worker.engines.vllm.sampling import allowed_repetitions, sampling_params
from dragoman_worker.engines.vllm.start_failures import WrongAnswer
from dragoman_worker.engines.vllm.stats import VllmGauges
from dragoman_worker.errors import EngineDead, Halt, PermanentEngineError, TooLong, WorkerError
from dragoman_worker.ports import (
    Decoding,
    EngineLimits,
    EngineStats,
    Generation,
    GenerationRequest,
    Prompt,
)
from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.table import profiles_of
from dragoman_worker.settings import EngineSettings

_WARM_UP_S: Final = 600.0
_WATCH_S: Final = 1.0
_ABORT_S: Final = 5.0
_CPU_SIGN_S: Final = 5.0
"""Computing for this long is one sign of life. An idle or a stopped process does not get there."""
_SHUTDOWN_S: Final = 20.0
_FORGET_TRIES: Final = 10
_FORGET_EVERY_S: Final = 0.1
_NOT_SAMPLED: Final = {"traceparent": f"00-{1:032x}-{1:016x}-00"}
"""A parent that is not recorded. Without any, vLLM would record a root for every request."""
_LONG_SOURCE_CHARS: Final = 2_000
"""A longer source holds the event loop up for over 2 ms while its repetitions are counted."""


class VllmEngine:
    """vLLM in a child process, fed through AsyncLLMEngine.

    `log_level` is ``log.level``; only at ``debug`` vLLM's own log is shown below errors.
    """

    def __init__(self, settings: EngineSettings, *, log_level: str = "info") -> None:
        self._settings = settings
        self._verbose = log_level == "debug"
        self._built: Built | None = None
        self._version = "unknown"
        self._limits: EngineLimits | None = None
        self._identity = ""
        self._gauges = VllmGauges()
        self._messages = Messages()
        self._numbers = itertools.count()
        self._in_flight: set[str] = set()
        self._adapters: Mapping[str, Any] = {}
        self._callbacks: list[Callable[[EngineDead], None]] = []
        self._death: EngineDead | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def info(self) -> EngineInfo:
        """Name and version that results report; the version is known after `start`."""
        return EngineInfo(name="vllm", version=self._version)

    @property
    def model(self) -> str:
        """Model name that results report."""
        return arguments.model_name(self._settings)

    @property
    def identity(self) -> str:
        """Digest of model and options (see identity.py); known after `start`."""
        return self._identity

    @property
    def limits(self) -> EngineLimits:
        """Limits that vLLM was actually built with; raises RuntimeError before `start`."""
        if self._limits is None:
            raise RuntimeError("the engine's limits are known only after start()")
        return self._limits

    async def start(self) -> None:
        """Build vLLM and run one warm-up request. Raises SettingsError or Halt, in one line."""
        self._built = await Launch(self._settings, verbose=self._verbose).built()
        self._version = self._built.version
        config, on_cpu = self._built.client.vllm_config, self._built.on_cpu
        self._limits = arguments.real_limits(config, on_cpu=on_cpu)
        await asyncio.to_thread(profiles.check_profiles, self._settings, self._tokenizer())
        self._adapters = await profiles.loaded_adapters(self._built.client, self._settings)
        self._identity = await asyncio.to_thread(identity.engine_identity, self._settings)
        if SIGNS_OF_LIFE in self._built.patches:
            self._messages.watch(self._built.client)
        await self._warm_up()
        self._watch = asyncio.create_task(self._detect_death(), name="vllm-watch")

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return the prompt's token ids; control tokens spelled in user text are neutralised.

        Raises PermanentEngineError if the model's chat template refuses the prompt, as that of
        another family than the profile's may.
        """
        tokenizer = self._tokenizer()
        try:
            return tokens.encode(prompt, tokenizer)
        except WorkerError:
            raise
        except Exception as error:
            reason = one_line(f"{type(error).__name__}: {error}", max_chars=200)
            raise PermanentEngineError(
                f"profile: the model's chat template refuses its prompt: {reason}"
            ) from error

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without any template."""
        return tokens.count(text, self._tokenizer())

    async def generate(self, request: GenerationRequest) -> Generation:
        """Generate the complete output, without intermediate outputs.

        If fewer than `max_tokens` tokens of the context remain, the output is cut off there with
        finish reason ``length``; with `engine.exact_lengths` TooLong is raised. Cancelling aborts
        the request in vLLM. Raises WorkerError.
        """
        built = self._alive()
        exact = exact_length(self._settings.exact_lengths, request)
        self._raise_if_too_long(request, exact or 1)
        _raise_if_deadly(request.decoding, on_cpu=built.on_cpu)
        name = f"{request.request_id}-{next(self._numbers)}"
        self._in_flight.add(name)
        try:
            repetitions = await _allowed_repetitions(request.source)
            tokenizer, decoding = built.client.get_tokenizer(), request.decoding
            once = decodes_once(tokenizer, decoding)
            params = sampling_params(
                built.sampling, decoding, repetitions, exact=exact, detokenize=not once
            )
            lora = profiles.adapter_keyword(self._adapters, decoding.adapter)
            traced = self._trace_headers(request)
            prompt = {"type": "token", "prompt_token_ids": list(request.prompt_ids)}
            outputs = [
                output
                async for output in built.client.generate(prompt, params, name, **lora, **traced)
            ]
            text = partial(text_of, tokenizer, decoding=decoding) if once else None
            generation = generation_of(outputs, text)
            return generation if exact is None else completed(generation)
        except asyncio.CancelledError:
            await self._abort([name])
            raise
        except WorkerError:
            raise
        except Exception as error:
            raise self._failure(built, error) from error
        finally:
            self._in_flight.discard(name)

    def stats(self) -> EngineStats:
        """Return vLLM's counts, limited to the requests in flight here."""
        return self._gauges.stats(len(self._in_flight), self.limits.max_num_seqs)

    def signs_of_life(self) -> int:
        """Return the messages from vLLM's processes, and on a CPU the time that they compute.

        There a single step of a large model may take minutes. A GPU's process spins while it waits
        for a GPU that hangs.
        """
        messages = self._messages.count()
        if self._built is None or not self._built.on_cpu:
            return messages
        return messages + int(core_process.cpu_seconds(self._built.processes) / _CPU_SIGN_S)

    def declare_dead(self, reason: str) -> None:
        """Kill vLLM's processes; requests fail with EngineDead, now and from now on."""
        if self._built is not None:
            self._mark_dead(self._built, reason)

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call back once when the engine's process is gone; immediately if it already is."""
        if self._death is not None:
            callback(self._death)
        else:
            self._callbacks.append(callback)

    async def forget_prompts(self) -> None:
        """Empty the prefix cache, so that a repeated prompt costs as much as a new one.

        For measurements; effective only while nothing is being generated. Errors of a dead engine
        are ignored.
        """
        with suppress(Exception):
            # Recently aborted requests may hold blocks for one more step.
            for _ in range(_FORGET_TRIES):
                if await self._alive().client.reset_prefix_cache() is not False:
                    return
                await asyncio.sleep(_FORGET_EVERY_S)

    async def close(self) -> None:
        """Terminate the engine's processes in any state, within about 25 s. Idempotent."""
        built, self._built = self._built, None
        self._callbacks.clear()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if built is None:
            return
        if self._death is None:
            await self._abort(self._in_flight, built)
        if SOCKETS in built.patches:
            await stop_outputs(built.client)
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_S):
                await asyncio.to_thread(built.client.shutdown)
        await asyncio.to_thread(core_process.kill_and_wait, built.processes)
        if SOCKETS in built.patches:
            await asyncio.to_thread(close_sockets, built.client)
        built.folder.cleanup()

    def _trace_headers(self, request: GenerationRequest) -> dict[str, Any]:
        """Return vLLM's argument for its own span; without a sampled parent it records none."""
        if self._settings.options.get("otlp_traces_endpoint") is None:
            return {}
        return {"trace_headers": request.trace_headers or _NOT_SAMPLED}

    def _alive(self) -> Built:
        if self._death is not None:
            raise EngineDead(str(self._death))
        if self._built is None:
            raise EngineDead("the engine is not running")
        return self._built

    def _tokenizer(self) -> Any:
        return self._alive().client.get_tokenizer()

    def _raise_if_too_long(self, request: GenerationRequest, output: int) -> None:
        length, context = len(request.prompt_ids), self.limits.max_model_len
        if length + output > context:
            raise TooLong(
                f"the prompt has {length} tokens and the output needs at least {output}; "
                f"the model's context is {context}"
            )

    async def _warm_up(self) -> None:
        """Run requests, so that an engine that would fail its first ones fails its start."""
        prompt = self._tokenizer().encode("Hello.", add_special_tokens=False)
        request = GenerationRequest("warm-up", prompt, Decoding(max_tokens=4), "", "", 1)
        try:
            async with asyncio.timeout(_WARM_UP_S):
                await self.generate(request)
                fault = await self._sample_fault()
        except (WorkerError, TimeoutError) as error:
            reason = str(error) or f"no answer within {_WARM_UP_S:.0f} s"
            raise Halt(f"the engine failed its first request: {reason}") from error
        if fault is not None:
            raise WrongAnswer(
                f"engine.model: {self.model} answers a test sentence {fault}; its files may be "
                "incomplete or damaged, or engine.options (quantization, dtype) do not suit it"
            )

    async def _sample_fault(self) -> str | None:
        if not is_judged(self._settings):
            return None
        profile = profiles_of(self._settings)[self._settings.profile]
        return await ask_sample(self, profile, judged=True)

    async def _abort(self, names: Iterable[str], built: Built | None = None) -> None:
        """Abort by name: vLLM itself does not abort a request cancelled while it is being added."""
        built = built or self._built
        wanted = list(names)
        if built is None or not wanted:
            return
        with suppress(Exception):  # a dead engine needs no abort
            async with asyncio.timeout(_ABORT_S):
                await built.client.abort(wanted)

    def _failure(self, built: Built, error: Exception) -> WorkerError:
        if built.failures.is_death(error):
            return EngineDead(str(self._mark_dead(built)))
        return built.failures.translate(error)

    def _mark_dead(self, built: Built, reason: str | None = None) -> EngineDead:
        if self._death is None:
            if reason is None:
                end = core_process.exit_reason(built.processes, built.report)
                reason = f"is gone: {end}"
            self._death = EngineDead(f"vLLM's engine process {reason}")
            core_process.kill(built.processes)
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self._death)
        return self._death

    async def _detect_death(self) -> None:
        """Detect the engine's death while nothing is being generated."""
        while self._built is not None and self._death is None:
            if _is_dead(self._built):
                self._mark_dead(self._built)
            await asyncio.sleep(_WATCH_S)


def _raise_if_deadly(decoding: Decoding, *, on_cpu: bool) -> None:
    """Refuse seeded sampling on CPUs: it kills vLLM's process if a prompt is read in two steps.

    The runner then rewinds the request's random generator, which torch supports only on GPUs; seen
    with vLLM 0.32. Greedy decoding uses no generator.
    """
    if on_cpu and decoding.seed is not None and decoding.temperature > 0:
        raise PermanentEngineError(
            "sampling.seed: vLLM on CPUs cannot sample with a seed; leave it out, or set "
            "sampling.temperature to 0"
        )


async def _allowed_repetitions(source: str) -> int:
    """Return the repetitions that `source` allows; a long text is counted beside the loop."""
    if len(source) <= _LONG_SOURCE_CHARS:
        return allowed_repetitions(source)
    return await asyncio.to_thread(allowed_repetitions, source)


def _is_dead(built: Built) -> bool:
    exited = not all(process.is_alive() for process in built.processes)
    return exited or bool(built.client.errored)
