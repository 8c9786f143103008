"""Sentence pairs, and their split into training, dev and test sets.

The four archives of www.manythings.org/anki (CC-BY 2.0, Tatoeba) hold lines
``English<TAB>other language[<TAB>attribution]``. The split works on *keys* of English
sentences (lower-cased, letters and digits only): for each pair the keys are ordered by a
hash of the key, the pair and ``SPLIT_SEED`` only; the first 1,000 are
its test set, the next 500 its dev set. All held-out keys are removed from the training text of all
four pairs. The split is a rule, not a list, and needs no stored file.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SPLIT_SEED = "dragoman-demo-1"
TEST_SENTENCES = 1000
DEV_SENTENCES = 500

ARCHIVES: dict[str, tuple[str, str]] = {
    "de": ("deu-eng.zip", "deu.txt"),
    "fr": ("fra-eng.zip", "fra.txt"),
    "es": ("spa-eng.zip", "spa.txt"),
    "ja": ("jpn-eng.zip", "jpn.txt"),
}
"""Archive and member (by its last path component) for each language except English."""

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"'})
_SPACES = re.compile(r"\s+")
_NOT_KEY = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence in English and its translation into `language`."""

    english: str
    other: str
    language: str


@dataclass(frozen=True, slots=True)
class Example:
    """One directed translation: the input of the model, and its expected output."""

    source: str
    target: str
    source_lang: str
    target_lang: str


@dataclass(frozen=True, slots=True)
class Split:
    """The pairs of all four languages, divided by the rule of this module's docstring."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]


def normalise(text: str) -> str:
    """Return the text in NFC, with straight quotes and single ordinary spaces."""
    straight = unicodedata.normalize("NFC", text).translate(_QUOTES)
    return _SPACES.sub(" ", straight).strip()


def key_of(english: str) -> str:
    """Return the letters and digits of an English sentence, by which the split compares."""
    return _NOT_KEY.sub("", english.lower())


def read_pairs(folder: Path, language: str) -> list[Pair]:
    """Return all distinct pairs of an archive in order. Raises KeyError, FileNotFoundError."""
    archive, member = ARCHIVES[language]
    with zipfile.ZipFile(folder / archive) as opened:
        names = [name for name in opened.namelist() if Path(name).name == member]
        lines = opened.read(names[0]).decode("utf-8").splitlines()
    distinct: dict[Pair, None] = {}
    for line in lines:
        columns = line.split("\t")
        pair = Pair(normalise(columns[0]), normalise(columns[1]), language)
        if pair.english and pair.other:
            distinct[pair] = None
    return list(distinct)


def held_out_keys(pairs: Iterable[Pair], language: str) -> tuple[list[str], list[str]]:
    """Return the keys of one pair's test and dev sets, each in hash order."""
    keys = {key_of(pair.english) for pair in pairs} - {""}
    ordered = sorted(keys, key=lambda key: _rank(f"{language}:{key}"))
    return ordered[:TEST_SENTENCES], ordered[TEST_SENTENCES : TEST_SENTENCES + DEV_SENTENCES]


def split(by_language: dict[str, list[Pair]]) -> Split:
    """Divide the pairs; every held-out key is absent from all training pairs."""
    dev: list[Pair] = []
    test: list[Pair] = []
    held: set[str] = set()
    for language, pairs in by_language.items():
        test_keys, dev_keys = held_out_keys(pairs, language)
        held.update(test_keys, dev_keys)
        test += _one_each(pairs, test_keys)
        dev += _one_each(pairs, dev_keys)
    train = [
        pair for pairs in by_language.values() for pair in pairs if key_of(pair.english) not in held
    ]
    return Split(train, dev, test)


def load_split(folder: Path) -> Split:
    """Read the four archives in `folder` and divide them."""
    return split({language: read_pairs(folder, language) for language in ARCHIVES})


def both_directions(pairs: Iterable[Pair]) -> list[Example]:
    """Return each pair twice: out of English, then into English."""
    examples: list[Example] = []
    for pair in pairs:
        examples.append(Example(pair.english, pair.other, "en", pair.language))
        examples.append(Example(pair.other, pair.english, pair.language, "en"))
    return examples


def first_per_direction(examples: Iterable[Example], count: int) -> list[Example]:
    """Return the first `count` examples of each direction, in the given order."""
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    chosen: list[Example] = []
    for example in examples:
        direction = (example.source_lang, example.target_lang)
        if counts[direction] < count:
            counts[direction] += 1
            chosen.append(example)
    return chosen


def write_examples(examples: Iterable[Example], path: Path) -> None:
    """Write one JSON object per line: source, target, source_lang, target_lang."""
    with path.open("w", encoding="utf-8") as out:
        for example in examples:
            fields = {name: getattr(example, name) for name in Example.__slots__}
            out.write(json.dumps(fields, ensure_ascii=False) + "\n")


def read_examples(path: Path) -> list[Example]:
    """Read a file of `write_examples`."""
    with path.open(encoding="utf-8") as lines:
        return [Example(**json.loads(line)) for line in lines]


def _rank(text: str) -> str:
    return hashlib.sha256(f"{SPLIT_SEED}:{text}".encode()).hexdigest()


def _one_each(pairs: Iterable[Pair], keys: Sequence[str]) -> list[Pair]:
    """Return one pair per key, in the order of `keys`: the pair with the smallest hash."""
    wanted = set(keys)
    by_key: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        key = key_of(pair.english)
        if key in wanted:
            by_key[key].append(pair)
    return [min(by_key[key], key=_pair_rank) for key in keys]


def _pair_rank(pair: Pair) -> str:
    return _rank(f"{pair.english}\t{pair.other}")
