"""Wire format of Kafka and Redis: jobs, results, their bytes, and the scripts on a job's key."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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

_MODULES: Final = ("failures", "languages", "names", "jobs", "results", "wire")


if not TYPE_CHECKING:  # a type checker is to refuse unknown names

    def __getattr__(name: str) -> Any:
        """Return a name of one of the modules, which is imported then.

        The models take 0.3 s, and the judge process of a worker uses none.
        """
        for module in _MODULES if name in __all__ else ():
            found = vars(import_module(f"{__name__}.{module}"))
            if name in found:
                return globals().setdefault(name, found[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
