"""Small real tokenizers of the kinds that model families use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LINES: Final = (
    "<|user|> Hello, how are you today? Translate the following text into German.",
    "Guten Tag, wie geht es Ihnen? <b>Danke</b>, gut. think tool begin end user assistant",
    "おはようございます。お元気ですか。 Bonjour, comment allez-vous ? Buenos días.",
)
CHAT_TEMPLATE: Final = (
    "{{ bos_token if bos_token else '' }}"
    "{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.content is string %}{{ message.content | trim }}"
    "{% else %}{{ message.content[0].source_lang_code }}>{{ message.content[0].target_lang_code }}"
    ": {{ message.content[0].text | trim }}{% endif %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    "{% endif %}"
)
CONTROL: Final = ("<|begin|>", "<|end|>", "<|user|>", "<|system|>", "<|assistant|>")


def byte_level(*, bos: bool) -> PreTrainedTokenizerFast:
    """Return byte-level BPE with a chat template, as Qwen (no BOS) or Llama 3 (BOS) use it.

    ``<think>`` is an added token that is not special, as in Qwen3; ``<table>`` is an added token
    that is text, as in Gemma.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=list(CONTROL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(LINES * 4, trainer)
    tokenizer.add_tokens(
        [AddedToken(text, normalized=False) for text in ("<think>", "</think>", "<table>")]
    )
    return _fast(tokenizer, bos=bos)


def sentencepiece_like(*, bos: bool) -> PreTrainedTokenizerFast:
    """Return BPE with a mark per space and one before the text, as Llama 2 and Mistral use it."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))  # noqa: S106 - a token of text
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    bytes_ = [f"<0x{value:02X}>" for value in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<unk>", *CONTROL, *bytes_], show_progress=False
    )
    tokenizer.train_from_iterator(LINES * 4, trainer)
    return _fast(_with_plain_bytes(tokenizer, bytes_), bos=bos)


def _with_plain_bytes(tokenizer: object, bytes_: list[str]) -> object:
    """Keep byte tokens in the vocabulary, but not as control tokens."""
    import json

    from tokenizers import Tokenizer

    described = json.loads(tokenizer.to_str())  # type: ignore[attr-defined]
    described["added_tokens"] = [
        token for token in described["added_tokens"] if token["content"] not in bytes_
    ]
    return Tokenizer.from_str(json.dumps(described))


def _fast(tokenizer: object, *, bos: bool) -> PreTrainedTokenizerFast:
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[attr-defined]
            single="<|begin|> $A",
            special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))],  # type: ignore[attr-defined]
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|begin|>" if bos else None,
        eos_token="<|end|>",  # noqa: S106 - a token of text
        chat_template=CHAT_TEMPLATE,
    )
    assert isinstance(fast, PreTrainedTokenizerFast)
    return fast
