"""The light client of Dragoman: submit texts, and read translations.

Names are loaded on first use, so that commands start without loading Kafka, Redis and pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman_connections.settings import DragomanSettings, SettingsError, load_settings
    from dragoman_producer.client import TranslationClient
    from dragoman_producer.errors import (
        AlreadyCompleted,
        BrokenKey,
        BrokerRefused,
        BrokerUnreachable,
        ClientClosed,
        DragomanError,
        IdTaken,
        JobTooLarge,
        ReplaysUsedUp,
        ResultTimeout,
        SomeNotSubmitted,
        StoreRefused,
        StoreUnreachable,
        SubmitFailed,
        TranslationRejected,
        Unreachable,
        Unreadable,
        WrongBroker,
        WrongStore,
    )
    from dragoman_producer.handle import JobHandle
    from dragoman_schemas.jobs import Item, TranslationJob
    from dragoman_schemas.results import ItemResult, JobStatus, TranslationResult

__all__ = [
    "AlreadyCompleted",
    "BrokenKey",
    "BrokerRefused",
    "BrokerUnreachable",
    "ClientClosed",
    "DragomanError",
    "DragomanSettings",
    "IdTaken",
    "Item",
    "ItemResult",
    "JobHandle",
    "JobStatus",
    "JobTooLarge",
    "ReplaysUsedUp",
    "ResultTimeout",
    "SettingsError",
    "SomeNotSubmitted",
    "StoreRefused",
    "StoreUnreachable",
    "SubmitFailed",
    "TranslationClient",
    "TranslationJob",
    "TranslationRejected",
    "TranslationResult",
    "Unreachable",
    "Unreadable",
    "WrongBroker",
    "WrongStore",
    "load_settings",
]

_ERRORS = "dragoman_producer.errors"
_ELSEWHERE = {
    "DragomanSettings": "dragoman_connections.settings",
    "Item": "dragoman_schemas.jobs",
    "ItemResult": "dragoman_schemas.results",
    "JobHandle": "dragoman_producer.handle",
    "JobStatus": "dragoman_schemas.results",
    "SettingsError": "dragoman_connections.settings",
    "TranslationClient": "dragoman_producer.client",
    "TranslationJob": "dragoman_schemas.jobs",
    "TranslationResult": "dragoman_schemas.results",
    "load_settings": "dragoman_connections.settings",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, _ERRORS)), name)


def __dir__() -> list[str]:
    return __all__
