"""A model on a public set: chrF and BLEU by direction, what the gates find, jobs/s.

usage: check_model.py --model DIR|NAME (--ntrex DIR | --flores DIR | --wmt DIR | --tsv FILE)
                      --pairs en-de en-fr [--limit 500] [--profile NAME] [--set NAME=VALUE ...]
                      [--show 20] [--out benchmarks-out/model]

Each pair of languages is jobs for one worker with vLLM, an embedded broker and an embedded Redis,
at the default quality level and without the memory. A job is one text. chrF and BLEU are those of
sacrebleu against one reference (Japanese by ja-mecab, Chinese by its own tokenizer); a text without
translation counts as empty. Jobs/s count from the first job's start to the last one's end, and mean
little below a thousand jobs. `--show` prints items of each verdict. The sets are described in
README.md beside this file, and `--out` keeps the results.

The demonstration's model, on a CPU:

    check_model.py --model demo/model --profile demo --cpu --ntrex DIR --pairs en-de --limit 200
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import pipeline  # noqa: E402
import public_sets  # noqa: E402
from demo_model import SETTINGS, Pair, Row, scores, show, verdicts  # noqa: E402

from dragoman_producer import TranslationClient  # noqa: E402
from dragoman_schemas import TranslationJob  # noqa: E402
from dragoman_worker.recognition import recognized_profile  # noqa: E402

SETS = {
    "ntrex": public_sets.ntrex,
    "flores": public_sets.flores,
    "wmt": public_sets.wmt,
    "tsv": public_sets.tsv,
}
_FIELDS = ("source", "target", "source_lang", "target_lang")


def sample(given: argparse.Namespace) -> list[Pair]:
    """Return up to `limit` random pairs of each pair of languages."""
    [(read, place)] = [(SETS[name], getattr(given, name)) for name in SETS if getattr(given, name)]
    found: dict[str, list[Pair]] = {wanted: [] for wanted in given.pairs}
    for one in read(place):
        direction = f"{one.source_lang}-{one.target_lang}"
        if direction in found:
            found[direction].append({name: getattr(one, name) for name in _FIELDS})
    missing = [direction for direction, pairs in found.items() if not pairs]
    if missing:
        raise SystemExit(f"not in this set: {', '.join(missing)}; it has tags such as en-pt-BR")
    chance = random.Random(1)
    return [
        pair
        for pairs in found.values()
        for pair in chance.sample(pairs, min(given.limit, len(pairs)))
    ]


def settings_of(given: argparse.Namespace) -> dict[str, Any]:
    """Return the worker's settings: the model's, and those given by `--set`."""
    profile = given.profile or recognized_profile(given.model)
    if profile is None:
        raise SystemExit(f"no profile is known for {given.model}: give one with --profile")
    chosen: dict[str, Any] = {
        "engine.kind": "vllm",
        "engine.model": given.model,
        "engine.profile": profile,
        "memory.enabled": False,
        "quality.on_fail": "best_effort",
        "http.port": 0,
    }
    if given.cpu:
        chosen |= {name: value for name, value in SETTINGS.items() if ".options." in name}
    return chosen | dict(each.split("=", 1) for each in given.set)


async def translated(
    pairs: list[Pair], settings: dict[str, Any], folder: Path
) -> list[dict[str, Any]]:
    """Return the results of the pairs, in their order."""
    jobs = [
        TranslationJob(
            job_id=f"{number}",
            text=pair["source"],
            source_lang=pair["source_lang"],
            target_lang=pair["target_lang"],
        )
        for number, pair in enumerate(pairs)
    ]
    async with pipeline.services("embedded") as (kafka, redis, _pids):
        at = {"kafka.bootstrap_servers": kafka, "redis.url": redis}
        async with TranslationClient(bootstrap_servers=kafka, redis_url=redis) as client:
            handles = [handle async for handle in client.submit_many(jobs)]
            with pipeline.started(settings | at, folder / "worker.log") as pid:
                await pipeline.work_begins({}, pid, folder)
                results = [await handle.result(timeout_s=3_600) for handle in handles]
    return [result.model_dump(mode="json") for result in results]


def report(pairs: list[Pair], results: list[dict[str, Any]]) -> None:
    """Print the tables."""
    rows: list[Row] = [result["translations"][0] for result in results]
    directions = [f"{pair['source_lang']}-{pair['target_lang']}" for pair in pairs]
    print("| direction | texts | chrF | BLEU | ok | warn | fail |\n|---|---|---|---|---|---|---|")
    for direction, (bleu, chrf) in scores(pairs, rows).items():
        own = [
            row["quality"] for row, each in zip(rows, directions, strict=True) if each == direction
        ]
        counts = " | ".join(
            f"{own.count(verdict) / len(own):.1%}" for verdict in ("ok", "warn", "fail")
        )
        print(f"| {direction} | {len(own)} | {chrf} | {bleu} | {counts} |")
    found = verdicts(rows)
    print("\n| gate and verdict | texts |\n|---|---|")
    for gate, count in found["findings"].items():
        print(f"| {gate} | {count} |")
    print(f"\n{found['answers']} answers for {len(rows)} texts, {found['asked again']} asked again")
    pace = pipeline.row_of(results, pipeline.GpuBusy())
    words = sum(len(pair["source"].split()) for pair in pairs) / pace["seconds"]
    print(
        f"{pace['jobs_per_s']:.1f} jobs/s, {words:,.0f} words/s, "
        f"{pace['output_tokens_per_s']:,.0f} output tokens/s over {pace['seconds']:.1f} s; "
        f"{json.dumps(pace['statuses'])}"
    )


def main() -> None:
    """Translate, or read what was translated before, and print the tables."""
    parser = argparse.ArgumentParser(description="A model on a public set.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--profile")
    places = parser.add_mutually_exclusive_group(required=True)
    for name in SETS:
        places.add_argument(f"--{name}", type=Path)
    parser.add_argument("--pairs", nargs="+", required=True, metavar="en-de")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--cpu", action="store_true", help="small limits, for the demo's model")
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks-out/model"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pairs, place = sample(given), given.out / "results.json"
    results = asyncio.run(translated(pairs, settings_of(given), given.out))
    place.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    report(pairs, results)
    if given.show:
        show(pairs, [result["translations"][0] for result in results], given.show)


if __name__ == "__main__":
    main()
