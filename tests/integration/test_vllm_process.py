"""vLLM's process after its parent was interrupted and closed; test_worker_vllm kills parents."""

from __future__ import annotations

import contextlib
import multiprocessing
from pathlib import Path

import psutil
import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.vllm import launch
from dragoman_worker.engines.vllm.sampling import sampling_params
from dragoman_worker.ports import Decoding
from support.builders.engine_requests import gone, vllm_settings
from support.processes import engine_parent
from support.processes.fork_server import fork_server

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("default"),  # warnings of vLLM and its libraries
]


def test_sigint_to_the_group_lets_requests_finish_and_close_aborts_the_rest(
    tiny_model: Path,
) -> None:
    ours, its = multiprocessing.Pipe()
    parent = fork_server(vllm=True).Process(target=engine_parent.run, args=(tiny_model, its))
    parent.start()
    its.close()
    engine: list[psutil.Process] = []
    try:
        engine += map(psutil.Process, ours.recv()["started"])
        ours.send("go on")
        assert ours.recv() == {"finished": ["stop"] * 4}
        closed = ours.recv()
        parent.join(60)
    finally:
        if parent.is_alive():
            parent.kill()
        for process in engine:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    assert closed["left"] == []
    assert set(closed["closed"]) == {"abort"}
    assert parent.exitcode == 0
    gone(engine)


def test_all_sampling_is_explicit(tiny_model: Path) -> None:
    module = pytest.importorskip("vllm.sampling_params")
    params = sampling_params(module, Decoding(max_tokens=7, stop=("x",), top_k=-1))
    assert (params.max_tokens, params.min_tokens, params.temperature) == (7, 0, 0.0)
    assert (params.stop, params.ignore_eos, params.skip_special_tokens) == (["x"], False, True)
    assert params.output_kind is module.RequestOutputKind.FINAL_ONLY
    assert params.repetition_detection.min_count == 8
    exact = sampling_params(module, Decoding(max_tokens=9), exact=7)
    assert (exact.max_tokens, exact.min_tokens, exact.ignore_eos) == (7, 7, True)
    assert exact.repetition_detection is None


def test_an_unknown_option_is_refused_by_name_without_building(tiny_model: Path) -> None:
    settings = vllm_settings(tiny_model, max_num_sequences=3)
    with pytest.raises(SettingsError) as refused:
        launch._prepare(settings, verbose=False)
    assert "engine.options.max_num_sequences" in str(refused.value)
    assert "did you mean max_num_seqs?" in str(refused.value)


def test_valid_settings_pass_the_check(tiny_model: Path) -> None:
    launch._prepare(vllm_settings(tiny_model, max_model_len=128, seed=3), verbose=False)
