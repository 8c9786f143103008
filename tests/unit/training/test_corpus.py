"""Unit tests of the split, which keeps held-out sentences out of the training text."""

from __future__ import annotations

from pathlib import Path

import pytest

from training import corpus
from training.corpus import Example, Pair


def some_pairs(language: str, count: int = 40) -> list[Pair]:
    """Distinct English sentences, every third with a second translation."""
    pairs = [Pair(f"Sentence number {n}.", f"{language} {n}", language) for n in range(count)]
    return pairs + [Pair(p.english, p.other + " bis", language) for p in pairs[::3]]


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "TEST_SENTENCES", 5)
    monkeypatch.setattr(corpus, "DEV_SENTENCES", 3)


@pytest.mark.usefixtures("small_sets")
def test_held_out_sentences_are_not_in_the_training_text_of_any_pair() -> None:
    divided = corpus.split({"de": some_pairs("de"), "fr": some_pairs("fr")})
    held = {corpus.key_of(pair.english) for pair in divided.test + divided.dev}
    assert len(divided.test) == 10
    assert len(divided.dev) == 6
    assert not held & {corpus.key_of(pair.english) for pair in divided.train}


@pytest.mark.usefixtures("small_sets")
def test_the_split_does_not_depend_on_the_order_of_the_archive() -> None:
    pairs = some_pairs("de")
    one = corpus.split({"de": pairs})
    other = corpus.split({"de": pairs[::-1]})
    assert one.test == other.test
    assert one.dev == other.dev
    assert set(one.train) == set(other.train)


@pytest.mark.usefixtures("small_sets")
def test_a_held_out_sentence_is_tested_with_one_translation_only() -> None:
    divided = corpus.split({"de": some_pairs("de")})
    assert len({pair.english for pair in divided.test}) == len(divided.test)


@pytest.mark.parametrize(
    ("written", "normalised"),
    [
        ("  It’s   “fine” ", 'It\'s "fine"'),
        ("Ça va\u202f?", "Ça va ?"),
        ("e\u0301te\u0301", "été"),
    ],
)
def test_text_is_normalised(written: str, normalised: str) -> None:
    assert corpus.normalise(written) == normalised


def test_keys_ignore_case_spaces_and_punctuation() -> None:
    assert corpus.key_of("Don't  GO!") == corpus.key_of("dont go")


def test_examples_survive_a_file(tmp_path: Path) -> None:
    examples = corpus.both_directions([Pair("Hello.", "こんにちは。", "ja")])
    corpus.write_examples(examples, tmp_path / "some.jsonl")
    assert corpus.read_examples(tmp_path / "some.jsonl") == examples
    assert examples[1] == Example("こんにちは。", "Hello.", "ja", "en")


def test_the_published_test_file_has_250_examples_per_direction() -> None:
    examples = corpus.read_examples(Path(corpus.__file__).with_name("test.jsonl"))
    assert len(examples) == 2000
    assert corpus.first_per_direction(examples, 250) == examples
