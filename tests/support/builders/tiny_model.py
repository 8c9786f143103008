"""The smallest model that vLLM serves: a Qwen3 of random weights with the demo's tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PADDING: Final = "<|pad|>"
END: Final = "<|end|>"
SPECIAL_TOKENS: Final = (
    PADDING,
    END,
    "<|en|>",
    "<|de|>",
    "<|fr|>",
    "<|es|>",
    "<|ja|>",
    "<|translation|>",
)
CONTEXT_TOKENS: Final = 4_096
_VOCABULARY: Final = 1_024
_LINES: Final = (
    "Hello, how are you today? I would like a cup of coffee, please.",
    "Guten Morgen, wie geht es Ihnen? Ich hätte gern eine Tasse Kaffee.",
    "Bonjour, comment allez-vous ? Je voudrais une tasse de café.",
    "Buenos días, ¿cómo está usted? Quisiera una taza de café.",
    "おはようございます。お元気ですか。コーヒーを一杯ください。",
)


def make_tiny_model(folder: Path, *, context_tokens: int = CONTEXT_TOKENS) -> Path:
    """Write configuration, tokenizer and weights (1 MB) into `folder` and return it.

    The weights are random, so the model writes noise and never stops by itself; the same seed
    gives the same noise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _save_tokenizer(folder)
    _save_weights(folder, tokenizer, context_tokens)
    return folder


def _save_tokenizer(folder: Path) -> dict[str, int]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_LINES * 4, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PADDING,
        extra_special_tokens=[token for token in SPECIAL_TOKENS if token not in (END, PADDING)],
        model_max_length=CONTEXT_TOKENS,
    )
    fast.save_pretrained(folder)
    return {token: index for index, token in enumerate(SPECIAL_TOKENS)}


def _save_weights(folder: Path, special: dict[str, int], context_tokens: int) -> None:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=context_tokens,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=special[END],
        pad_token_id=special[PADDING],
    )
    Qwen3ForCausalLM(config).bfloat16().save_pretrained(folder)
