"""What does the worker's core need from the outside? Protocols, and the values that cross them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dragoman_schemas.results import EngineInfo, JobStatus, TranslationResult
from dragoman_schemas.scripts import Quarantine
from dragoman_worker.errors import EngineDead

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]
Verdict = Literal["run", "done", "conflict", "cancel", "suspect", "poisoned"]


# --- Kafka ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more jobs may be taken in hand: in all, and of each lane. No lanes: of any."""

    jobs: int
    priorities: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One record as Kafka gave it, and where to complete it. `epoch` is its assignment's."""

    topic: str
    partition: int
    offset: int
    generation: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    unreadable: str | None = None
    """Why the record did not arrive as it was written; None for nearly every one."""

    @property
    def place(self) -> str:
        """``topic/partition/offset``: the name of the record."""
        return f"{self.topic}/{self.partition}/{self.offset}"


class Consumer(Protocol):
    """Where deliveries come from. At least once; within an epoch no offset is given twice."""

    async def poll(self, capacity: Capacity) -> Sequence[Delivery]:
        """At most as many as there is room for, perhaps none, within about 0.25 s.

        Never cancel it.

        Must be called every few seconds even with no room, and nothing is delivered then.
        Raises Halt when the group or the log cannot be used without skipping a record.
        """
        ...

    def complete(self, delivery: Delivery) -> None:
        """The delivery needs nobody any more. Idempotent; of an old epoch a counted no-op."""
        ...

    def still_assigned(self, delivery: Delivery) -> bool:
        """Whether the delivery's partition is still ours in the delivery's epoch."""
        ...


class DeadLetters(Protocol):
    """Where records go that could not be translated."""

    async def publish(
        self,
        delivery: Delivery,
        *,
        code: str,
        message: str,
        job_id: str | None,
        attempts: int,
        deliveries: int,
        first_seen: str | None,
    ) -> None:
        """Return once the broker has acknowledged it. Repeating is harmless. Raises Unavailable."""
        ...


class Results(Protocol):
    """The optional topic of every terminal result, for those who stream."""

    async def publish(self, result: TranslationResult) -> None:
        """Return once acknowledged; at least once. Raises Unavailable."""
        ...


# --- Redis ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """Our claim on a job: the nonce of this delivery, the replay it runs, the result's TTL."""

    job_id: str
    fingerprint: str
    nonce: str
    replay: int = 0
    ttl_s: int = 86_400


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Arguments of the `claim` script (contract, section 3)."""

    job_id: str
    fingerprint: str
    nonce: str
    place: str
    replay: int
    queued_at: str
    document_id: str | None = None
    quarantine: Quarantine = Quarantine.NONE


@dataclass(frozen=True, slots=True)
class ClaimReply:
    """What the store said. `result` is the stored one, only with verdict `done`."""

    verdict: Verdict
    deliveries: int
    replays: int
    queued_at: str | None
    started_at: str | None
    status: JobStatus | None = None
    result: TranslationResult | None = None
    document_cancelled: bool = False
    suspicions: int = 0
    """With `suspect` and `poisoned`: claims of this record that crashes left behind."""


@dataclass(frozen=True, slots=True)
class CancelNotice:
    """A canceller's wish: exactly one of the two ids is set."""

    job_id: str | None = None
    document_id: str | None = None


class Store(Protocol):
    """The jobs' keys. Every method is idempotent; raises Unavailable if Redis cannot answer."""

    async def claim(self, request: ClaimRequest) -> ClaimReply:
        """Claim the job, or learn why not. Raises Conflict if the key holds no job."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give the claim up; the job is `queued` again when no other claim is left."""
        ...

    async def finish(self, claim: Claim, result: TranslationResult) -> TranslationResult | None:
        """Write the terminal state and return the result that stands, as durable as asked.

        That is `result` itself if it was written, another one if a terminal state stood already,
        None if a later replay runs. All three settle the job. Raises Conflict if the key belongs
        to another payload by now, or holds no job.
        """
        ...

    async def confirm(self, job_id: str) -> None:
        """Return once the state that stands is as durable as asked, whoever wrote it.

        Raises Conflict if the key holds no job.
        """
        ...

    async def announce(self, result: TranslationResult) -> None:
        """Write the hints that follow a finish, or repeat them: bitmaps and event."""
        ...

    def cancels(self) -> AsyncIterator[CancelNotice]:
        """Cancellations as they come, from now on; survives outages; ends when cancelled."""
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
    """What the engine was really built with, counted in sequences and tokens."""

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    kv_cache_tokens: int
    devices: int = 0
    """GPUs it computes on; 0 for an engine that needs none."""
    full_batch: int = 1
    """Sequences a step from which more of them add little to what it does in a second."""


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine's own counts, as of its last step.

    `waiting` is all it has that does not run: not begun, or preempted. `kv_cache_usage` is 0-1, the
    blocks that hold somebody's tokens; None if the engine tells nothing of itself. `preemptions`
    count since the start, each when its sequence goes on.
    """

    running: int
    waiting: int
    kv_cache_usage: float | None
    preemptions: int
    in_transit: int = 0
    """Of those that wait, how many are on their way into the engine, or out of it already."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sampling parameters, all explicit: no engine's or model's default is ever used."""

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
    """Benchmarks with random weights: write exactly max_tokens, detect no repetition."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One text, rendered. `attempt` counts from 1; `source` is what the prompt carries."""

    request_id: str
    prompt_ids: Sequence[int]
    decoding: Decoding
    source: str
    target_lang: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Generation:
    """What the engine wrote, and why it stopped."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int


class Engine(Protocol):
    """A text generator with continuous batching."""

    @property
    def info(self) -> EngineInfo:
        """Name and version, for results."""
        ...

    @property
    def model(self) -> str:
        """The model's name, for results."""
        ...

    @property
    def limits(self) -> EngineLimits:
        """Valid after `start`."""
        ...

    async def start(self) -> None:
        """Build and warm the engine; returns when it answers. Raises SettingsError or Halt."""
        ...

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """The prompt as token ids, control tokens of the user's text neutralised. Synchronous."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has, without any template."""
        ...

    async def generate(self, request: GenerationRequest) -> Generation:
        """Generate. Cancelling the call aborts the request inside the engine.

        Returns whatever reason the engine stopped for; judging it is the caller's.
        Raises EngineStumbled (may succeed if asked again), EngineFailed (would fail again),
        TooLong, or EngineDead.
        """
        ...

    def stats(self) -> EngineStats:
        """Cheap; for admission and metrics."""
        ...

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call back once if the engine dies, even while nothing is being generated."""
        ...

    async def close(self) -> None:
        """Stop the engine's processes. Call only when nothing is being generated. Idempotent."""
        ...
