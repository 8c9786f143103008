"""Share of texts whose source language is detected: by letters, alone and as jobs of several texts.

usage: source_detection.py --catalogues /usr/share/locale [--tatoeba DIR] [--jobs 60]

Alone: one text per row of letters, detected by itself. Jobs: texts of up to 30 letters of one
language, or of two. Every figure is the mean over the languages of that corpus. `sure` is the
share that is not doubtful, `wrong` the share that is sure and wrong, `target` the share for which
the target is found.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean

from corpora import add_options, sampled

from dragoman_text.detection import LanguageDetector

LETTERS = ((3, 8), (9, 15), (16, 30), (31, 60))
JOBS = ((1, 0), (2, 0), (3, 0), (5, 0), (10, 0), (20, 0), (5, 5), (9, 1))
LEAST_TEXTS = 200
DETECTOR = LanguageDetector()
Texts = Mapping[tuple[str, str], Sequence[str]]


def texts_of(given: argparse.Namespace) -> Texts:
    """Return the different texts by corpus and language, in random order."""
    texts: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pair in sampled(given):
        texts[pair.corpus, pair.target_lang.partition("-")[0]].add(pair.target)
    chance = random.Random(given.seed)
    return {key: chance.sample(sorted(some), len(some)) for key, some in texts.items()}


def letters(text: str) -> int:
    """Return how many letters a text has."""
    return sum(map(str.isalpha, text))


def alone(texts: Texts, corpus: str, least: int, most: int, count: int) -> str:
    """Return a row: the texts of this length, each by itself."""
    rows = []
    for (of, language), some in texts.items():
        chosen = [text for text in some if least <= letters(text) <= most][:count]
        if of == corpus and len(chosen) >= count // 2:
            rows.append(_judged([([text], [language]) for text in chosen]))
    return _row(f"{corpus}: {least}-{most} letters", rows)


def jobs(
    texts: Texts, corpus: str, size: tuple[int, int], count: int, target: str | None = None
) -> str:
    """Return a row: jobs of `size` texts, the second part of it in another language."""
    short = {
        language: [text for text in some if 3 <= letters(text) <= 30]
        for (of, language), some in texts.items()
        if of == corpus and language != target
    }
    short = {language: some for language, some in short.items() if len(some) >= LEAST_TEXTS}
    chance, rows = random.Random(1), []
    for language, some in short.items():
        cases = []
        for _ in range(count):
            other = chance.choice([each for each in short if each != language])
            mixed = chance.sample(some, size[0]) + chance.sample(short[other], size[1])
            cases.append((mixed, [language] * size[0] + [other] * size[1]))
        rows.append(_judged(cases, target))
    into = f", into {target}" if target else ""
    return _row(f"{corpus}: jobs of {size[0]}+{size[1]}{into}", rows)


def _judged(
    cases: Sequence[tuple[Sequence[str], Sequence[str]]], target: str | None = None
) -> tuple[float, float, float, float]:
    """Return the shares: right, sure, sure and wrong, the target."""
    right = sure = wrong = wrong_target = total = 0
    for texts, languages in cases:
        found = DETECTOR.detect_job(texts, None, target)
        for detection, language in zip(found, languages, strict=True):
            tag = detection.language if detection else None
            is_right = {"no": "nb", "yue": "zh"}.get(tag or "", tag) == language
            is_sure = detection is not None and not detection.doubtful
            total, right, sure = total + 1, right + is_right, sure + is_sure
            wrong += is_sure and not is_right
            wrong_target += tag == target and is_sure
    return right / total, sure / total, wrong / total, wrong_target / total


def _row(name: str, rows: Sequence[tuple[float, float, float, float]]) -> str:
    if not rows:
        return f"{name:36} no texts"
    right, sure, wrong, target = (100 * mean(column) for column in zip(*rows, strict=True))
    return f"{name:36} {len(rows):3} {right:6.1f} {sure:6.1f} {wrong:6.2f} {target:6.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--jobs", type=int, default=60, help="texts or jobs per row and language")
    given = parser.parse_args()
    texts = texts_of(given)
    print(f"{'in %':36} langs right   sure  wrong target")
    for corpus in dict.fromkeys(corpus for corpus, _ in texts):
        for least, most in LETTERS:
            print(alone(texts, corpus, least, most, given.jobs))
        for size in JOBS:
            print(jobs(texts, corpus, size, given.jobs))
        for size in JOBS[:1] + JOBS[3:4]:
            print(jobs(texts, corpus, size, given.jobs, "de"))


if __name__ == "__main__":
    main()
