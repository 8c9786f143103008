"""Tests of the extension of vLLM's scheduler, with a stand-in of its configuration."""

from __future__ import annotations

from types import SimpleNamespace

from dragoman_worker.engines.vllm.scheduler import extend


class Chosen:
    """The scheduler that vLLM chooses."""


class First(Chosen):
    """What the first extension makes of it."""


def test_extensions_of_the_scheduler_that_vllm_chooses_add_up() -> None:
    class Config:
        def get_scheduler_cls(self) -> type:
            return Chosen

    extend(Config, lambda chosen: First if chosen is Chosen else chosen)
    extend(Config, lambda chosen: type("Second", (chosen,), {}))
    assert [each.__name__ for each in Config().get_scheduler_cls().__mro__[:3]] == [
        "Second",
        "First",
        "Chosen",
    ]


def test_a_vllm_without_that_choice_is_left_unchanged() -> None:
    extend(SimpleNamespace, lambda chosen: First)
    assert not hasattr(SimpleNamespace, "get_scheduler_cls")
