"""Sockets of vLLM: their folder, and the count of what arrives from the engine processes."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman_worker.engines.vllm.patches.sockets import Messages, sockets_in

VARIABLE = "VLLM_RPC_BASE_PATH"


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


def test_a_vllm_whose_messages_are_not_counted_always_seems_alive() -> None:
    messages = Messages()
    assert messages.count() < messages.count()


# --- folder ---------------------------------------------------------------------------------------


def test_sockets_are_created_in_the_engines_folder_and_nothing_stays_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with sockets_in(Path("/somewhere/dragoman-engine-1")):
        assert os.environ[VARIABLE] == "/somewhere/dragoman-engine-1"
    assert VARIABLE not in os.environ


def test_a_folder_of_the_users_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/run/vllm")
    with sockets_in(Path("/somewhere/dragoman-engine-1")):
        assert os.environ[VARIABLE] == "/run/vllm"
    assert os.environ[VARIABLE] == "/run/vllm"


def test_a_folder_too_long_for_a_socket_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with sockets_in(Path("/" + "x" * 66)):
        assert VARIABLE not in os.environ
