"""Quality and pace of held-out sentences through the whole pipeline, by the public commands.

usage: held_out.py [--rounds 1] [--out DIR]

2,000 sentence pairs that the demonstration model has never seen, 250 in each of eight directions,
go through `dragoman submit` into a real Kafka; then a worker with vLLM on the CPU is started, and
`dragoman result` reads what it wrote to a real Redis. Scores are sacrebleu's BLEU (Japanese by
ja-mecab) and chrF against one reference. The same jobs go through `LLM.generate` in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import sacrebleu
from pipeline import GpuBusy, baseline, cpu_seconds, row_of, services, work_begins, worker

ROOT = Path(__file__).parents[1]
PAIRS = ROOT / "demo" / "training" / "test.jsonl"
OPTIONS = {
    "max_num_seqs": 64,
    "max_num_batched_tokens": 2048,
    "max_model_len": 512,
    "enforce_eager": True,
}


def command(*arguments: str) -> str:
    """Return one `dragoman` command's stdout; exit if it fails."""
    argv = [str(Path(sys.executable).with_name("dragoman")), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1, 3}:
        raise SystemExit(f"{' '.join(argv[:3])}: {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def jobs(pairs: list[dict[str, str]], place: Path) -> Path:
    """Return the pairs as TranslationJobs, one per line."""
    with place.open("w", encoding="utf-8") as file:
        for number, pair in enumerate(pairs):
            job = {
                "job_id": f"held-out-{number}",
                "text": pair["source"],
                "source_lang": pair["source_lang"],
                "target_lang": pair["target_lang"],
            }
            file.write(json.dumps(job, ensure_ascii=False) + "\n")
    return place


async def through_the_pipeline(given: argparse.Namespace, gpu: GpuBusy) -> tuple[Any, list[Any]]:
    """Return the row of figures and the results, in the order of the pairs."""
    async with services("real") as (kafka, redis, pids):
        at = ("--kafka", kafka, "--redis", redis)
        published = command("submit", str(given.jobs), "--to", "en", "--json", *at)
        ids = [json.loads(line)["job_id"] for line in published.splitlines()]
        with worker(given, kafka, redis, given.out) as pid:
            before = await work_begins(pids, pid, given.out)
            printed = await asyncio.to_thread(
                command, "result", *ids, "--wait", "--timeout", "900", "--json", *at
            )
            after = cpu_seconds(pids, pid)
    results = [json.loads(line) for line in printed.splitlines()]
    row = row_of([result.get("result", result) for result in results], gpu)
    row["cpu_share"] = {
        name: round((after[name] - before.get(name, 0.0)) / row["seconds"], 3) for name in after
    }
    return row, [result.get("result", result) for result in results]


def scores(pairs: list[dict[str, str]], results: list[Any]) -> dict[str, dict[str, Any]]:
    """Return BLEU and chrF by direction; a failed job counts as an empty translation."""
    by_direction: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for pair, result in zip(pairs, results, strict=True):
        text = (result["translations"] or [{"text": ""}])[0]["text"] or ""
        direction = f"{pair['source_lang']}-{pair['target_lang']}"
        by_direction[direction].append((text, pair["target"], result["status"]))
    return {direction: _score(direction, rows) for direction, rows in by_direction.items()}


def _score(direction: str, rows: list[tuple[str, str, str]]) -> dict[str, Any]:
    texts, references = [text for text, _, _ in rows], [[reference for _, reference, _ in rows]]
    tokenizer = "ja-mecab" if direction.endswith("-ja") else "13a"
    return {
        "bleu": round(sacrebleu.corpus_bleu(texts, references, tokenize=tokenizer).score, 1),
        "chrf": round(sacrebleu.corpus_chrf(texts, references).score, 1),
        "statuses": dict(Counter(status for _, _, status in rows)),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks-out"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    given.model, given.profile = str(ROOT / "demo" / "model"), "demo"
    given.options, given.exact_lengths = OPTIONS, False
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    pairs = pairs[: given.limit]
    given.jobs = jobs(pairs, given.out / "jobs.jsonl")
    gpu = GpuBusy()
    rows = []
    for _ in range(given.rounds):
        ceiling = baseline(given, gpu)
        ours, results = asyncio.run(through_the_pipeline(given, gpu))
        rows.append(
            {
                "baseline": ceiling,
                "pipeline": ours,
                "ratio": round(ours["jobs_per_s"] / ceiling["jobs_per_s"], 3),
                "scores": scores(pairs, results),
            }
        )
        print(json.dumps(rows[-1], indent=1), flush=True)
    (given.out / "held-out.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
