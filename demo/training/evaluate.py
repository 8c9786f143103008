"""How good are the translations? BLEU and chrF per direction, by the training generator or vLLM.

    python -m demo.training.evaluate --data DIR --model DIR --set test --engine vllm

BLEU is sacrebleu's, tokenizer 13a, for Japanese ja-mecab where MeCab is installed and char
where it is not (the table says which); chrF is chrF2. One reference a sentence.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sacrebleu

from .corpus import Example, both_directions, first_per_direction, load_split, write_examples
from .tokenizer import CONTEXT, TRANSLATION, language_tag

MOST_NEW_TOKENS = 200


@dataclass(frozen=True, slots=True)
class Score:
    """One direction's scores; `unfinished` counts translations without an end."""

    direction: str
    sentences: int
    bleu: float
    chrf: float
    unfinished: int
    bleu_tokenizer: str


def score(examples: Sequence[Example], written: Sequence[str | None]) -> list[Score]:
    """Scores per direction, in the order the directions first occur."""
    groups: defaultdict[tuple[str, str], list[tuple[Example, str | None]]] = defaultdict(list)
    for example, text in zip(examples, written, strict=True):
        groups[example.source_lang, example.target_lang].append((example, text))
    scores: list[Score] = []
    for (source_lang, target_lang), rows in groups.items():
        tokenizer = _bleu_tokenizer(target_lang)
        texts = [text or "" for _, text in rows]
        references = [[example.target for example, _ in rows]]
        bleu = sacrebleu.corpus_bleu(texts, references, tokenize=tokenizer).score
        chrf = sacrebleu.corpus_chrf(texts, references).score
        unfinished = sum(text is None for _, text in rows)
        direction = f"{source_lang}-{target_lang}"
        scores.append(Score(direction, len(rows), bleu, chrf, unfinished, tokenizer))
    return scores


def table(scores: Sequence[Score]) -> str:
    """Scores as a Markdown table."""
    lines = ["| direction | sentences | BLEU | chrF | no end |", "|---|---|---|---|---|"]
    lines += [
        f"| {one.direction} | {one.sentences} | {one.bleu:.1f} ({one.bleu_tokenizer})"
        f" | {one.chrf:.1f} | {one.unfinished} |"
        for one in scores
    ]
    return "\n".join(lines)


def with_torch(model: Path, examples: Sequence[Example], device: str) -> list[str | None]:
    """Greedy translations by the training generator."""
    import torch

    from .generate import Decoding, Generator, Request

    requests = [Request(example.source, example.target_lang) for example in examples]
    return Generator(model, torch.device(device)).translate(requests, Decoding())


def with_vllm(
    model: Path, examples: Sequence[Example], frequency_penalty: float
) -> list[str | None]:
    """Greedy translations by vLLM; None where it did not stop by itself."""
    from vllm import LLM, SamplingParams

    llm = LLM(model=str(model), max_model_len=CONTEXT, enforce_eager=True, max_num_seqs=128)
    sampling = SamplingParams(
        temperature=0.0, max_tokens=MOST_NEW_TOKENS, frequency_penalty=frequency_penalty
    )
    prompts = [
        f"{language_tag(example.target_lang)}{example.source}{TRANSLATION}" for example in examples
    ]
    outputs = [request.outputs[0] for request in llm.generate(prompts, sampling)]
    return [output.text if output.finish_reason == "stop" else None for output in outputs]


def _bleu_tokenizer(target_lang: str) -> str:
    if target_lang != "ja":
        return "13a"
    return "ja-mecab" if importlib.util.find_spec("MeCab") else "char"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the four archives")
    parser.add_argument("--model", type=Path, help="model folder; without it only --export acts")
    parser.add_argument("--set", choices=("dev", "test"), default="test")
    parser.add_argument("--engine", choices=("torch", "vllm"), default="torch")
    parser.add_argument("--device", default="cuda", help="for --engine torch")
    parser.add_argument("--frequency-penalty", type=float, default=0.0, help="for --engine vllm")
    parser.add_argument("--each", type=int, default=1000, help="examples per direction")
    parser.add_argument("--export", type=Path, help="write the examples there, as JSON lines")
    parser.add_argument("--written", type=Path, help="write sources and translations there")
    return parser.parse_args()


def main() -> None:
    """Translate one held-out set and print its scores."""
    given = _arguments()
    divided = load_split(given.data)
    pairs = divided.test if given.set == "test" else divided.dev
    examples = first_per_direction(both_directions(pairs), given.each)
    if given.export:
        write_examples(examples, given.export)
    if given.model is None:
        return
    started = time.monotonic()
    if given.engine == "vllm":
        written = with_vllm(given.model, examples, given.frequency_penalty)
    else:
        written = with_torch(given.model, examples, given.device)
    print(table(score(examples, written)))
    print(f"{len(examples)} sentences in {time.monotonic() - started:.0f} s")
    if given.written:
        rows = ([e.source, e.target, text] for e, text in zip(examples, written, strict=True))
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        given.written.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
