"""Tests of the translation of vLLM's request errors, for vLLM 0.26 and for current versions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dragoman_worker.engines.vllm.outputs import RequestFailures
from dragoman_worker.errors import EngineDead, PermanentEngineError, TooLong, TransientEngineError


class EngineDeadError(Exception): ...


class EngineGenerateError(Exception): ...


class ValueErrorOf026(ValueError): ...


class VLLMClientError(Exception): ...


class VLLMValidationError(VLLMClientError): ...


class QueueOverflowError(Exception): ...


ENGINE = SimpleNamespace(EngineDeadError=EngineDeadError, EngineGenerateError=EngineGenerateError)
OF_0_26 = RequestFailures(SimpleNamespace(VLLMValidationError=ValueErrorOf026), ENGINE)
CURRENT = RequestFailures(
    SimpleNamespace(VLLMClientError=VLLMClientError, VLLMValidationError=VLLMValidationError),
    ENGINE,
)


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 512 tokens. However, you requested 600.",
        "The decoder prompt (length 600) is longer than the maximum model length of 512.",
    ],
)
def test_a_prompt_beyond_the_context_is_too_long_in_every_version(text: str) -> None:
    assert type(OF_0_26.translate(ValueErrorOf026(text))) is TooLong
    assert type(CURRENT.translate(VLLMValidationError(text))) is TooLong


def test_any_other_refusal_is_permanent() -> None:
    empty = "The decoder prompt cannot be empty"
    assert type(OF_0_26.translate(ValueErrorOf026(empty))) is PermanentEngineError
    assert type(CURRENT.translate(VLLMValidationError(empty))) is PermanentEngineError
    assert type(CURRENT.translate(VLLMClientError("not found"))) is PermanentEngineError


@pytest.mark.parametrize(
    "error", [QueueOverflowError("busy"), EngineGenerateError(), RuntimeError("unknown")]
)
def test_every_other_error_is_transient(error: Exception) -> None:
    assert type(CURRENT.translate(error)) is TransientEngineError
    assert str(CURRENT.translate(error))


def test_the_cause_of_a_wrapped_error_is_in_the_message() -> None:
    wrapped = EngineGenerateError()
    wrapped.__cause__ = KeyError("slot")
    assert "KeyError" in str(CURRENT.translate(wrapped))


def test_a_dead_engine_is_distinguished_from_other_errors() -> None:
    assert CURRENT.is_death(EngineDeadError("gone"))
    assert not CURRENT.is_death(VLLMClientError("no"))
    assert type(CURRENT.translate(EngineDeadError("gone"))) is EngineDead
