"""Folder of vLLM's sockets: the engine's own, unless a variable or its length forbids it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman_worker.engines.vllm.launch import _sockets_in

VARIABLE = "VLLM_RPC_BASE_PATH"


def test_sockets_are_created_in_the_engines_folder_and_nothing_stays_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with _sockets_in(Path("/somewhere/dragoman-engine-1")):
        assert os.environ[VARIABLE] == "/somewhere/dragoman-engine-1"
    assert VARIABLE not in os.environ


def test_a_folder_of_the_users_own_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/run/vllm")
    with _sockets_in(Path("/somewhere/dragoman-engine-1")):
        assert os.environ[VARIABLE] == "/run/vllm"
    assert os.environ[VARIABLE] == "/run/vllm"


def test_a_folder_too_long_for_a_socket_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with _sockets_in(Path("/" + "x" * 66)):
        assert VARIABLE not in os.environ
