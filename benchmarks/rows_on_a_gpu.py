"""Rows of a Parquet file by `dragoman translate --model`, and by `LLM.generate`, on one GPU.

usage: rows_on_a_gpu.py --model DIR --profile NAME --out DIR [--rows 12000]

The weights may be random: `engine.exact_lengths` gives each answer 0.3 tokens per character of its
text, and `LLM.generate` gets the same prompts and lengths. The command's seconds per row count from
its first answer, as the start of an engine is the same for both.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TOKENS_PER_CHARACTER = 0.3
WORDS = ["red", "blue", "warm", "soft", "shirt", "hat", "with", "a", "long", "fine", "wool", "made"]
OPTIONS: dict[str, Any] = {
    "load_format": "dummy", "generation_config": "vllm", "max_num_seqs": 512,
    "max_num_batched_tokens": 16384, "max_model_len": 4096,
}  # fmt: skip


def texts(count: int) -> list[str]:
    """Return texts of 50 words, no two alike."""
    chance = random.Random(7)
    return [f"Row {n}: " + " ".join(chance.choices(WORDS, k=48)) + "." for n in range(count)]


def translated(given: argparse.Namespace, rows: list[str]) -> dict[str, Any]:
    """Run the command; return its seconds, and the rows per second between its progress lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = given.out / "rows.parquet"
    pq.write_table(pa.table({"sku": range(len(rows)), "description": rows}), source)
    argv = [sys.executable, "-m", "dragoman_producer", "translate", str(source)]
    argv += ["--column", "description", "--to", "de", "--out", str(given.out / "de")]
    argv += ["--model", str(given.model), "--profile", given.profile]
    argv += ["--data", str(given.out / "box"), "--json"]
    settings = {
        "DRAGOMAN_ENGINE__OPTIONS": json.dumps(OPTIONS),
        "DRAGOMAN_ENGINE__EXACT_LENGTHS": str(TOKENS_PER_CHARACTER),
        "DRAGOMAN_QUALITY__LEVEL": "off",
    }
    began = time.monotonic()
    log = given.out / "translate.log"
    with log.open("w") as file, (given.out / "report.jsonl").open("w") as report:
        process = subprocess.Popen(
            argv, env=os.environ | settings, stdout=report, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        for line in process.stderr:
            file.write(f"{time.monotonic() - began:.1f} {line}")
            file.flush()
        status = process.wait()
    return {"status": status, "seconds": round(time.monotonic() - began, 1)}


def generated(given: argparse.Namespace, rows: list[str]) -> dict[str, Any]:
    """Return the rows per second of `LLM.generate` with the prompts that a worker would send."""
    from vllm import LLM, SamplingParams, TokensPrompt

    from dragoman_schemas.languages import parse_tag
    from dragoman_worker.prompts.table import PROFILES

    del parse_tag
    engine = LLM(model=str(given.model), **OPTIONS)
    tokenizer = engine.get_tokenizer()
    profile = PROFILES[given.profile]
    prompts, params = [], []
    for text in rows:
        message = f"Translate the following text into German.\n\n{text}"
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": message}], add_generation_prompt=True, return_dict=False
        )
        prompts.append(TokensPrompt(prompt_token_ids=ids))
        length = round(TOKENS_PER_CHARACTER * len(text))
        params.append(SamplingParams(max_tokens=length, ignore_eos=True, temperature=0.0))
    del profile
    began = time.monotonic()
    engine.generate(prompts, params)
    seconds = time.monotonic() - began
    return {"seconds": round(seconds, 1), "rows_per_s": round(len(rows) / seconds, 1)}
