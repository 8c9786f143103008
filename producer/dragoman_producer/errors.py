"""What can go wrong between a program that has text and its translation?

    DragomanError
    ├── Unreachable                broker or store not reached within connect_timeout_s
    │   ├── BrokerUnreachable      Kafka; nothing more is published
    │   └── StoreUnreachable       Redis; nothing is known about any job
    ├── BrokerRefused              Kafka answered, but refused: no such topic, no right to write
    ├── StoreRefused               Redis answered, but refused: out of memory, for example
    │   └── WrongStore             redis.url does not fit it: user, password, database, kind
    ├── ClientClosed               the client was closed while something waited on it
    ├── SubmitFailed               this job was not published; others are unharmed
    │   ├── JobTooLarge            the record is over the limit of the contract or the broker's own
    │   ├── IdTaken                another payload owns the id (also raised by status and result)
    │   ├── BrokenKey              its Redis key is not one of ours (also by status and result)
    │   ├── Unreadable             its key is of a newer version (also by status and result)
    │   ├── ReplaysUsedUp          ``again`` on a job whose replay number can grow no more
    │   └── AlreadyCompleted       ``again`` on a job that has its translation
    ├── SomeNotSubmitted           end of submit_many: each refused job with its SubmitFailed
    ├── ResultTimeout              no terminal state yet; the job goes on
    └── TranslationRejected        the job ended without all of its texts (``text``, ``texts``)

Settings that are wrong raise dragoman_connections.settings.SettingsError before any of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman_schemas.results import JobStatus, TranslationResult


class DragomanError(Exception):
    """Anything that keeps a translation from its reader; the message says what to do."""


class Unreachable(DragomanError):
    """Broker or store did not answer within ``connect_timeout_s``."""


class BrokerUnreachable(Unreachable):
    """Kafka was not reached, or did not acknowledge in time."""


class StoreUnreachable(Unreachable):
    """Redis was not reached in time."""


class BrokerRefused(DragomanError):
    """Kafka answered with an error that waiting does not cure."""


class StoreRefused(DragomanError):
    """Redis answered with an error that waiting does not cure."""


class WrongStore(StoreRefused):
    """Redis is not what ``redis.url`` says, or does not let its user do what a client does."""


class ClientClosed(DragomanError):
    """The client was closed while something still waited on it."""


class SubmitFailed(DragomanError):
    """One job was not published."""

    def __init__(self, job_id: str, why: str) -> None:
        super().__init__(f"job {job_id}: {why}")
        self.job_id = job_id
        self.why = why


class Unreadable(SubmitFailed):
    """A job's key holds what this version does not understand; a newer client may."""

    def __init__(self, job_id: str, what: str) -> None:
        super().__init__(job_id, f"cannot read its {what}; is this client older than the worker?")


class JobTooLarge(SubmitFailed):
    """The job's record is larger than a topic takes; its key says ``failed``, ``invalid_job``."""

    def __init__(self, job_id: str, size: int, limit: int | None) -> None:
        allowed = (
            f"at most {limit:,} are allowed"
            if limit is not None
            else "more than the broker takes (the topic's max.message.bytes)"
        )
        super().__init__(
            job_id, f"its record is {size:,} bytes, {allowed}; split it into several jobs"
        )
        self.size = size
        self.limit = limit


class IdTaken(SubmitFailed):
    """Another job, with another payload, owns this id."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id, "another job with another payload owns this id; use a new id")


class BrokenKey(SubmitFailed):
    """The job's Redis key holds what no Dragoman writes: another type, or no text."""

    def __init__(self, job_id: str, key: str, what: str) -> None:
        super().__init__(
            job_id,
            f"the Redis key {key} {what}: another program wrote it; use a new id, delete the key, "
            "or set redis.key_prefix",
        )
        self.key = key


class ReplaysUsedUp(SubmitFailed):
    """The replay number of the job's key is the largest there is."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            job_id,
            "its replay number is the largest there is, so it cannot run again; use a new id",
        )


class AlreadyCompleted(SubmitFailed):
    """A completed job cannot be done again: its result never changes while its key lives."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id, "is already completed; read its result, or use a new id")


class SomeNotSubmitted(DragomanError):
    """Some jobs of a submit_many were refused; all others were published."""

    def __init__(self, refused: Sequence[SubmitFailed]) -> None:
        super().__init__(f"{len(refused):,} jobs were not submitted; the first: {refused[0]}")
        self.refused = tuple(refused)


class ResultTimeout(DragomanError):
    """The job had no terminal state in time. Waiting again is safe."""

    def __init__(
        self, job_id: str, timeout_s: float, status: JobStatus | None, *, readable: bool = True
    ) -> None:
        known = "unknown (not submitted, or past its TTL)" if status is None else status.value
        said = f"its status is {known}" if readable else "Redis does not answer"
        super().__init__(f"job {job_id}: no result within {timeout_s:g} s; {said}")
        self.job_id = job_id
        self.timeout_s = timeout_s
        self.status = status


class TranslationRejected(DragomanError):
    """The job ended without a text for every item; ``result`` keeps those that have one."""

    def __init__(self, result: TranslationResult) -> None:
        self.result = result
        self.code = result.error.code if result.error else result.status
        why = f"{self.code}: {result.error.message}" if result.error else "no text is stored"
        super().__init__(f"job {result.job_id} is {result.status}: {why}")
