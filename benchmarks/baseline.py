"""Throughput of `LLM.generate` on the same jobs: the base that the pipeline is compared with.

usage: baseline.py MODEL PROFILE JOBS.jsonl OPTIONS_JSON [--exact-lengths] > result.json

Renders the same prompts as the worker and decodes them with the same parameters. Reading,
tokenising, loading and one warm-up generation are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from dragoman_schemas.jobs import TranslationJob
from dragoman_worker.engines.vllm.sampling import sampling_params
from dragoman_worker.job.plan import Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.ports import Decoding, EngineLimits
from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.table import get_profile


class _Tokens:
    """Part of an engine that planning needs."""

    def __init__(self, tokenizer: Any, max_model_len: int) -> None:
        self._tokenizer = tokenizer
        self.limits = EngineLimits(1, 1, max_model_len, 1)

    def encode(self, prompt: Any) -> Any:
        return tokens.encode(prompt, self._tokenizer)

    def count_tokens(self, text: str) -> int:
        return tokens.count(text, self._tokenizer)


def planner_for(tokenizer: Any, max_model_len: int, profile: str) -> Planner:
    """Return the worker's planner without a worker."""
    engine: Any = _Tokens(tokenizer, max_model_len)
    return Planner(
        engine=engine,
        choose_profile=lambda name: get_profile(name or profile),
        max_tokens=4096,
    )


def planned(llm: Any, profile: str, jobs: list[TranslationJob]) -> list[Unit]:
    """Return every request of every job, as the worker plans them."""
    max_model_len = llm.llm_engine.model_config.max_model_len
    planner = planner_for(llm.get_tokenizer(), max_model_len, profile)
    return [unit for job in jobs for unit in planner.plan(job).units]


def parameters(decoding: Decoding, exact: int | None) -> Any:
    """Return the worker's sampling parameters, made by the worker's own code."""
    from vllm import sampling_params as module  # noqa: PLC0415

    return sampling_params(module, decoding, exact=exact)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("profile")
    parser.add_argument("jobs", type=Path)
    parser.add_argument("options")
    parser.add_argument("--exact-lengths", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB, as the worker sets it on CPUs
    from vllm import LLM  # noqa: PLC0415

    jobs = [
        TranslationJob.model_validate_json(line) for line in given.jobs.read_text().splitlines()
    ]
    llm: Any = LLM(model=given.model, **json.loads(given.options))
    units = planned(llm, given.profile, jobs)
    prompts = [{"prompt_token_ids": list(unit.prompt_ids)} for unit in units]
    sampling = [
        parameters(unit.decoding, unit.decoding.max_tokens if given.exact_lengths else None)
        for unit in units
    ]
    llm.generate(prompts[:8], sampling[:8], use_tqdm=False)
    used = resource.getrusage(resource.RUSAGE_SELF)
    started, wall = time.perf_counter(), time.time()
    outputs = llm.generate(prompts, sampling, use_tqdm=False)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    written = sum(len(output.outputs[0].token_ids) for output in outputs)
    row = {
        "jobs": len(jobs),
        "seconds": seconds,
        "jobs_per_s": len(jobs) / seconds,
        "output_tokens_per_s": written / seconds,
        "frontend_cpu_s": after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime,
        "window": [wall, wall + seconds],
    }
    print("RESULT " + json.dumps(row), flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
