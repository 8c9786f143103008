"""What becomes of a request that vLLM refuses, and does it hold for 0.26 as for today's?"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dragoman_worker.engines.vllm.request_failures import RequestFailures
from dragoman_worker.errors import EngineDead, PermanentEngineError, TooLong, TransientEngineError


class EngineDeadError(Exception): ...


class EngineGenerateError(Exception): ...


class ValueErrorOf026(ValueError): ...


class VLLMClientError(Exception): ...


class VLLMValidationError(VLLMClientError): ...


class QueueOverflowError(Exception): ...


ENGINE = SimpleNamespace(EngineDeadError=EngineDeadError, EngineGenerateError=EngineGenerateError)
OF_0_26 = RequestFailures(SimpleNamespace(VLLMValidationError=ValueErrorOf026), ENGINE)
TODAYS = RequestFailures(
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
    assert type(TODAYS.translate(VLLMValidationError(text))) is TooLong


def test_another_refusal_would_be_repeated_so_it_fails() -> None:
    empty = "The decoder prompt cannot be empty"
    assert type(OF_0_26.translate(ValueErrorOf026(empty))) is PermanentEngineError
    assert type(TODAYS.translate(VLLMValidationError(empty))) is PermanentEngineError
    assert type(TODAYS.translate(VLLMClientError("not found"))) is PermanentEngineError


@pytest.mark.parametrize(
    "error", [QueueOverflowError("busy"), EngineGenerateError(), RuntimeError("unknown")]
)
def test_what_may_pass_is_worth_another_attempt(error: Exception) -> None:
    assert type(TODAYS.translate(error)) is TransientEngineError
    assert str(TODAYS.translate(error))


def test_the_cause_of_a_wrapped_error_is_told() -> None:
    wrapped = EngineGenerateError()
    wrapped.__cause__ = KeyError("slot")
    assert "KeyError" in str(TODAYS.translate(wrapped))


def test_a_dead_engine_is_told_from_the_rest() -> None:
    assert TODAYS.is_death(EngineDeadError("gone"))
    assert not TODAYS.is_death(VLLMClientError("no"))
    assert type(TODAYS.translate(EngineDeadError("gone"))) is EngineDead
