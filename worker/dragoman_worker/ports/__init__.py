"""The ports of the core: protocols of Kafka, Redis, the engine and quality, and their values."""

from dragoman_worker.ports.engine import (
    Decoding,
    Engine,
    EngineLimits,
    EngineStats,
    FinishReason,
    Generation,
    GenerationRequest,
    Message,
    Prompt,
)
from dragoman_worker.ports.kafka import (
    Capacity,
    Consumer,
    DeadLetter,
    DeadLetters,
    Delivery,
    Results,
)
from dragoman_worker.ports.quality import (
    ApprovedQuery,
    Glossaries,
    Judge,
    Memory,
    Remembered,
    StoredGlossary,
)
from dragoman_worker.ports.redis import (
    CancelNotice,
    Claim,
    ClaimRequest,
    Store,
)

__all__ = [
    "ApprovedQuery",
    "CancelNotice",
    "Capacity",
    "Claim",
    "ClaimRequest",
    "Consumer",
    "DeadLetter",
    "DeadLetters",
    "Decoding",
    "Delivery",
    "Engine",
    "EngineLimits",
    "EngineStats",
    "FinishReason",
    "Generation",
    "GenerationRequest",
    "Glossaries",
    "Judge",
    "Memory",
    "Message",
    "Prompt",
    "Remembered",
    "Results",
    "Store",
    "StoredGlossary",
]
