"""Synthetic pairs: translations of a first model, for the training of a second one.

    python -m demo.training.synthetic --data DIR --model DIR --out FILE

This translates every English training sentence into each language it lacks (greedily). It also
translates sentences that have a translation, in both directions (sampled, so that they differ).
Only training pairs are read, so no held-out sentence can enter.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from .corpus import Pair, load_split, normalise
from .generate import Decoding, Generator, Request
from .samples import OTHERS, Synthetic

GREEDY = Decoding(abandon_share=0.004)
SAMPLED = Decoding(temperature=0.7, abandon_share=0.004)
LEAST_RATIO, MOST_RATIO = 0.4, 2.5


def lacking(pairs: Iterable[Pair]) -> list[Request]:
    """Return each English sentence with each language that it has no translation into."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        known[pair.english].add(pair.language)
    return [
        Request(english, language)
        for english, languages in known.items()
        for language in OTHERS
        if language not in languages
    ]


def again(pairs: Iterable[Pair]) -> tuple[list[Request], list[tuple[str, str]]]:
    """Return translated sentences: requests out of English, and (text, language) into it."""
    out = {(pair.english, pair.language): None for pair in pairs}
    into = {(pair.other, pair.language): None for pair in pairs}
    return [Request(english, language) for english, language in out], list(into)


def plausible(source: str, written: str, ratios: tuple[float, float]) -> bool:
    """Return whether `written` is not empty, not a loop and of a usual length for `source`."""
    if not written or not ratios[0] <= len(written) / len(source) <= ratios[1]:
        return False
    words = written.split()
    return 3 * len(set(words)) > len(words) and 5 * len(set(written)) > len(written) ** 0.75


def ratios_for(source_lang: str, target_lang: str) -> tuple[float, float]:
    """Return the allowed range of characters written per character read, by language."""
    if target_lang == "ja":
        return LEAST_RATIO * 0.4, MOST_RATIO * 0.5
    if source_lang == "ja":
        return LEAST_RATIO * 2, MOST_RATIO * 2.5
    return LEAST_RATIO, MOST_RATIO


def out_of_english(
    generator: Generator, requests: Sequence[Request], decoding: Decoding, known: set[Pair]
) -> list[Synthetic]:
    """Return new translations of English text, without the known ones."""
    made: list[Synthetic] = []
    for request, written in zip(requests, generator.translate(requests, decoding), strict=True):
        pair = Pair(request.source, normalise(written or ""), request.target_lang)
        ratios = ratios_for("en", request.target_lang)
        if plausible(pair.english, pair.other, ratios) and pair not in known:
            made.append(Synthetic(pair, english_is_synthetic=False))
    return made


def into_english(
    generator: Generator, texts: Sequence[tuple[str, str]], decoding: Decoding, known: set[Pair]
) -> list[Synthetic]:
    """Return new translations into English of (text, language)."""
    made: list[Synthetic] = []
    requests = [Request(text, "en") for text, _ in texts]
    for (text, language), written in zip(
        texts, generator.translate(requests, decoding), strict=True
    ):
        pair = Pair(normalise(written or ""), text, language)
        if plausible(text, pair.english, ratios_for(language, "en")) and pair not in known:
            made.append(Synthetic(pair, english_is_synthetic=True))
    return made


def write_synthetic(made: Iterable[Synthetic], path: Path) -> None:
    """Write one JSON list per line: English, other, language, whether English is synthetic."""
    with path.open("w", encoding="utf-8") as out:
        for one in made:
            row = [one.pair.english, one.pair.other, one.pair.language, one.english_is_synthetic]
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_synthetic(path: Path) -> list[Synthetic]:
    """Read a file of `write_synthetic`."""
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Synthetic(Pair(*row[:3]), english_is_synthetic=row[3]) for row in rows]


def main() -> None:
    """Write the synthetic pairs of one model."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the four archives")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=int, help="pairs to read, to rehearse")
    given = parser.parse_args()
    pairs = load_split(given.data).train[: given.limit]
    known = set(pairs)
    generator = Generator(given.model, torch.device(given.device))
    out_requests, into_texts = again(pairs)
    started = time.monotonic()
    made = out_of_english(generator, lacking(pairs), GREEDY, known)
    print(f"{len(made)} for what was lacking, {time.monotonic() - started:.0f} s", flush=True)
    made += out_of_english(generator, out_requests, SAMPLED, known)
    print(f"{len(made)} with those again, {time.monotonic() - started:.0f} s", flush=True)
    made += into_english(generator, into_texts, SAMPLED, known)
    write_synthetic(made, given.out)
    print(f"{len(made)} in all, {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
