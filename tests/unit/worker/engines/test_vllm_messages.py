"""Tests of the count of what arrives from vLLM's engine processes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dragoman_worker.engines.vllm.messages import Messages


class Resources:
    """vLLM's BackgroundResources, as far as they are used."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def validate_alive(self, frames: object) -> None:
        self.seen.append(frames)
        if frames == "dead":
            raise RuntimeError("dead")


def test_each_message_counts_once_and_is_still_checked_by_vllm() -> None:
    resources, messages = Resources(), Messages()
    messages.watch(SimpleNamespace(engine_core=SimpleNamespace(resources=resources)))
    assert messages.count() == messages.count() == 0
    resources.validate_alive("frames")
    with pytest.raises(RuntimeError):
        resources.validate_alive("dead")
    assert messages.count() == messages.count() == 2
    assert resources.seen == ["frames", "dead"]


def test_a_vllm_whose_messages_cannot_be_counted_always_seems_alive() -> None:
    messages = Messages()
    messages.watch(SimpleNamespace())
    assert messages.count() < messages.count()
