"""Which jobs is throughput measured with? Lengths as in service, not uniform ones.

usage: job_mix.py COUNT [SEED] > jobs.jsonl

Sources are log-normal around 60 words, 10 to 200; the forced output has 0.9 to 1.4 tokens a source
word, 8 to 240, given as `sampling.max_tokens`, which `engine.exact_lengths` makes exact. For models
with random weights, whose text has no meaning and no end.
"""

from __future__ import annotations

import json
import math
import random
import sys

WORDS = (  # noqa: SIM905  four lines instead of eighty
    "the of and to in is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find"
).split()


def source(words: int, draw: random.Random) -> str:
    """Sentences of common words, `words` in all."""
    text = [draw.choice(WORDS) for _ in range(words)]
    for end in range(11, words, 12):
        text[end] += "."
    return " ".join(text).capitalize() + "."


def main() -> None:
    count = int(sys.argv[1])
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    for number in range(count):
        words = max(10, min(200, round(draw.lognormvariate(math.log(60), 0.6))))
        tokens = max(8, min(240, round(words * draw.uniform(0.9, 1.4))))
        job = {
            "job_id": f"mix-{number}",
            "text": source(words, draw),
            "source_lang": "en",
            "target_lang": "de",
            "sampling": {"max_tokens": tokens},
        }
        sys.stdout.write(json.dumps(job) + "\n")


if __name__ == "__main__":
    main()
