"""How is vLLM driven? AsyncLLMEngine behind the worker's Engine port; nothing else imports vllm."""

from __future__ import annotations

from dragoman_worker.engines.vllm.engine import VllmEngine

__all__ = ["VllmEngine"]
