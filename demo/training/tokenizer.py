"""Tokenizer of the demo model: byte-level BPE with 16,384 tokens, which encodes any text.

Every digit is a token, so numbers are copied digit by digit. Kanji, hiragana and katakana never
share a token, so the boundaries of Japanese words are kept. The prompt is
``<|target|>source<|translation|>``; the answer ends with ``<|end|>``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers.models import BPE

from .corpus import load_split
from .templates import all_sentences

VOCABULARY = 16_384
LANGUAGES = ("en", "de", "fr", "es", "ja")
TRANSLATION, END, PAD = "<|translation|>", "<|end|>", "<|pad|>"
SPECIAL = (
    PAD,
    END,
    TRANSLATION,
    *(f"<|{language}|>" for language in LANGUAGES),
    *(f"<|r{number}|>" for number in range(8)),
)
"""Tokens with ids 0 to 15, in this order; the last eight are reserved."""

CONTEXT = 512

_JAPANESE = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_WORDS = (
    r"'(?:s|t|re|ve|m|ll|d)\b"
    r"| ?\p{Han}+| ?\p{Hiragana}+| ?[\p{Katakana}ー]+"
    rf"| ?(?:(?![{_JAPANESE}])[\p{{L}}\p{{M}}])+"
    r"|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s*\n|\s+(?!\S)|\s+"
)


def language_tag(language: str) -> str:
    """Return the control token that requests `language`."""
    return f"<|{language}|>"


def id_of(tokenizer: Tokenizer, token: str) -> int:
    """Return the id of a control token. Raises KeyError if the tokenizer has no such token."""
    number = tokenizer.token_to_id(token)
    if number is None:
        raise KeyError(token)
    return number


def train_tokenizer(sentences: Iterable[str]) -> Tokenizer:
    """Learn the merges from `sentences`. The same sentences give the same tokenizer."""
    tokenizer = Tokenizer(BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Replace(Regex("[’‘]"), "'"),
            normalizers.Replace(Regex("[“”„]"), '"'),
            normalizers.Replace(Regex("[\u00a0\u202f\u2009]"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json, as AutoTokenizer reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
    }
    text = json.dumps(settings, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def load_tokenizer(folder: Path, dropout: float = 0.0) -> Tokenizer:
    """Read tokenizer.json; `dropout` > 0 leaves merges out at random (BPE dropout)."""
    described = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    described["model"]["dropout"] = dropout or None
    return Tokenizer.from_str(json.dumps(described))


def main() -> None:
    """Learn the tokenizer from the training pairs and save it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the four archives")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    arguments = parser.parse_args()
    pairs = load_split(arguments.data).train
    sentences = [text for pair in pairs for text in (pair.english, pair.other)]
    tokenizer = train_tokenizer(sorted(set(sentences)) + sorted(all_sentences()) * 20)
    save_tokenizer(tokenizer, arguments.out)
    print(f"{tokenizer.get_vocab_size()} tokens in {arguments.out}")


if __name__ == "__main__":
    main()
