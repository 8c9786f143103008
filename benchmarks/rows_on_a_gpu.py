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

import pyarrow as pa
import pyarrow.parquet as pq
from vllm import LLM, SamplingParams, TokensPrompt

from dragoman_worker.prompts import tokens
from dragoman_worker.prompts.base import PromptInput
from dragoman_worker.prompts.table import PROFILES

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
    """Run the command, and keep its messages with the seconds since its start."""
    source = given.out / "rows.parquet"
    pq.write_table(pa.table({"sku": range(len(rows)), "description": rows}), source)
    argv = [sys.executable, "-m", "dragoman_producer", "translate", str(source)]
    argv += ["--column", "description", "--from", "en", "--to", "de"]
    argv += ["--model", str(given.model), "--profile", given.profile]
    argv += ["--out", str(given.out / "translated"), "--data", str(given.out / "box"), "--json"]
    settings = {
        "DRAGOMAN_ENGINE__OPTIONS": json.dumps(OPTIONS),
        "DRAGOMAN_ENGINE__EXACT_LENGTHS": str(TOKENS_PER_CHARACTER),
        "DRAGOMAN_QUALITY__LEVEL": "off",
    }
    began = time.monotonic()
    messages = []
    with (
        (given.out / "report.jsonl").open("w") as report,
        subprocess.Popen(
            argv, env=os.environ | settings, stdout=report, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        for line in process.stderr or ():
            messages.append(f"{time.monotonic() - began:.1f} {line.rstrip()}")
            print(messages[-1], flush=True)
    seconds = round(time.monotonic() - began, 1)
    return {"status": process.returncode, "seconds": seconds, "messages": messages}


def generated(given: argparse.Namespace, rows: list[str]) -> dict[str, Any]:
    """Return the rows per second of `LLM.generate` with the prompts that a worker would send."""
    began = time.monotonic()
    engine = LLM(model=str(given.model), **OPTIONS)
    loaded, tokenizer = time.monotonic(), engine.get_tokenizer()
    profile = PROFILES[given.profile]
    prompts = [profile.render(PromptInput(text, "de", "en")).prompt for text in rows]
    asked = [TokensPrompt(prompt_token_ids=list(tokens.encode(p, tokenizer))) for p in prompts]
    lengths = [max(1, round(TOKENS_PER_CHARACTER * len(text))) for text in rows]
    params = [SamplingParams(max_tokens=each, ignore_eos=True, temperature=0) for each in lengths]
    started = time.monotonic()
    engine.generate(asked, params, use_tqdm=False)
    seconds = time.monotonic() - started
    return {
        "load_s": round(loaded - began, 1), "seconds": round(seconds, 1),
        "rows_per_s": round(len(rows) / seconds, 1),
    }  # fmt: skip


def main() -> None:
    """Run both, one after the other, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=12_000)
    given = parser.parse_args()
    given.out.mkdir(parents=True)
    rows = texts(given.rows)
    figures: dict[str, Any] = {"rows": len(rows), "translate": translated(given, rows)}
    print(json.dumps(figures), flush=True)
    figures["LLM.generate"] = generated(given, rows)
    print(json.dumps(figures["LLM.generate"]), flush=True)
    (given.out / "figures.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
