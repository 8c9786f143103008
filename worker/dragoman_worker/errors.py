"""Failures of the worker, each with its error code, and what becomes of the job.

Every class of a job's failure carries its `code` (published in results); what the worker does goes
by the class. A new code also needs its name in `dragoman_schemas.failures`; CONTRIBUTING.md has the
steps::

    WorkerError
    ├── JobError                 reject   this job, or one item of it, cannot be translated
    │   ├── InvalidJob           reject   invalid_job
    │   ├── UnsupportedSchema    reject   unsupported_schema
    │   ├── UnsupportedLanguage  reject   unsupported_language
    │   ├── UnknownProfile       reject   unknown_profile
    │   ├── UnknownGlossary      reject   unknown_glossary
    │   ├── TooLong              reject   too_long
    │   ├── Conflict             reject   conflict
    │   ├── QualityFailed        reject   quality_failed
    │   ├── EngineError                   engine_failed
    │   │   ├── PermanentEngineError  reject  would fail again
    │   │   │   └── CutOff            reject  reached max_tokens, and a replay would too
    │   │   └── TransientEngineError  retry   may succeed if repeated
    │   ├── Poisoned             reject   poisoned
    │   ├── DeadlineExceeded     expire   deadline_exceeded
    │   ├── Cancelled            cancel   cancelled
    │   └── Internal             reject   internal: a defect of ours, not of the job
    ├── Unavailable              wait     Kafka, Redis, the engine's server: never costs an attempt
    │   └── UnknownReply         wait     for as long as Redis answers no other script
    ├── Unencodable              reject   a result that JSON in UTF-8 cannot hold
    └── Halt                     halt     the process exits non-zero, settles nothing more
        ├── EngineDead           halt
        │   └── ServersRefuse    halt     no job is to blame: all are released
        ├── RecordsDropped       halt     no restart helps: the broker's memory was too small
        └── Unreachable          halt     broker, Redis or the engine's server, at startup
"""

from __future__ import annotations

from typing import ClassVar, Final

from dragoman_schemas.failures import RETRYABLE, FailureCode


class WorkerError(Exception):
    """Base of all errors that the worker raises deliberately."""


class JobError(WorkerError):
    """One job or item cannot be translated. The job's owner reads the message."""

    code: ClassVar[FailureCode] = FailureCode.INTERNAL
    stage: ClassVar[str] = "translate"

    @property
    def message(self) -> str:
        """The cause and the remedy; the code if no text was given."""
        return str(self) or self.code.value

    @property
    def retryable(self) -> bool:
        """Whether a replay of the same bytes may succeed."""
        return self.code in RETRYABLE


class InvalidJob(JobError):
    """The record is not a valid TranslationJob."""

    code = FailureCode.INVALID_JOB
    stage = "decode"


class UnsupportedSchema(JobError):
    """The record has a `schema` that this worker does not support."""

    code = FailureCode.UNSUPPORTED_SCHEMA
    stage = "decode"


class UnsupportedLanguage(JobError):
    """The tag is no language, or one that the profile does not translate."""

    code = FailureCode.UNSUPPORTED_LANGUAGE
    stage = "decode"


class UnknownProfile(JobError):
    """The job asks for a prompt profile this worker does not have."""

    code = FailureCode.UNKNOWN_PROFILE
    stage = "decode"


class UnknownGlossary(JobError):
    """The job names a stored glossary that does not exist."""

    code = FailureCode.UNKNOWN_GLOSSARY
    stage = "decode"


class TooLong(JobError):
    """A text does not fit the model's context and cannot be split."""

    code = FailureCode.TOO_LONG


REUSED: Final = (
    "job_id: its key ran out while the job was in flight, and it belongs to another payload by "
    "now; give every job its own id, and keep redis.live_ttl_s above the longest run"
)


class Conflict(JobError):
    """The id belongs to another payload, or its Redis key is not a job."""

    code = FailureCode.CONFLICT
    stage = "claim"


class QualityFailed(JobError):
    """The translation did not pass the gates."""

    code = FailureCode.QUALITY_FAILED
    stage = "judge"


class EngineError(JobError):
    """The engine returned no usable translation."""

    code = FailureCode.ENGINE_FAILED
    stage = "engine"


class PermanentEngineError(EngineError):
    """The engine would fail again if the request were repeated."""


class CutOff(PermanentEngineError):
    """The output reached max_tokens of the job, the worker or the model."""

    @property
    def retryable(self) -> bool:
        """Never: the same bytes have the same max_tokens."""
        return False


class TransientEngineError(EngineError):
    """The engine may succeed if the request is repeated: aborted, overloaded, empty, looping."""


class Poisoned(JobError):
    """The job was in flight at too many crashes of the process."""

    code = FailureCode.POISONED
    stage = "claim"


class DeadlineExceeded(JobError):
    """The job's deadline passed before or during its run."""

    code = FailureCode.DEADLINE_EXCEEDED


class Cancelled(JobError):
    """The job was cancelled by its owner."""

    code = FailureCode.CANCELLED


class Internal(JobError):
    """A defect of the worker; the log names its place in the code, but no text of a job."""

    code = FailureCode.INTERNAL


JOB_ERRORS: Final = {kind.code: kind for kind in JobError.__subclasses__()}
"""The class of each code."""


class Unavailable(WorkerError):
    """Kafka, Redis or the engine's server is away. The work waits; no attempt is consumed."""


class UnknownReply(Unavailable):
    """Redis answered a call with what no list knows: the server's trouble, or this call's.

    Whoever repeats the call tells the two apart: while a server in trouble answers nothing, one
    that refuses a single call goes on answering others.
    """

    def __init__(
        self, message: str, *, server: str, answered_at: float | None, verdict: WorkerError
    ) -> None:
        """`answered_at`: when `server` last answered a script, on the monotonic clock.

        `verdict` is raised instead if the server goes on answering others.
        """
        super().__init__(message)
        self.server = server
        self.answered_at = answered_at
        self.verdict = verdict


class Unencodable(WorkerError):
    """A result holds what JSON in UTF-8 cannot: a lone surrogate, or an object of Python."""


class Halt(WorkerError):
    """The process cannot continue and must exit with a non-zero status."""


class EngineDead(Halt):
    """The engine process died and cannot be restarted from inside the worker."""

    blames_jobs: ClassVar[bool] = True
    """Whether a job in the engine may be the cause, so that its claim stays and is counted."""


class ServersRefuse(EngineDead):
    """Every server of the engine refuses harmless requests: a key, an address or a name is wrong.

    No job is to blame for it.
    """

    blames_jobs = False


class RecordsDropped(Halt):
    """The broker of a box has dropped records that nobody has read: they are lost."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count:,} records dropped: a publisher overran the queue, which is in the memory of "
            "the embedded broker"
        )


class Unreachable(Halt):
    """A server did not answer within connect_timeout_s; the message names the address."""
