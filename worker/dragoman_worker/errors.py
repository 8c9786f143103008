"""What can go wrong in a worker, and what is to be done about it?

Every class carries its `code` (what readers see) and its `disposition` (what the worker does), so
that adding a failure touches this file alone::

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
    │   ├── EngineFailed         reject   engine_failed: it would fail again, or attempts ran out
    │   │   ├── CutOff           reject   engine_failed: and a replay would be cut off again
    │   │   └── EngineStumbled   retry    engine_failed: may well succeed if asked again
    │   ├── Poisoned             reject   poisoned
    │   ├── DeadlineExceeded     expire   deadline_exceeded
    │   ├── Cancelled            cancel   cancelled
    │   └── Internal             reject   internal: a defect of ours, not of the job
    ├── Unavailable              wait     broker or Redis: never consumes an attempt of a job
    └── Halt                     halt     the process must end, non-zero, nothing committed
        ├── EngineDead           halt
        └── Unreachable          halt     broker or Redis, at the start
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from dragoman_schemas.failures import RETRYABLE, FailureCode


class Disposition(StrEnum):
    """What the worker does about an error."""

    RETRY = "retry"
    REJECT = "reject"
    EXPIRE = "expire"
    CANCEL = "cancel"
    WAIT = "wait"
    HALT = "halt"


class WorkerError(Exception):
    """Base of everything the worker raises on purpose."""

    disposition: ClassVar[Disposition] = Disposition.REJECT


class JobError(WorkerError):
    """One job or item cannot be translated. The message is read by the job's owner."""

    code: ClassVar[FailureCode] = FailureCode.INTERNAL
    stage: ClassVar[str] = "translate"

    @property
    def message(self) -> str:
        """What was wrong and what to do about it."""
        return str(self) or self.code.value

    @property
    def retryable(self) -> bool:
        """Whether a replay of the same bytes may end well."""
        return self.code in RETRYABLE


class InvalidJob(JobError):
    """The record is not a job as the contract describes it."""

    code = FailureCode.INVALID_JOB
    stage = "decode"


class UnsupportedSchema(JobError):
    """The record is of a schema this worker does not know."""

    code = FailureCode.UNSUPPORTED_SCHEMA
    stage = "decode"


class UnsupportedLanguage(JobError):
    """The tag names no language, or one that the profile cannot translate."""

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
    "now; give every job an id of its own, and keep redis.live_ttl_s above the longest run"
)


class Conflict(JobError):
    """The id belongs to another payload, or its key holds no job."""

    code = FailureCode.CONFLICT
    stage = "claim"


class QualityFailed(JobError):
    """The translation did not pass the gates."""

    code = FailureCode.QUALITY_FAILED
    stage = "judge"


class EngineFailed(JobError):
    """The engine gave no translation, and asking again would not help."""

    code = FailureCode.ENGINE_FAILED
    stage = "engine"


class CutOff(EngineFailed):
    """The answer reached the most tokens that job, worker and model allow together."""

    @property
    def retryable(self) -> bool:
        """Never: the same bytes have the same bound."""
        return False


class EngineStumbled(EngineFailed):
    """The engine gave no translation this time: aborted, overloaded, empty, cut off, looping."""

    disposition = Disposition.RETRY


class Poisoned(JobError):
    """The job took the process down too often."""

    code = FailureCode.POISONED
    stage = "claim"


class DeadlineExceeded(JobError):
    """The job's deadline passed before or during its run."""

    code = FailureCode.DEADLINE_EXCEEDED
    disposition = Disposition.EXPIRE


class Cancelled(JobError):
    """The job was cancelled by its owner."""

    code = FailureCode.CANCELLED
    disposition = Disposition.CANCEL


class Internal(JobError):
    """A defect of the worker; the log has the traceback."""

    code = FailureCode.INTERNAL


class Unavailable(WorkerError):
    """Broker or Redis cannot be used now. The work waits; no attempt is consumed."""

    disposition = Disposition.WAIT


class Halt(WorkerError):
    """The process can do no more work and must end with a non-zero status."""

    disposition = Disposition.HALT


class EngineDead(Halt):
    """The engine is gone; its process cannot be revived from inside."""


class Unreachable(Halt):
    """Broker or Redis did not answer within connect_timeout_s; the message names the address."""
