"""Jobs to measure throughput with: lengths as in service, and uniform ones that mislead.

usage: job_mix.py COUNT [SEED] [--uniform] > jobs.jsonl

Sources are log-normal around 60 words, 10 to 200; the forced output has 0.9 to 1.4 tokens per
source word, 8 to 240, given as `sampling.max_tokens`, which `engine.exact_lengths` makes exact.
With `--uniform` every source has 74 words and every output 85 tokens, about the mean of the others.
For models with random weights, whose text has no meaning and no end.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from typing import Any

UNIFORM_WORDS, UNIFORM_TOKENS = 74, 85
WORDS = (  # noqa: SIM905  four lines instead of eighty
    "the of and to in is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find"
).split()


def source(words: int, draw: random.Random) -> str:
    """Return sentences of common words, `words` in all."""
    text = [draw.choice(WORDS) for _ in range(words)]
    for end in range(11, words, 12):
        text[end] += "."
    return " ".join(text).capitalize() + "."


def mix(
    count: int, seed: int = 7, *, uniform: bool = False, words_seed: int | None = None
) -> list[dict[str, Any]]:
    """Return `count` jobs.

    Another `words_seed` gives other words of the same lengths, so that no cache helps.
    """
    draw = random.Random(seed)
    wording = draw if words_seed is None else random.Random(words_seed)
    return [_job(number, uniform, draw, wording) for number in range(count)]


def _job(number: int, uniform: bool, draw: random.Random, wording: random.Random) -> dict[str, Any]:
    words, tokens = UNIFORM_WORDS, UNIFORM_TOKENS
    if not uniform:
        words = max(10, min(200, round(draw.lognormvariate(math.log(60), 0.6))))
        tokens = max(8, min(240, round(words * draw.uniform(0.9, 1.4))))
    return {
        "job_id": f"mix-{number}",
        "text": source(words, wording),
        "source_lang": "en",
        "target_lang": "de",
        "sampling": {"max_tokens": tokens},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=7)
    parser.add_argument("--uniform", action="store_true")
    given = parser.parse_args()
    for job in mix(given.count, given.seed, uniform=given.uniform):
        sys.stdout.write(json.dumps(job) + "\n")


if __name__ == "__main__":
    main()
