"""Errors of the client, as a tree.

    DragomanError
    ├── Unreachable                broker or store not reached within connect_timeout_s
    │   ├── BrokerUnreachable      Kafka; nothing more is published
    │   └── StoreUnreachable       Redis; nothing is known about any job
    ├── BrokerRefused              Kafka answered, but refused: no such topic, no right to write
    │   └── WrongBroker            user, password, SASL or TLS settings do not fit the broker
    ├── StoreRefused               Redis answered, but refused: out of memory, for example
    │   └── WrongStore             redis.url is wrong for it: user, password, database, kind
    ├── ClientClosed               the client was closed during a call
    ├── SubmitFailed               this job was not published; others are not affected
    │   ├── JobTooLarge            the record is over the limit of the contract or the broker's own
    │   ├── IdTaken                another payload owns the id (also raised by status and result)
    │   ├── BrokenKey              another program wrote its Redis key (also by status, result)
    │   ├── Unreadable             its key is of a newer version (also by status and result)
    │   ├── ReplaysUsedUp          ``resubmit`` of a job with the largest replay number
    │   └── AlreadyCompleted       ``resubmit`` of a job that has its translation
    ├── SomeNotSubmitted           after submit_many: each refused job with its SubmitFailed
    ├── ResultTimeout              no terminal state yet; the job continues
    └── TranslationRejected        the job ended without all of its texts (``text``, ``texts``)

Invalid settings raise dragoman_connections.settings.SettingsError before any of these.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman_connections.terminal import counted
from dragoman_schemas.results import JobStatus, TranslationResult


class DragomanError(Exception):
    """Base class of all errors of the client; the message says what to do."""


class Unreachable(DragomanError):
    """Broker or store did not answer within ``connect_timeout_s``."""


class BrokerUnreachable(Unreachable):
    """Kafka was not reached, or did not acknowledge in time."""


class StoreUnreachable(Unreachable):
    """Redis was not reached in time."""


class BrokerRefused(DragomanError):
    """Kafka replied with an error that waiting does not cure."""


class StoreRefused(DragomanError):
    """Redis replied with an error that waiting does not cure."""


class WrongBroker(BrokerRefused):
    """The settings of Kafka's security do not fit the broker, or it rejects user and password."""


class WrongStore(StoreRefused):
    """``redis.url`` does not fit the server, or its user lacks a permission of the client."""


class ClientClosed(DragomanError):
    """The client was closed during a call."""


class SubmitFailed(DragomanError):
    """One job was not published."""

    def __init__(self, job_id: str, why: str) -> None:
        super().__init__(f"job {job_id}: {why}")
        self.job_id = job_id
        self.why = why


class Unreadable(SubmitFailed):
    """The job's key holds fields that this version cannot read; a newer client may."""

    def __init__(self, job_id: str, what: str) -> None:
        super().__init__(job_id, f"cannot read its {what}; is this client older than the worker?")


class JobTooLarge(SubmitFailed):
    """The job's record is too large for a topic; the job is ``failed`` with ``invalid_job``."""

    def __init__(self, job_id: str, size: int, limit: int | None) -> None:
        allowed = (
            f"at most {limit:,} are allowed"
            if limit is not None
            else "more than the broker allows (the topic's max.message.bytes)"
        )
        super().__init__(
            job_id, f"its record is {size:,} bytes, {allowed}; split it into several jobs"
        )
        self.size = size
        self.limit = limit


class IdTaken(SubmitFailed):
    """Another job with another payload owns this id."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id, "another job with another payload owns this id; use a new id")


class BrokenKey(SubmitFailed):
    """Another program wrote the job's Redis key: another type, or fields that are no text."""

    def __init__(self, job_id: str, key: str, what: str) -> None:
        super().__init__(
            job_id,
            f"the Redis key {key} {what}: another program wrote it; use a new id, delete the key, "
            "or set redis.key_prefix",
        )
        self.key = key


class ReplaysUsedUp(SubmitFailed):
    """The replay number of the job's key is the largest possible one."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            job_id,
            "its replay number is the largest possible one, so it cannot run again; use a new id",
        )


class AlreadyCompleted(SubmitFailed):
    """A completed job cannot run again: its result never changes until its key expires."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id, "is already completed; read its result, or use a new id")


class SomeNotSubmitted(DragomanError):
    """Some jobs of a submit_many were refused; all others were published."""

    def __init__(self, refused: Sequence[SubmitFailed]) -> None:
        super().__init__(f"{counted(len(refused), 'job')} not submitted; the first: {refused[0]}")
        self.refused = tuple(refused)


class ResultTimeout(DragomanError):
    """The job had no terminal state in time. Waiting again is safe."""

    def __init__(
        self, job_id: str, timeout_s: float, status: JobStatus | None, *, readable: bool = True
    ) -> None:
        known = "unknown (not submitted, or past its TTL)" if status is None else status.value
        why = f"its status is {known}" if readable else "Redis does not respond"
        super().__init__(f"job {job_id}: no result within {timeout_s:g} s; {why}")
        self.job_id = job_id
        self.timeout_s = timeout_s
        self.status = status


class TranslationRejected(DragomanError):
    """The job ended without a text for every item; ``result`` holds the texts that exist."""

    def __init__(self, result: TranslationResult) -> None:
        self.result = result
        self.code = result.error.code if result.error else result.status
        why = f"{self.code}: {result.error.message}" if result.error else "no text is stored"
        super().__init__(f"job {result.job_id} is {result.status}: {why}")
