"""Names of topics, headers, Redis keys and their fields (docs/reference/jobs.md and scripts.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

JOBS_TOPIC: Final = "dragoman.jobs"
DEAD_LETTER_TOPIC: Final = "dragoman.dead-letters"
KEY_PREFIX: Final = "dragoman:"
GROUP_ID: Final = "dragoman"
MAX_RECORD_BYTES: Final = 1_000_000

HEADER_REPLAY: Final = "dragoman-replay"
HEADER_TRACEPARENT: Final = "traceparent"

HEADER_ORIGINAL_TOPIC: Final = "x-original-topic"
HEADER_ORIGINAL_PARTITION: Final = "x-original-partition"
HEADER_ORIGINAL_OFFSET: Final = "x-original-offset"
HEADER_ORIGINAL_TIMESTAMP: Final = "x-original-timestamp"
HEADER_CONSUMER_GROUP: Final = "x-consumer-group"
HEADER_JOB_ID: Final = "x-job-id"
HEADER_ERROR_CODE: Final = "x-error-code"
HEADER_ERROR_MESSAGE: Final = "x-error-message"
HEADER_ATTEMPTS: Final = "x-attempts"
HEADER_DELIVERIES: Final = "x-deliveries"
HEADER_FIRST_SEEN: Final = "x-first-seen"
HEADER_WORKER: Final = "x-worker"
HEADER_ORIGINAL_SHA256: Final = "x-original-sha256"
HEADER_ORIGINAL_SIZE: Final = "x-original-size"

FIELD_STATUS: Final = "status"
FIELD_RESULT: Final = "result"
FIELD_FINGERPRINT: Final = "fingerprint"
FIELD_REPLAYS: Final = "replays"
FIELD_QUEUED_AT: Final = "queued_at"
FIELD_FINISHED_AT: Final = "finished_at"

FIELD_META: Final = "meta"

CANCELS_MAXLEN: Final = 10_000
EVENTS_MAXLEN: Final = 100_000
MEMORY_SHARDS: Final = 256


def glossary_terms(tag: str) -> str:
    """Return the hash field of a stored glossary's terms for a target language."""
    return f"terms:{tag}"


@dataclass(frozen=True, slots=True)
class Keys:
    """Every Redis key under one prefix."""

    prefix: str = KEY_PREFIX

    def job(self, job_id: str) -> str:
        """Return the key of a job's hash."""
        return f"{self.prefix}job:{job_id}"

    @property
    def events(self) -> str:
        """The capped stream of terminal jobs for readers: a hint, not the source of truth."""
        return f"{self.prefix}events"

    @property
    def box(self) -> str:
        """The hash that a box keeps: its queue is in memory, so publishers hold back."""
        return f"{self.prefix}box"

    @property
    def cancels(self) -> str:
        """The capped stream of running jobs that workers should abort."""
        return f"{self.prefix}cancels"

    @property
    def workers(self) -> str:
        """The hash in which replicas announce themselves: a hint, not the source of truth."""
        return f"{self.prefix}workers"

    def document_completed(self, document_id: str) -> str:
        """Return the key of the hash of bits of a document's completed jobs: `scripts.MARK`."""
        return f"{self.prefix}document:{document_id}:bits:completed"

    def document_ended(self, document_id: str) -> str:
        """Return the key of the hash of bits of a document's terminal jobs: `scripts.MARK`."""
        return f"{self.prefix}document:{document_id}:bits:ended"

    def document_cancel(self, document_id: str) -> str:
        """Return the key whose presence cancels a whole document."""
        return f"{self.prefix}document:{document_id}:cancel"

    def gateway_document(self, document_id: str) -> str:
        """Return the key of what the gateway keeps of a document."""
        return f"{self.prefix}gateway:document:{document_id}"

    def glossary(self, name: str) -> str:
        """Return the key of a stored glossary's hash, which has no TTL."""
        return f"{self.prefix}glossary:{name}"

    def memory(self, shard: int, generation: Literal["new", "old"]) -> str:
        """Return the key of a shard (0-255) of the memory's machine tier."""
        return f"{self.prefix}memory:{{{shard:02x}}}:{generation}"

    def memory_approved(self, shard: int) -> str:
        """Return the key of a shard (0-255) of the approved translations, which has no TTL."""
        return f"{self.prefix}memory:approved:{{{shard:02x}}}"
