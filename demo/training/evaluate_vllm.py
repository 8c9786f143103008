"""Scores of a model, translated by vLLM.

python -m demo.training.evaluate_vllm --model demo/model --examples demo/training/test.jsonl
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from vllm import LLM, SamplingParams

from .corpus import Example, read_examples
from .scores import held_out, score, table, write_written
from .tokenizer import CONTEXT, TRANSLATION, language_tag

MAX_NEW_TOKENS = 200


def translate(llm: LLM, examples: list[Example], frequency_penalty: float) -> list[str | None]:
    """Return greedy translations; None if the model did not stop by itself."""
    sampling = SamplingParams(
        temperature=0.0, max_tokens=MAX_NEW_TOKENS, frequency_penalty=frequency_penalty
    )
    prompts = [
        f"{language_tag(example.target_lang)}{example.source}{TRANSLATION}" for example in examples
    ]
    outputs = [request.outputs[0] for request in llm.generate(prompts, sampling)]
    return [output.text if output.finish_reason == "stop" else None for output in outputs]


def main() -> None:
    """Translate held-out sentences greedily with vLLM and print the scores."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, help="folder of the four archives: the whole test set")
    source.add_argument("--examples", type=Path, help="JSON lines, such as test.jsonl")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--frequency-penalty", type=float, default=0.0)
    parser.add_argument("--written", type=Path, help="file for sources and translations")
    given = parser.parse_args()
    examples = held_out(given.data, "test", 1000) if given.data else read_examples(given.examples)
    llm = LLM(model=str(given.model), max_model_len=CONTEXT, enforce_eager=True, max_num_seqs=128)
    started = time.monotonic()
    written = translate(llm, examples, given.frequency_penalty)
    print(table(score(examples, written)))
    print(f"{len(examples)} sentences in {time.monotonic() - started:.0f} s")
    if given.written:
        write_written(examples, written, given.written)


if __name__ == "__main__":
    main()
