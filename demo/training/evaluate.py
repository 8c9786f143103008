"""Scores of a trained model, translated by the training generator.

python -m demo.training.evaluate --data DIR --model DIR --set test
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

from .generate import Decoding, Generator, Request
from .scores import held_out, score, table, write_written


def main() -> None:
    """Translate one held-out set greedily and print its scores."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the four archives")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--set", choices=("dev", "test"), default="test")
    parser.add_argument("--each", type=int, default=1000, help="examples per direction")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--written", type=Path, help="file for sources and translations")
    given = parser.parse_args()
    examples = held_out(given.data, given.set, given.each)
    requests = [Request(example.source, example.target_lang) for example in examples]
    started = time.monotonic()
    generator = Generator(given.model, torch.device(given.device))
    written = generator.translate(requests, Decoding(batch=1024))
    print(table(score(examples, written)))
    print(f"{len(examples)} sentences in {time.monotonic() - started:.0f} s")
    if given.written:
        write_written(examples, written, given.written)


if __name__ == "__main__":
    main()
