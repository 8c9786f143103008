"""An engine that somebody else runs: any server that speaks OpenAI's API."""

from __future__ import annotations

from dragoman_worker.engines.openai.engine import OpenAIEngine

__all__ = ["OpenAIEngine"]
