"""Tests of answers that are decoded once, beside the decoder that vLLM uses after every token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

from dragoman_worker.engines.vllm.outputs import decodes_once, text_of
from dragoman_worker.ports import Decoding
from support.builders.chat_tokenizers import byte_level, sentencepiece_like

KINDS = ("byte-level", "sentencepiece", "demo")
DEMO = Path(__file__).parents[4] / "demo/model/tokenizer.json"


@cache
def tokenizer(kind: str) -> Any:
    if kind == "demo":
        return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_file(str(DEMO)))
    return byte_level(bos=False) if kind == "byte-level" else sentencepiece_like(bos=True)


def token_by_token(kind: str, prompt: Sequence[int], ids: Sequence[int], *, special: bool) -> str:
    """Decode as vLLM does; ids that its stream cannot follow have no text to compare with."""
    stream = DecodeStream(ids=list(prompt), skip_special_tokens=not special)
    return "".join(stream.step(tokenizer(kind).backend_tokenizer, one) or "" for one in ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("special", [False, True])
@given(data=st.data())
def test_a_text_cut_anywhere_is_decoded_as_vllm_decodes_it(
    kind: str, special: bool, data: st.DataObject
) -> None:
    text = data.draw(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])))
    prompt = tokenizer(kind).encode("Translate:", add_special_tokens=False)
    ids = tokenizer(kind).encode(text, add_special_tokens=False)
    cut = ids[: data.draw(st.integers(0, len(ids)))]
    try:
        expected = token_by_token(kind, prompt, cut, special=special)
    except Exception:  # noqa: BLE001  a known failure of the stream, which vLLM restarts
        return
    decoding = Decoding(max_tokens=8, special_tokens=special)
    assert text_of(tokenizer(kind), cut, "length", decoding).strip() == expected.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_the_token_that_ended_an_answer_is_no_part_of_it(kind: str) -> None:
    ids = tokenizer(kind).encode("Guten Tag!", add_special_tokens=False)
    decoding = Decoding(max_tokens=8)
    whole = text_of(tokenizer(kind), ids, "length", decoding)
    assert text_of(tokenizer(kind), [*ids, ids[0]], "stop", decoding) == whole


def test_control_tokens_are_kept_only_for_profiles_that_read_them() -> None:
    ids = tokenizer("byte-level").encode("<|user|>Hi<|end|>", add_special_tokens=False)
    made = {
        keep: text_of(
            tokenizer("byte-level"), ids, "length", Decoding(max_tokens=8, special_tokens=keep)
        )
        for keep in (True, False)
    }
    assert made == {True: "<|user|>Hi<|end|>", False: "Hi"}


def test_stop_strings_and_tokenizers_without_a_backend_are_left_to_vllm() -> None:
    plain, stopping = Decoding(max_tokens=8), Decoding(max_tokens=8, stop=("\n",))
    assert decodes_once(tokenizer("byte-level"), plain)
    assert not decodes_once(tokenizer("byte-level"), stopping)
    assert not decodes_once(object(), plain)
