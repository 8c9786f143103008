"""Detection of planted errors by the quality gates, after the cleaning that profiles do.

usage: detection.py --catalogues /usr/share/locale [--tatoeba DIR] [--help-pages DIR]
                    [--pairs 60000] [--errors 1000] [--show 5] [--out DIR]

Prints the share of planted errors of each kind that the gate for it finds, and that any gate does.
A human translation with findings of its own is not damaged. Where cleaning restores the
translation, the error is not planted.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

from corpora import Pair, add_options, sampled
from planted import KINDS, Kind

from dragoman_text.detection import LanguageDetector
from dragoman_text.gates import judge, languages
from dragoman_text.gates.prose import letters, plain
from dragoman_text.spans import is_translatable
from dragoman_text.verdicts import Candidate, Finding
from dragoman_worker.prompts.cleaning import cleaned

DETECT = LanguageDetector().detect


def findings(pair: Pair, answer: str) -> tuple[Finding, ...]:
    """Return what the gates find in one answer."""
    candidate = Candidate(pair.source, answer, pair.target_lang, pair.source_lang)
    return tuple(
        each for each in judge(candidate, detect=DETECT).findings if each.severity != "fixed"
    )


def detected(
    kind: Kind, pairs: list[Pair], errors: int, chance: random.Random
) -> tuple[Counter[str], list[str]]:
    """Plant up to `errors` errors; return the counts and what was missed."""
    counts: Counter[str] = Counter()
    missed: list[str] = []
    for pair in chance.sample(pairs, len(pairs)):
        if counts["planted"] >= errors:
            break
        answer = _planted(kind, pair, chance, pairs)
        if answer is None or findings(pair, pair.target):
            continue
        found = findings(pair, answer)
        counts["planted"] += 1
        counts["gate"] += any(each.gate in kind.gates for each in found)
        counts["failed"] += any(each.severity == "fail" for each in found)
        counts["any"] += bool(found)
        if not any(each.gate in kind.gates for each in found):
            missed.append(f"[{pair.target_lang}] {pair.source!r}\n    {answer!r}")
    return counts, missed


def _planted(kind: Kind, pair: Pair, chance: random.Random, pairs: list[Pair]) -> str | None:
    answer = kind.plant(pair, chance, pairs)
    if answer is None:
        return None
    if "language" in kind.gates and not _is_judged(kind, pair, answer):
        return None
    answer = cleaned(answer, pair.source)
    return None if answer.strip() == pair.target.strip() else answer


def _is_judged(kind: Kind, pair: Pair, answer: str) -> bool:
    """Return whether the answer has the letters of its kind and is not of the target's family."""
    number = letters(plain(answer))
    most = 39 if kind.least_letters == 20 and kind.gates == ("language",) else 10**6
    if not kind.least_letters <= number <= most:
        return False
    if kind.gates == ("language",):
        return True
    return not languages.same_family(pair.target_lang, pair.source_lang)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_options(parser)
    parser.add_argument("--errors", type=int, default=1000)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--only", help="a word of the kind's name")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    pairs = [pair for pair in sampled(given) if is_translatable(pair.source)]
    rows = []
    for kind in KINDS:
        if given.only and given.only not in kind.name:
            continue
        counts, missed = detected(kind, pairs, given.errors, random.Random(given.seed))
        rows.append({"kind": kind.name, "gates": kind.gates, **counts})
        print_row(kind, counts)
        for text in missed[: given.show]:
            print(f"    {text}")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "detection.json").write_text(json.dumps(rows, indent=1) + "\n")


def print_row(kind: Kind, counts: Counter[str]) -> None:
    planted = max(1, counts["planted"])
    shares = "  ".join(f"{name} {100 * counts[name] / planted:6.2f} %" for name in COLUMNS)
    print(f"{kind.name:32}{planted:6,}  {shares}", flush=True)


COLUMNS = ("gate", "failed", "any")

if __name__ == "__main__":
    main()
