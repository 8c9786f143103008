"""Adapter of vLLM's AsyncLLMEngine to the `Engine` port; no other package imports vllm."""

from __future__ import annotations

from dragoman_worker.engines.vllm.engine import VllmEngine

__all__ = ["VllmEngine"]
