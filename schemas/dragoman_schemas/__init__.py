"""Wire format of Kafka and Redis: jobs, results, their bytes, and the scripts on a job's key."""

from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_schemas.jobs import DocumentRef, Item, Quality, Sampling, TranslationJob
from dragoman_schemas.languages import UnknownLanguage, normalise
from dragoman_schemas.names import Keys
from dragoman_schemas.results import (
    TERMINAL_STATUSES,
    EngineInfo,
    ErrorInfo,
    ItemError,
    ItemResult,
    JobStatus,
    Timing,
    TranslationResult,
    Usage,
    cancelled_result,
)
from dragoman_schemas.wire import (
    Envelope,
    InvalidRecord,
    UnreadableRecord,
    decode_job,
    decode_result,
    encode_job,
    encode_result,
    open_record,
)

__all__ = [
    "RETRYABLE",
    "TERMINAL_STATUSES",
    "DocumentRef",
    "EngineInfo",
    "Envelope",
    "ErrorInfo",
    "FailureCode",
    "InvalidRecord",
    "Item",
    "ItemError",
    "ItemResult",
    "JobStatus",
    "Keys",
    "Quality",
    "Sampling",
    "Timing",
    "TranslationJob",
    "TranslationResult",
    "UnknownLanguage",
    "UnreadableRecord",
    "Usage",
    "cancelled_result",
    "decode_job",
    "decode_result",
    "encode_job",
    "encode_result",
    "normalise",
    "open_record",
]
