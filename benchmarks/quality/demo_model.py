"""The demonstration model through all gates: verdicts on held-out sentences, and their price.

usage: demo_model.py [--catalogues DIR] [--limit 2000] [--levels off basic] [--show 50] [--out DIR]

The 2,000 pairs of `demo/training/test.jsonl`, 250 per direction, are jobs for a worker with vLLM on
the CPU, once per level of the gates and without the memory. With `--catalogues` they are messages
of programs instead, in the same languages: text that the model was not trained for. Per level:
verdicts, findings by gate, answers per item, BLEU (Japanese by ja-mecab) and chrF against one
reference. `--show` prints items of each verdict, to be read one by one. `--out` keeps the results;
a level found there is not translated again. The level `judged` has the gates of this checkout judge
the answers of the level `off`, without an engine: after a change of a gate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

import sacrebleu

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import corpora  # noqa: E402
import pipeline  # noqa: E402

from dragoman_producer import TranslationClient  # noqa: E402
from dragoman_schemas import TranslationJob  # noqa: E402
from dragoman_text.detection import LanguageDetector  # noqa: E402
from dragoman_text.gates import judge  # noqa: E402
from dragoman_text.spans import is_translatable  # noqa: E402
from dragoman_text.verdicts import Candidate  # noqa: E402

PAIRS = ROOT / "demo" / "training" / "test.jsonl"
SETTINGS = {
    "engine.kind": "vllm",
    "engine.model": str(ROOT / "demo" / "model"),
    "engine.profile": "demo",
    "engine.options.max_num_seqs": 64,
    "engine.options.max_num_batched_tokens": 2048,
    "engine.options.max_model_len": 512,
    "engine.options.enforce_eager": True,
    "engine.options.gpu_memory_utilization": 0.15,
    "memory.enabled": False,
    "quality.on_fail": "best_effort",
    "http.port": 0,
}
LANGUAGES = frozenset({"de", "fr", "es", "ja"})
Pair = dict[str, str]
Row = dict[str, Any]


def held_out() -> list[Pair]:
    """Return the sentences that no training pair contains."""
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def messages(folder: Path) -> list[Pair]:
    """Return messages of programs in the model's languages, in random order."""
    pairs = [
        {name: getattr(pair, name) for name in ("source", "target", "source_lang", "target_lang")}
        for pair in corpora.catalogues(folder)
        if pair.target_lang in LANGUAGES and is_translatable(pair.source)
    ]
    return random.Random(1).sample(pairs, len(pairs))


async def translated(pairs: Sequence[Pair], level: str, folder: Path) -> list[Row]:
    """Return the item results of the pairs, in their order."""
    async with pipeline.services("embedded") as (kafka, redis, _pids):
        at = {"kafka.bootstrap_servers": kafka, "redis.url": redis, "quality.level": level}
        async with TranslationClient(bootstrap_servers=kafka, redis_url=redis) as client:
            handles = [
                handle async for handle in client.submit_many(starmap(_job, enumerate(pairs)))
            ]
            with pipeline.started(SETTINGS | at, folder / f"worker-{level}.log"):
                results = [await handle.result(timeout_s=3_600) for handle in handles]
    return [result.translations[0].model_dump(mode="json") for result in results]


def judged(pairs: Sequence[Pair], rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the verdicts of the gates about their texts."""
    detector = LanguageDetector()
    found: list[Row] = []
    for pair, row in zip(pairs, rows, strict=True):
        languages = pair["target_lang"], pair["source_lang"]
        candidate = Candidate(pair["source"], row["text"] or "", *languages)
        judgement = judge(candidate, detect=detector.detect)
        checks = {
            each.gate: {"verdict": each.severity, "detail": each.detail}
            for each in judgement.findings
        }
        verdict = {"text": judgement.text, "quality": judgement.verdict, "checks": checks}
        found.append(row | verdict)
    return found


def _job(number: int, pair: Pair) -> TranslationJob:
    job = {name: pair[name] for name in ("source_lang", "target_lang")}
    return TranslationJob.model_validate({"job_id": f"{number}", "text": pair["source"], **job})


def verdicts(rows: Sequence[Row]) -> Row:
    """Return the numbers of verdicts, of findings by gate and of answers."""
    gates = Counter(
        f"{gate} {check['verdict']}" for row in rows for gate, check in row["checks"].items()
    )
    return {
        "verdicts": dict(Counter(row["quality"] for row in rows)),
        "findings": dict(sorted(gates.items())),
        "asked again": sum(row["attempts"] > 1 for row in rows),
        "answers": sum(row["attempts"] for row in rows),
    }


def scores(pairs: Sequence[Pair], rows: Sequence[Row]) -> Row:
    """Return BLEU and chrF by direction; a missing text counts as an empty translation."""
    texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pair, row in zip(pairs, rows, strict=True):
        direction = f"{pair['source_lang']}-{pair['target_lang']}"
        texts[direction].append((row["text"] or "", pair["target"]))
    return {direction: _score(direction, found) for direction, found in sorted(texts.items())}


def _score(direction: str, found: Sequence[tuple[str, str]]) -> tuple[float, float]:
    answers, references = [text for text, _ in found], [[reference for _, reference in found]]
    tokenizer = {"ja": "ja-mecab", "zh": "zh"}.get(direction.split("-")[1], "13a")
    bleu = sacrebleu.corpus_bleu(answers, references, tokenize=tokenizer).score
    return round(bleu, 1), round(sacrebleu.corpus_chrf(answers, references).score, 1)


def show(pairs: Sequence[Pair], rows: Sequence[Row], most: int) -> None:
    """Print random items of each verdict, and items that a gate repaired or had asked again."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        changed = any(check["verdict"] == "fixed" for check in row["checks"].values())
        groups["fixed" if changed and row["quality"] == "ok" else row["quality"]].append(place)
    for verdict, places in sorted(groups.items()):
        print(f"\n# {verdict}: {len(places)}")
        for place in random.Random(1).sample(places, min(most, len(places))):
            pair, row = pairs[place], rows[place]
            print(f"[{pair['source_lang']}-{pair['target_lang']}] {pair['source']!r}")
            print(f"    answer    {row['text']!r}\n    reference {pair['target']!r}")
            for gate, check in row["checks"].items():
                print(f"    {gate}: {json.dumps(check, ensure_ascii=False)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The demonstration model through all gates.")
    parser.add_argument("--catalogues", type=Path, help="folder such as /usr/share/locale")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--levels", nargs="+", default=["off", "basic"])
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks-out"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pairs = messages(given.catalogues) if given.catalogues else held_out()
    pairs = pairs[: given.limit]
    for level in given.levels:
        place = given.out / f"demo-model-{level}.json"
        if level == "judged":
            first = json.loads((given.out / "demo-model-off.json").read_text())
            place.write_text(json.dumps(judged(pairs, first), ensure_ascii=False) + "\n")
        elif not place.exists():
            rows = asyncio.run(translated(pairs, level, given.out))
            place.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
        rows = json.loads(place.read_text())
        print(json.dumps({"level": level, **verdicts(rows), "scores": scores(pairs, rows)}))
        if level != "off":
            show(pairs, rows, given.show)


if __name__ == "__main__":
    main()
