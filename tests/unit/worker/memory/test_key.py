"""Members of the memory's key: each of them changes it, nothing else does."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dragoman_text.terms import Term
from dragoman_worker.memory.key import Question, memory_key
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Decoding, Remembered
from support.fakes.local_memory import LocalMemory

ASKED = Question(
    engine="vllm/m/1",
    profile="chat",
    prompt_ids=(1, 2, 3),
    decoding=Decoding(max_tokens=100, seed=1),
    source="Hello.",
    target_lang="de",
    source_lang="en",
    level="basic",
    token_style="tags",  # noqa: S106  no secret
    protected=("%s",),
    words=("%s",),
    terms=(Term("Hello", ("Hallo",)),),
    max_chars=20,
)

OTHER: dict[str, Any] = {
    "engine": "vllm/m/2",
    "profile": "chat+lora",
    "prompt_ids": (1, 2, 4),
    "decoding": Decoding(max_tokens=100, seed=2),
    "source": "Hello!",
    "target_lang": "fr",
    "source_lang": None,
    "level": "strict",
    "token_style": "brackets",
    "protected": (),
    "words": (),
    "terms": (Term("Hello", ("Guten Tag",)),),
    "max_chars": 21,
}

OTHER_DECODING: dict[str, Any] = {
    "temperature": 0.1,
    "top_p": 0.9,
    "top_k": 5,
    "seed": 7,
    "repetition_penalty": 1.1,
    "frequency_penalty": 0.1,
    "presence_penalty": 0.1,
    "stop": ("x",),
    "stop_token_ids": (5,),
    "special_tokens": True,
    "adapter": "adapters/de",
}


@pytest.mark.parametrize("name", [field.name for field in fields(Question)])
def test_each_member_changes_the_key(name: str) -> None:
    assert memory_key(replace(ASKED, **{name: OTHER[name]})) != memory_key(ASKED)


@pytest.mark.parametrize("name", [f.name for f in fields(Decoding) if f.name != "max_tokens"])
def test_each_decoding_parameter_changes_the_key(name: str) -> None:
    decoding = replace(ASKED.decoding, **{name: OTHER_DECODING[name]})
    assert memory_key(replace(ASKED, decoding=decoding)) != memory_key(ASKED)


def test_the_folder_of_an_adapter_does_not_change_the_key() -> None:
    here = replace(ASKED, decoding=replace(ASKED.decoding, adapter="/here/de"))
    there = replace(ASKED, decoding=replace(ASKED.decoding, adapter="/there/de"))
    assert memory_key(here) == memory_key(there)


OF_VERSION_1: Final = "3f5bf19dc76cefb013756147ec376da62634f4a47fb48e1d81a4472c8465b1fd"
"""The key of ASKED before refusals were judged."""


async def test_what_was_remembered_under_an_earlier_version_is_a_miss_and_no_error() -> None:
    metrics = Metrics(CollectorRegistry())
    memory = LocalMemory(metrics)
    memory.remember(bytes.fromhex(OF_VERSION_1), Remembered("I can't translate that."))
    assert await memory.recall([memory_key(ASKED)]) == [None]
    counted = [
        metrics.registry.get_sample_value("dragoman_memory_total", {"result": result})
        for result in ("miss", "error", "hit")
    ]
    assert counted == [1, 0, 0]


def test_an_answer_is_found_whatever_length_was_allowed() -> None:
    longer = replace(ASKED, decoding=replace(ASKED.decoding, max_tokens=200))
    assert memory_key(longer) == memory_key(ASKED)


@pytest.mark.parametrize(
    "term",
    [
        Term("Hello", ("Hallo", "Servus")),
        Term("Hello", ("Hallo",), case_sensitive=True),
        Term("hello", ("Hallo",)),
    ],
)
def test_each_part_of_a_term_changes_the_key(term: Term) -> None:
    assert memory_key(replace(ASKED, terms=(term,))) != memory_key(ASKED)


def test_the_note_of_a_term_does_not_change_the_key() -> None:
    noted = replace(ASKED, terms=(Term("Hello", ("Hallo",), note="greeting"),))
    assert memory_key(noted) == memory_key(ASKED)


def test_key_has_32_bytes_and_is_the_same_in_every_process() -> None:
    assert memory_key(ASKED).hex() == (
        "76cf3bfc2d376e56389a512ca979b58fa62847e5538732a47578cc7879ae7737"
    )


def test_sequences_of_token_ids_are_equal_by_their_values() -> None:
    ranged = replace(ASKED, prompt_ids=range(1, 4))
    assert memory_key(ranged) == memory_key(replace(ASKED, prompt_ids=[1, 2, 3]))


def test_token_ids_above_32_bits_are_taken() -> None:
    assert memory_key(replace(ASKED, prompt_ids=(2**40,))) != memory_key(ASKED)


_TEXT = st.text(max_size=5)
_QUESTIONS = st.builds(
    Question,
    engine=_TEXT,
    profile=_TEXT,
    prompt_ids=st.lists(st.integers(0, 2**63 - 1), max_size=3).map(tuple),
    decoding=st.builds(
        Decoding,
        max_tokens=st.just(1),
        temperature=st.sampled_from([0.0, 0.7]),
        seed=st.none() | st.integers(0, 2),
        stop=st.lists(_TEXT, max_size=2).map(tuple),
        stop_token_ids=st.lists(st.integers(0, 2), max_size=2).map(tuple),
    ),
    source=_TEXT,
    target_lang=_TEXT,
    source_lang=st.none() | _TEXT,
    level=st.sampled_from(["off", "basic", "strict"]),
    protected=st.lists(_TEXT, max_size=2).map(tuple),
    words=st.lists(_TEXT, max_size=2).map(tuple),
    terms=st.lists(
        st.builds(
            Term, source=_TEXT, targets=st.lists(_TEXT, max_size=2).map(tuple), note=st.none()
        ),
        max_size=2,
    ).map(tuple),
    max_chars=st.none() | st.integers(1, 3),
)


@given(_QUESTIONS, _QUESTIONS)
def test_keys_are_equal_only_for_equal_questions(one: Question, other: Question) -> None:
    assert (memory_key(one) == memory_key(other)) == (one == other)
