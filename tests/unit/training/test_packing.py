"""Unit tests of packed rows and the places of their targets."""

from __future__ import annotations

from training.packing import IGNORED, Encoded, Marks, batches, packed_rows

MARKS = Marks(translation=2, end=1, pad=0)


def sample(source: int, target: int) -> Encoded:
    return Encoded(4, list(range(100, 100 + source)), list(range(200, 200 + target)))


def test_no_row_is_longer_than_allowed_and_no_sample_is_lost() -> None:
    samples = [sample(n % 7 + 1, n % 5 + 1) for n in range(60)]
    rows = list(packed_rows(samples, length=32, open_rows=3))
    assert all(sum(map(len, row)) <= 32 for row in rows)
    assert sum(map(len, rows)) == 60


def test_a_sample_longer_than_a_row_is_dropped() -> None:
    assert list(packed_rows([sample(40, 40)], length=32, open_rows=2)) == []


def test_every_place_predicts_the_token_that_follows() -> None:
    rows = [[sample(3, 2), sample(1, 4)], [sample(2, 2)]]
    (batch,) = batches(rows, rows_each=2, length=24, capacity=16, marks=MARKS)
    flat = batch.tokens.reshape(-1)
    used = batch.labels != IGNORED
    assert used.sum() == (2 + 1) + (4 + 1) + (2 + 1)
    assert (flat[batch.places[used] + 1] == batch.labels[used]).all()
    assert (batch.labels[used] == MARKS.end).sum() == 3


def test_documents_are_numbered_and_padding_is_zero() -> None:
    (batch,) = batches([[sample(1, 1), sample(2, 1)]], 1, 14, 8, MARKS)
    assert batch.documents[0].tolist() == [1] * 5 + [2] * 6 + [0] * 3


def test_targets_beyond_the_capacity_are_cut() -> None:
    (batch,) = batches([[sample(1, 6)]], 1, 16, 4, MARKS)
    assert batch.labels.tolist() == [200, 201, 202, 203]


def test_the_last_batch_is_filled_with_padding() -> None:
    made = list(batches([[sample(1, 1)]] * 3, 2, 8, 4, MARKS))
    assert [int((batch.documents > 0).any(axis=1).sum()) for batch in made] == [2, 1]
