"""Scores of translations against one reference each.

BLEU is sacrebleu's with tokenizer 13a; for Japanese with ja-mecab if MeCab is installed, else
char (the table names it). chrF is chrF2.
"""

from __future__ import annotations

import importlib.util
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu

from .corpus import Example, both_directions, first_per_direction, load_split


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of one direction; `unfinished` counts translations without an end."""

    direction: str
    sentences: int
    bleu: float
    chrf: float
    unfinished: int
    bleu_tokenizer: str


def held_out(data: Path, which: str, each: int) -> list[Example]:
    """Return up to `each` examples per direction of the set `which`: "dev" or "test"."""
    divided = load_split(data)
    pairs = divided.test if which == "test" else divided.dev
    return first_per_direction(both_directions(pairs), each)


def score(examples: Sequence[Example], written: Sequence[str | None]) -> list[Score]:
    """Return scores per direction, in the order in which directions first occur."""
    groups: defaultdict[tuple[str, str], list[tuple[Example, str | None]]] = defaultdict(list)
    for example, text in zip(examples, written, strict=True):
        groups[example.source_lang, example.target_lang].append((example, text))
    return [_score(f"{source}-{target}", target, rows) for (source, target), rows in groups.items()]


def table(scores: Sequence[Score]) -> str:
    """Return scores as a Markdown table."""
    lines = ["| direction | sentences | BLEU | chrF | no end |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.direction} | {one.sentences} | {one.bleu:.1f} ({one.bleu_tokenizer})"
        f" | {one.chrf:.1f} | {one.unfinished} |"
        for one in scores
    ]
    return "\n".join(lines)


def write_written(examples: Sequence[Example], written: Sequence[str | None], path: Path) -> None:
    """Write one JSON list per line: source, reference, translation."""
    rows = ([one.source, one.target, text] for one, text in zip(examples, written, strict=True))
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def _score(direction: str, target_lang: str, rows: list[tuple[Example, str | None]]) -> Score:
    tokenizer = _bleu_tokenizer(target_lang)
    texts = [text or "" for _, text in rows]
    references = [[example.target for example, _ in rows]]
    bleu = sacrebleu.corpus_bleu(texts, references, tokenize=tokenizer).score
    chrf = sacrebleu.corpus_chrf(texts, references).score
    unfinished = sum(text is None for _, text in rows)
    return Score(direction, len(rows), bleu, chrf, unfinished, tokenizer)


def _bleu_tokenizer(target_lang: str) -> str:
    if target_lang != "ja":
        return "13a"
    return "ja-mecab" if importlib.util.find_spec("MeCab") else "char"
