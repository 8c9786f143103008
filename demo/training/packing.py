"""Packing of samples of any length into rows of one length, without attention between them.

A row holds whole samples, each ``<|target|>source<|translation|>target<|end|>``. `documents`
numbers the sample that each token belongs to, so attention can stay inside it; 0 is
padding. The loss counts only what follows ``<|translation|>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IGNORED = -100
"""Label of a place without a target, which torch's cross entropy skips."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one sample, without its control tokens."""

    tag: int
    source: list[int]
    target: list[int]

    def __len__(self) -> int:
        return len(self.source) + len(self.target) + 3


@dataclass(frozen=True, slots=True)
class Marks:
    """Ids of the control tokens that packing adds."""

    translation: int
    end: int
    pad: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens of `rows` x `length`, and the places in the flattened batch that predict targets.

    tokens, documents: int32 [rows, length]; places: int64 [capacity], indices into the
    flattened tokens; labels: int64 [capacity], the token that follows, or IGNORED.
    """

    tokens: NDArray[np.int32]
    documents: NDArray[np.int32]
    places: NDArray[np.int64]
    labels: NDArray[np.int64]


def packed_rows(samples: Iterable[Encoded], length: int, open_rows: int) -> Iterator[list[Encoded]]:
    """Group samples first-fit into rows of at most `length` tokens; drop longer ones."""
    rows: list[list[Encoded]] = []
    sizes: list[int] = []
    for sample in samples:
        size = len(sample)
        if size > length:
            continue
        fitting = next((i for i, used in enumerate(sizes) if used + size <= length), None)
        if fitting is None and len(rows) >= open_rows:
            fullest = max(range(len(rows)), key=sizes.__getitem__)
            sizes.pop(fullest)
            yield rows.pop(fullest)
        if fitting is None:
            rows.append([])
            sizes.append(0)
            fitting = len(rows) - 1
        rows[fitting].append(sample)
        sizes[fitting] += size
    yield from rows


def batches(
    rows: Iterable[list[Encoded]], rows_each: int, length: int, capacity: int, marks: Marks
) -> Iterator[Batch]:
    """Yield batches of `rows_each` rows; the last one is padded."""
    waiting: list[list[Encoded]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == rows_each:
            yield _batch(waiting, rows_each, length, capacity, marks)
            waiting = []
    if waiting:
        yield _batch(waiting, rows_each, length, capacity, marks)


def _batch(
    rows: list[list[Encoded]], rows_each: int, length: int, capacity: int, marks: Marks
) -> Batch:
    tokens = np.full((rows_each, length), marks.pad, dtype=np.int32)
    documents = np.zeros((rows_each, length), dtype=np.int32)
    places: list[int] = []
    labels: list[int] = []
    for number, row in enumerate(rows):
        start = 0
        for document, sample in enumerate(row, start=1):
            ids = [sample.tag, *sample.source, marks.translation, *sample.target, marks.end]
            end = start + len(ids)
            tokens[number, start:end] = ids
            documents[number, start:end] = document
            first = number * length + start + len(sample.source) + 1
            places.extend(range(first, number * length + end - 1))
            labels.extend((*sample.target, marks.end))
            start = end
    return Batch(tokens, documents, *_fixed(places, labels, capacity))


def _fixed(
    places: list[int], labels: list[int], capacity: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cut or fill to `capacity`, so that every batch has one shape."""
    fixed_places = np.zeros(capacity, dtype=np.int64)
    fixed_labels = np.full(capacity, IGNORED, dtype=np.int64)
    count = min(capacity, len(places))
    fixed_places[:count] = places[:count]
    fixed_labels[:count] = labels[:count]
    return fixed_places, fixed_labels
