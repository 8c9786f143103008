"""The demonstration model's translation of HTML pages beside the pages that people translated.

    human_pages.py SOURCE LANG=FOLDER... [--files 40] [--seed 1] [--out DIR] [--settings JSON]

SOURCE holds English pages, each FOLDER the same pages in one of the model's languages. Counts the
pages whose translation by people has as many segments as the source, in every language. Draws
`--files` of these (0: all), translates them with `dragoman translate`, a worker with vLLM and the
demonstration model, and pairs the segments of both translations by their number. `--settings` are
the worker's, beside those for two CPU cores. Prints, per
language, chrF of the model, and of the untranslated source as the floor, over the segments that
people have translated (pages of help hold many that nobody has), and what report.json counts.
With the `--out` of an earlier run it scores what lies there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import sacrebleu

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "quality")]

import pipeline  # noqa: E402
from demo_model import SETTINGS  # noqa: E402

from dragoman_documents.codec import DocumentError, Options  # noqa: E402
from dragoman_documents.registry import codec  # noqa: E402
from dragoman_text.inline import pieces  # noqa: E402

HTML: Final = codec("html")
Row = dict[str, Any]


def texts(path: Path) -> list[str]:
    """Return the segments of a page without their inline tags; none if it cannot be read."""
    try:
        segments = HTML.extract(path.read_bytes(), Options("de", "en")).segments
    except (DocumentError, OSError):
        return []
    return [
        "".join(piece for piece in pieces(each.text) if isinstance(piece, str)) for each in segments
    ]


def parallel(source: Path, humans: dict[str, Path]) -> tuple[dict[str, int], list[Path]]:
    """Return the numbers of pages with equal segments, and the pages that have them in all."""
    counts = dict.fromkeys(("pages", *humans), 0)
    everywhere: list[Path] = []
    for path in sorted(source.rglob("*.html")):
        name = path.relative_to(source)
        wanted = len(texts(path))
        equal = [lang for lang, folder in humans.items() if len(texts(folder / name)) == wanted > 0]
        for each in ("pages", *equal):
            counts[each] += 1
        if len(equal) == len(humans):
            everywhere.append(name)
    return counts, everywhere


async def translate(
    folder: Path, out: Path, languages: list[str], settings: Row
) -> tuple[float, Row]:
    """Translate a folder of English pages; return the seconds and the report."""
    async with pipeline.services("embedded") as (kafka, redis, _pids):
        at = {"kafka.bootstrap_servers": kafka, "redis.url": redis}
        argv = [sys.executable, "-m", "dragoman_producer", "translate", str(folder)]
        argv += ["--from", "en", "--to", ",".join(languages), "--out", str(out)]
        addresses = {"DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": kafka, "DRAGOMAN_REDIS__URL": redis}
        wanted = SETTINGS | at | {"memory.enabled": True} | settings
        with pipeline.started(wanted, out / "worker.log"):
            start = time.monotonic()
            command = await asyncio.create_subprocess_exec(*argv, env=os.environ | addresses)
            status = await command.wait()
    if status not in {0, 3}:
        raise subprocess.CalledProcessError(status, argv)
    return time.monotonic() - start, json.loads((out / "report.json").read_text(encoding="utf-8"))


def run(source: Path, names: list[Path], folder: Path, languages: list[str], settings: Row) -> None:
    """Translate pages into `folder`; print the seconds and the counts of the report."""
    for name in names:
        place = folder / "in" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((source / name).read_bytes())
    (folder / "out").mkdir(exist_ok=True)
    seconds, report = asyncio.run(translate(folder / "in", folder / "out", languages, settings))
    print(json.dumps({"seconds": round(seconds), "targets": report["targets"]}))


def scored(found: list[tuple[str, str, str]]) -> Row:
    """Return chrF of the answers and of the sources against the human translations.

    Each row is source, answer, human translation.
    """
    translated = [row for row in found if row[0] != row[2]]
    sources, answers, humans = (list(column) for column in zip(*translated, strict=True))
    return {
        "segments": len(found),
        "translated_by_people": len(translated),
        "chrf": round(sacrebleu.corpus_chrf(answers, [humans]).score, 1),
        "chrf_of_source": round(sacrebleu.corpus_chrf(sources, [humans]).score, 1),
        "same_as_source": sum(a == s for a, s in zip(answers, sources, strict=True)),
    }


def score(names: list[Path], source: Path, human: Path, out: Path) -> Row:
    """Return the scores of one language over the segments of the pages."""
    found: list[tuple[str, str, str]] = []
    for name in names:
        page = [texts(folder / name) for folder in (source, out, human)]
        if len({len(column) for column in page}) == 1:
            found += zip(*page, strict=True)
    return scored(found)


def main() -> None:
    """Translate, score and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("human", nargs="+", metavar="LANG=FOLDER")
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--settings", type=json.loads, default={})
    given = parser.parse_args()
    humans = {lang: Path(folder) for lang, _, folder in (e.partition("=") for e in given.human)}
    counts, everywhere = parallel(given.source, humans)
    print(json.dumps({"pages with equal segments": counts, "in all": len(everywhere)}), flush=True)
    wanted = min(given.files or len(everywhere), len(everywhere))
    names = random.Random(given.seed).sample(everywhere, wanted)
    folder = given.out or Path(tempfile.mkdtemp())
    if not (folder / "out" / "report.json").exists():
        run(given.source, names, folder, list(humans), given.settings)
    for lang, human in humans.items():
        row = score(names, given.source, human, folder / "out" / lang)
        print(json.dumps({"to": lang, **row}))


if __name__ == "__main__":
    main()
