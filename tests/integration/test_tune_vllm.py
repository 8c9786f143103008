"""`dragoman-worker tune` measures a real engine and writes settings for it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psutil
import pytest

from dragoman_connections.settings import load_settings
from dragoman_worker.settings import WorkerSettings
from support.processes.fork_server import fork_server
from support.processes.forked_command import run_forked

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

MARK = "TUNE_TEST"
"""Environment variable of every process that the command starts."""
TEXTS = ("Where is the station?", "I have lost my keys.", "The weather is fine today, isn't it?")


def test_tune_measures_vllm_in_one_start_and_writes_settings(
    demo_model: Path, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs.jsonl"
    lines = (
        {"job_id": f"j{n}", "text": f"{text} {n}", "source_lang": "en", "target_lang": "de"}
        for n, text in enumerate(TEXTS * 20)
    )
    jobs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "tuned"
    command = ["tune", "--json", "--jobs", str(jobs)]
    command += ["--out", str(out), "--seconds-per-point", "1", "--warm-s", "0.2"]
    command += ["--sequences", "1,8", "--stages", "memory", "--set", "engine.profile=demo"]
    command += ["--set", f"engine.model={demo_model}"]
    environment = {**os.environ, MARK: str(tmp_path)}
    fork_server(vllm=True)
    done = run_forked("dragoman-worker", *command, env=environment, timeout_s=600)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])

    one, eight = report["sweep"]
    assert report["engine"]["name"] == "vllm"
    assert report["sample"]["jobs"] == 60
    assert 0 < report["sample"]["prompt_tokens"]["p50"] < 100
    assert eight["output_tokens_per_s"] > 1.5 * one["output_tokens_per_s"]
    assert 0 < one["kv_usage_max"] <= eight["kv_usage_max"]
    assert one["decode_ms_per_token"] > 0
    assert (one["failed"], eight["failed"], eight["preemptions"]) == (0, 0, 0)
    assert report["chosen"]["sequences"] == 8
    assert set(report["comparison"]) == {"default", "published"}
    assert report["stages"][0]["why"].startswith("left out")
    settings = load_settings(WorkerSettings, out / "settings.toml")
    kept = any("keeps the given settings" in note for note in report["notes"])
    assert settings.engine.options == ({} if kept else {"max_num_seqs": 8})
    assert settings.engine.model == str(demo_model)
    label = "the sweep's choice: 8" if kept else "chosen: 8"
    assert label in (out / "tune.svg").read_text()
    assert not [p for p in psutil.process_iter() if _is_marked(p, str(tmp_path))]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark
    except psutil.Error:
        return False
