"""Endless training batches, and fixed dev batches, from the pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from random import Random

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from .corpus import Example
from .packing import Batch, Encoded, Marks, batches, packed_rows
from .samples import Pool
from .tokenizer import CONTEXT, END, PAD, TRANSLATION, id_of, language_tag, load_tokenizer

TARGET_SHARE = 0.58
"""Capacity for targets in a batch, as a share of its tokens; about 0.5 were needed."""
OPEN_ROWS = 24
BPE_DROPOUT, SHARE_DROPOUT = 0.1, 0.5

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class Encoder:
    """Encoder of examples as token ids, with BPE dropout in half of the sources."""

    def __init__(self, folder: Path) -> None:
        self._exact = load_tokenizer(folder)
        self._dropping = load_tokenizer(folder, BPE_DROPOUT)
        ids = [id_of(self._exact, token) for token in (TRANSLATION, END, PAD)]
        self.marks = Marks(*ids)

    def encode(self, example: Example, random: Random | None = None) -> Encoded:
        """Ids of both sides; with `random`, half of the sources lose merges at random."""
        drops = random is not None and random.random() < SHARE_DROPOUT
        source = (self._dropping if drops else self._exact).encode(example.source).ids
        target = self._exact.encode(example.target).ids
        return Encoded(id_of(self._exact, language_tag(example.target_lang)), source, target)


class Endless(IterableDataset[Tensors]):  # type: ignore[misc]  # torch is not followed
    """Endless batches; each loader process draws its own stream from the seed."""

    def __init__(self, pool: Pool, tokenizer: Path, rows: int, seed: str) -> None:
        self._pool, self._tokenizer, self._rows, self._seed = pool, tokenizer, rows, seed

    def __iter__(self) -> Iterator[Tensors]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        worker = get_worker_info()
        random = Random(f"{self._seed}:{worker.id if worker else 0}")  # noqa: S311 (draws samples)
        encoder = Encoder(self._tokenizer)
        samples = self._samples(encoder, random)
        for batch in packed_batches(samples, encoder.marks, self._rows):
            yield tensors(batch)

    def _samples(self, encoder: Encoder, random: Random) -> Iterator[Encoded]:
        while True:
            yield encoder.encode(self._pool.draw(random), random)


def packed_batches(samples: Iterable[Encoded], marks: Marks, rows: int) -> Iterator[Batch]:
    """Yield batches of `rows` rows of the model's context."""
    capacity = int(rows * CONTEXT * TARGET_SHARE) // 128 * 128
    return batches(packed_rows(samples, CONTEXT, OPEN_ROWS), rows, CONTEXT, capacity, marks)


def tensors(batch: Batch) -> Tensors:
    """Return tokens, documents, places, labels as torch tensors over the same memory."""
    tokens, documents, places, labels = (torch.from_numpy(array) for array in astuple(batch))
    return tokens, documents, places, labels


def training_loader(
    pool: Pool, tokenizer: Path, rows: int, seed: str, workers: int
) -> DataLoader[Tensors]:
    """Return an endless loader on `workers` processes (0: in this process)."""
    return DataLoader(
        Endless(pool, tokenizer, rows, seed),
        batch_size=None,
        num_workers=workers,
        prefetch_factor=8 if workers else None,
        pin_memory=torch.cuda.is_available(),
    )


def dev_batches(examples: Iterable[Example], tokenizer: Path, rows: int) -> list[Tensors]:
    """Return the examples once, packed, without randomness."""
    encoder = Encoder(tokenizer)
    encoded = [encoder.encode(example) for example in examples]
    return [tensors(batch) for batch in packed_batches(encoded, encoder.marks, rows)]
