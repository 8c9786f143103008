"""Port of the engine: a text generator with continuous batching."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from dragoman_worker.errors import EngineDead

if TYPE_CHECKING:
    from dragoman_schemas.results import EngineInfo

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str | tuple[Mapping[str, str], ...]
    user_spans: tuple[tuple[int, int], ...] | None = None
    """Where users' texts are in a content of one string; None: they may be anywhere in it."""


_NO_OPTIONS: Final[Mapping[str, object]] = MappingProxyType({})


class Prompt(NamedTuple):
    """Either chat messages, for the tokenizer's own template, or a raw completion text.

    Texts of users (source, context, terms) may be anywhere in the messages, and in a completion at
    its `user_spans`. A control token that they spell reaches the model as plain characters.
    """

    messages: tuple[Message, ...] = ()
    completion: str = ""
    add_special_tokens: bool = False
    template_options: Mapping[str, object] = _NO_OPTIONS
    user_spans: tuple[tuple[int, int], ...] = ()
    """Where the user texts are in `completion`, in order."""
    answer_start: str = ""
    """Beginning of the answer, with control tokens, after the chat template's own."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits the engine was built with, in sequences and tokens."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    kv_cache_tokens: int
    devices: int = 0
    """GPUs in use; 0 for an engine that needs none."""
    servers: int = 0
    """Servers that others run, in which the engine generates; 0 for one of the worker's own."""
    full_batch: int = 1
    """Sequences per step above which more of them add little throughput."""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine's own counts, as of its last step.

    `waiting` counts requests that do not run: not started, or preempted. `kv_cache_usage` is the
    share of blocks in use, 0-1; None if the engine reports no stats. `preemptions` count since the
    start, each when its sequence resumes.
    """

    running: int
    waiting: int
    kv_cache_usage: float | None
    preemptions: int
    in_transit: int = 0
    """How many of `waiting` are on their way into the engine process or back from it."""
    away: str = ""
    """Why the engine's server gets no requests now; empty while it does, and without a server."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sampling parameters, all explicit: no default of an engine or a model is ever used."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = -1
    seed: int | None = None
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    special_tokens: bool = False
    """Whether the output keeps its control tokens."""
    adapter: str = ""
    """Folder of the LoRA adapter to apply; none if empty."""


class GenerationRequest(NamedTuple):
    """One rendered request. `attempt` counts from 1; `source` is the text inside the prompt.

    `trace_headers` make the engine's own span a child of the caller's; None if it records none.
    """

    request_id: str
    prompt_ids: Sequence[int]
    decoding: Decoding
    source: str
    target_lang: str
    attempt: int
    trace_headers: Mapping[str, str] | None = None


class Generation(NamedTuple):
    """The output of the engine and why it stopped."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int


class Engine(Protocol):
    """A text generator with continuous batching."""

    @property
    def info(self) -> EngineInfo:
        """Name and version of the engine, for results."""
        ...

    @property
    def model(self) -> str:
        """The name of the model, for results."""
        ...

    @property
    def identity(self) -> str:
        """All of engine and model that changes answers, for the memory. Valid after `start`."""
        ...

    @property
    def limits(self) -> EngineLimits:
        """Valid after `start`."""
        ...

    async def start(self) -> None:
        """Build and warm the engine; return when it is ready. Raises SettingsError or Halt."""
        ...

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return the prompt's token ids; control tokens in user texts are neutralised."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without any template."""
        ...

    async def generate(self, request: GenerationRequest) -> Generation:
        """Generate. Cancelling the call aborts the request inside the engine.

        Returns for every finish reason; the caller judges it. Raises TransientEngineError (may
        succeed if repeated), PermanentEngineError (would fail again), TooLong, or EngineDead.
        """
        ...

    def stats(self) -> EngineStats:
        """Return the current stats. Cheap; for admission and metrics."""
        ...

    def signs_of_life(self) -> int:
        """Return a count that rises while the engine works, and stands still while it hangs.

        It may also stand still while nothing is being generated.
        """
        ...

    def declare_dead(self, reason: str) -> None:
        """End an engine that hangs: its processes are killed, and it has died of `reason`.

        Does nothing if the engine is dead already, not started or closed.
        """
        ...

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call `callback` once if the engine dies, even while nothing is being generated."""
        ...

    async def close(self) -> None:
        """Stop the engine's processes. Call only while nothing is being generated. Idempotent."""
        ...
