"""The ports of the core: protocols of Kafka, Redis and the engine, and the values they exchange."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dragoman_schemas.results import EngineInfo, TranslationResult
from dragoman_schemas.scripts import ClaimAnswer, Quarantine
from dragoman_worker.errors import EngineDead

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]


# --- Kafka ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more jobs may be polled: in all, and per topic; None means of any topic."""

    jobs: int
    priorities: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One record as Kafka delivered it, with the `generation` of its partition's assignment."""

    topic: str
    partition: int
    offset: int
    generation: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    unreadable: str | None = None
    """Why the record cannot be read; None for nearly every record."""

    @property
    def place(self) -> str:
        """``topic/partition/offset``, which names the record in logs and claims."""
        return f"{self.topic}/{self.partition}/{self.offset}"


class Consumer(Protocol):
    """The source of deliveries. At least once; within a generation no offset is delivered twice."""

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """Return up to `capacity` deliveries, perhaps none, within about 0.25 s. Never cancel it.

        Must be called every few seconds even without capacity; then nothing is delivered.
        Raises Halt when the group or the log cannot be used without skipping a record.
        """
        ...

    def complete(self, delivery: Delivery) -> None:
        """Mark the delivery as settled. Idempotent; ignored and counted for an old generation."""
        ...

    def still_assigned(self, delivery: Delivery) -> bool:
        """Return whether the delivery's partition is still assigned in its generation."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that could not be translated, and why (docs/explanation/internals.md)."""

    delivery: Delivery
    code: str
    message: str
    job_id: str | None = None
    """None if no id can be read."""
    attempts: int = 0
    deliveries: int = 0
    first_seen: str | None = None
    """RFC 3339; None means now."""


class DeadLetters(Protocol):
    """The topic of the records that could not be translated."""

    async def publish(self, dead_letter: DeadLetter) -> None:
        """Return once the broker has acknowledged it. Repeating is harmless. Raises Unavailable."""
        ...


class Results(Protocol):
    """The optional topic of every terminal result."""

    async def publish(self, result: TranslationResult) -> None:
        """Return once acknowledged; at least once. Raises Unavailable."""
        ...


# --- Redis ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """An outstanding claim: a fresh nonce, the replay it runs, the TTL of the result in seconds.

    It does not expire and excludes no other worker: poison detection counts the ones left behind.
    """

    job_id: str
    fingerprint: str
    nonce: str
    replay: int = 0
    ttl_s: int = 86_400


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A claim to make, and what the `claim` script needs beside it (docs/reference/scripts.md)."""

    claim: Claim
    place: str
    """Of the record: ``topic/partition/offset``."""
    queued_at: str
    """The record's timestamp, RFC 3339."""
    document_id: str | None = None
    quarantine: Quarantine = Quarantine.NONE


@dataclass(frozen=True, slots=True)
class CancelNotice:
    """A request to cancel a job or a document: exactly one of the two ids is set."""

    job_id: str | None = None
    document_id: str | None = None


class Store(Protocol):
    """The jobs' keys. Every method is idempotent and raises Unavailable if Redis cannot answer."""

    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """Claim the job, or return why not. Raises Conflict if the key is not a job."""
        ...

    async def release(self, claim: Claim) -> None:
        """Remove the claim; the job is `queued` again when no other claim is left."""
        ...

    async def finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        """Write the terminal state and return the result that stands, as durable as configured.

        Returns `result` itself if it was written, another result if the job was terminal already,
        and None if a later replay runs. All three settle the job. Raises Conflict if the key
        belongs to another payload by now, or is not a job.
        """
        ...

    async def confirm(self, job_id: str) -> None:
        """Return once the stored state is as durable as configured, regardless of the writer.

        Raises Conflict if the key is not a job.
        """
        ...

    async def announce(self, result: TranslationResult) -> None:
        """Write the hints that follow a finish, or repeat them: bitmaps and event."""
        ...

    def cancels(self) -> AsyncIterator[CancelNotice]:
        """Yield cancellations from now on, through outages, until the iteration is cancelled."""
        ...


# --- The engine -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str | tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Either chat messages, for the tokenizer's own template, or a raw completion text.

    `user_texts` are the substrings that come from users (source, context, terms): a control token
    spelled inside them must reach the model as plain characters, never as that token.
    """

    messages: tuple[Message, ...] = ()
    completion: str = ""
    add_special_tokens: bool = False
    template_options: Mapping[str, object] = field(default_factory=dict)
    user_texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits the engine was built with, in sequences and tokens."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    kv_cache_tokens: int
    devices: int = 0
    """GPUs in use; 0 for an engine that needs none."""
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
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    exact_length: bool = False
    """For benchmarks with random weights: generate exactly max_tokens, detect no repetition."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One rendered request. `attempt` counts from 1; `source` is the text inside the prompt."""

    request_id: str
    prompt_ids: Sequence[int]
    decoding: Decoding
    source: str
    target_lang: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Generation:
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

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call `callback` once if the engine dies, even while nothing is being generated."""
        ...

    async def close(self) -> None:
        """Stop the engine's processes. Call only while nothing is being generated. Idempotent."""
        ...
