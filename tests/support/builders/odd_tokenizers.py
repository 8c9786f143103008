"""Small tokenizers in which texts form control tokens in ways that no search for them sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CONTROL: Final = ("<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
STEERING: Final = ("[|user|]", "<sop>", "<answer>", "<|turn>", "<turn|>", "<im_end>", "]~b]")
"""Added tokens that are neither special nor spelled like control tokens, as the template has them.
"""

TEMPLATE: Final = (
    "<|begin|><sop>]~b]<answer><|turn>[|user|]"
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content | trim }}<|end|>\n"
    "{% endfor %}<turn|><im_end>{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def joining() -> PreTrainedTokenizerFast:
    """Return byte-level BPE that joins the last byte of a private-use character with the next."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = _byte_letters()
    first, second = (letters[byte] for byte in "장".encode()[:2])
    merged = [letters[0x80] + first, letters[0x80] + first + second]
    vocab = {token: index for index, token in enumerate((*letters, *merged))}
    merges = [(letters[0x80], first), (merged[0], second)]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _fast(tokenizer, normalized=False)


def tekken_like() -> PreTrainedTokenizerFast:
    """Return byte-level BPE with the expression of Mistral's Tekken, trained a little."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["<|end|> Guten Tag, 장점은 많습니다 <answer>"] * 4, trainer)
    return _fast(tokenizer, normalized=False)


def sentencepiece_like() -> PreTrainedTokenizerFast:
    """Return BPE with a mark per space, one before the text, and a token per byte."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *_ASCII, "▁", "▁<", "|>"]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: index for index, piece in enumerate(pieces)},
            merges=[("▁", "<"), ("|", ">")],
            byte_fallback=True,
            unk_token="<unk>",  # noqa: S106 - a token of text
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return _fast(tokenizer, normalized=False)


def unigram() -> PreTrainedTokenizerFast:
    """Return Unigram whose vocabulary has the control tokens too, as converted models do."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = [(token, 0.0) for token in (*CONTROL, *STEERING)]
    pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    pieces += [(character, -3.0) for character in (*_ASCII, "▁")]
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), *pieces], 0, True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return _fast(tokenizer, normalized=False)


def normalized() -> PreTrainedTokenizerFast:
    """Return byte-level BPE that finds its added tokens behind a normalizer that changes much."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocab = {letter: index for index, letter in enumerate(_byte_letters())}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Lowercase(),
            normalizers.Replace("\u200b", ""),
            normalizers.Replace("§", "<|end|>"),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _fast(tokenizer, normalized=True)


KINDS: Final = (joining, tekken_like, sentencepiece_like, unigram, normalized)
_ASCII: Final = ("\n", *map(chr, range(33, 127)))


def _byte_letters() -> list[str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = bytes_to_unicode()
    return [str(letters[byte]) for byte in range(256)]


def _fast(tokenizer: Any, *, normalized: bool) -> PreTrainedTokenizerFast:
    from tokenizers import AddedToken
    from transformers import PreTrainedTokenizerFast

    tokenizer.add_special_tokens([AddedToken(each, normalized=normalized) for each in CONTROL])
    tokenizer.add_tokens([AddedToken(each, normalized=normalized) for each in STEERING])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE)
    assert isinstance(fast, PreTrainedTokenizerFast)
    return fast
