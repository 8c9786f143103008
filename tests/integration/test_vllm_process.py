"""vLLM's process after its parent was interrupted and closed; test_worker_vllm kills parents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm import launch
from dragoman_worker.engines.vllm.sampling import sampling_params
from dragoman_worker.ports import Decoding
from support.builders.engine_requests import gone, vllm_settings
from support.processes import engine_parent

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("default"),  # warnings of vLLM and its libraries
]


class Parent:
    """A process that holds a vLLM (support/processes/engine_parent.py), and its reports."""

    def __init__(self, model: Path, log: Path) -> None:
        self._log = log.open("w")
        self._child = subprocess.Popen(
            [sys.executable, engine_parent.__file__, str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.engine: list[psutil.Process] = []

    def started(self) -> None:
        """Wait until the engine answers."""
        self.engine = [psutil.Process(pid) for pid in self.next_report()["started"]]

    def next_report(self) -> dict[str, Any]:
        """Return its next report."""
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, Path(self._log.name).read_text()
        report: dict[str, Any] = json.loads(line)
        return report

    def go_on(self) -> None:
        """Start its next step."""
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()

    def end(self) -> int:
        """Wait until it exits and return its status."""
        return self._child.wait(60)

    def clean_up(self) -> None:
        """Kill whatever is left of it."""
        for process in self.engine:
            if process.is_running():
                process.kill()
        self._child.kill()
        self._child.communicate(timeout=10)
        self._log.close()


@pytest.fixture
def parent(tiny_model: Path, tmp_path: Path) -> Iterator[Parent]:
    made = Parent(tiny_model, tmp_path / "parent.log")
    try:
        made.started()
        yield made
    finally:
        made.clean_up()


def test_sigint_to_the_group_lets_requests_finish_and_close_aborts_the_rest(parent: Parent) -> None:
    parent.go_on()
    assert parent.next_report() == {"finished": ["length"] * 4}
    closed = parent.next_report()
    assert closed["left"] == []
    assert set(closed["closed"]) == {"abort"}
    assert parent.end() == 0
    gone(parent.engine)


def test_all_sampling_is_explicit(tiny_model: Path) -> None:
    module = pytest.importorskip("vllm.sampling_params")
    params = sampling_params(module, Decoding(max_tokens=7, stop=("x",), top_k=-1))
    assert (params.max_tokens, params.min_tokens, params.temperature) == (7, 0, 0.0)
    assert (params.stop, params.ignore_eos, params.skip_special_tokens) == (["x"], False, True)
    assert params.output_kind is module.RequestOutputKind.FINAL_ONLY
    assert params.repetition_detection.min_count == 8
    exact = sampling_params(module, Decoding(max_tokens=7, exact_length=True))
    assert (exact.min_tokens, exact.ignore_eos, exact.repetition_detection) == (7, True, None)


def test_an_unknown_option_is_refused_by_name_without_building(tiny_model: Path) -> None:
    settings = vllm_settings(tiny_model, max_num_sequences=3)
    with pytest.raises(SettingsError) as refused:
        launch._prepare(settings, verbose=False)
    assert "engine.options.max_num_sequences" in str(refused.value)
    assert "did you mean max_num_seqs?" in str(refused.value)


def test_valid_settings_pass_the_check(tiny_model: Path) -> None:
    launch._prepare(vllm_settings(tiny_model, max_model_len=128, seed=3), verbose=False)
