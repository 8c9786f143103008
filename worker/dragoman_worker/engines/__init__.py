"""Engines behind the `Engine` port; opening one imports only what that engine needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman_worker.ports import Engine
    from dragoman_worker.settings import EngineSettings


def open_engine(settings: EngineSettings, *, log_level: str = "info") -> Engine:
    """Return the engine that ``engine.kind`` names, not started yet.

    `log_level` is ``log.level``: at ``debug`` vLLM's own log is shown in full.
    Raises SettingsError if an option is invalid.
    """
    if settings.kind == "echo":
        from dragoman_worker.engines.echo import EchoEngine  # noqa: PLC0415 - lazy on purpose

        return EchoEngine(settings)
    from dragoman_worker.engines.vllm import VllmEngine  # noqa: PLC0415 - lazy on purpose

    return VllmEngine(settings, log_level=log_level)
