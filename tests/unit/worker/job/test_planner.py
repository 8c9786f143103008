"""Jobs are planned as requests that the engine can answer whole."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from dragoman_schemas.jobs import TranslationJob
from dragoman_text.detection import Detection
from dragoman_text.terms import Term, TermIndex
from dragoman_worker.errors import TooLong, UnknownGlossary
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.terms import MOST_TERMS
from dragoman_worker.ports import Prompt, StoredGlossary
from dragoman_worker.prompts.base import Profile
from dragoman_worker.prompts.chat import CHAT
from dragoman_worker.prompts.plain import PLAIN, PlainProfile
from support.fakes.core import record
from support.fakes.scripted_engine import ScriptedEngine

SENTENCE = "This is a sentence of eight words here. "


def job(text: Any, **fields: Any) -> TranslationJob:
    return TranslationJob.model_validate(json.loads(record(text=text, **fields)))


def planner(
    engine: ScriptedEngine | None = None, profile: Any = PLAIN, max_tokens: int = 4_096
) -> Planner:
    return Planner(
        engine=engine or ScriptedEngine(),
        choose_profile=lambda _: cast("Profile", profile),
        max_tokens=max_tokens,
    )


def completed(plans: Planner, plan: Plan) -> Plan:
    while not plan.complete:
        plans.step(plan)
    return plan


def whole(units: list[Unit]) -> str:
    return "".join(unit.before + unit.source + unit.after for unit in units)


class ByteEngine(ScriptedEngine):
    """A token is a byte."""

    def count_tokens(self, text: str) -> int:
        return len(text.encode())


class ChatEngine(ScriptedEngine):
    """Reads chats, and counts what it is asked to tokenise."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []
        self.counted: list[str] = []

    def encode(self, prompt: Prompt) -> range:
        self.encoded.append(str(prompt.messages[0].content))
        return range(len(self.encoded[-1].split()))

    def count_tokens(self, text: str) -> int:
        self.counted.append(text)
        return super().count_tokens(text)


# --- splitting by what the translation needs ------------------------------------------------------


def test_a_text_is_split_if_its_translation_exceeds_the_policy() -> None:
    text = SENTENCE * 40
    plan = planner(max_tokens=200).plan(job(text))
    [item] = plan.items
    assert len(item.units) > 1
    assert whole(item.units) == text
    for unit in item.units:
        assert len(unit.source.split()) <= 160, "German has about as many words"
        assert unit.source.endswith("here.")


def test_a_target_that_needs_many_tokens_gets_shorter_pieces() -> None:
    plans, text = planner(ByteEngine(), max_tokens=4_000), SENTENCE * 40
    counts = {
        lang: len(plans.plan(job(text, target_lang=lang)).items[0].units)
        for lang in ("de", "ru", "my")
    }
    assert counts["de"] == 1
    assert counts["de"] < counts["ru"] < counts["my"]


def test_a_short_text_has_the_generous_cap_and_reserves_the_estimate() -> None:
    [unit] = planner().plan(job(SENTENCE * 20, target_lang="en")).units
    words = 8 * 20
    assert unit.decoding.max_tokens == 2 * words + 64
    assert unit.tokens == words + 1.25 * words + 16


def test_after_a_cut_the_longest_output_is_reserved() -> None:
    [unit] = planner().plan(job(SENTENCE)).units
    unit.finish_reason = "length"
    assert unit.tokens == len(unit.prompt_ids) + unit.decoding.max_tokens


def test_a_word_may_take_all_that_is_allowed() -> None:
    engine = ByteEngine(max_model_len=10_000)
    [unit] = planner(engine, max_tokens=100).plan(job("x" * 190)).units
    assert unit.decoding.max_tokens == 100


# --- units that were cut off ----------------------------------------------------------------------


def test_a_unit_that_was_cut_off_is_halved_between_sentences() -> None:
    plans = planner()
    plan = plans.plan(job(f"\n {SENTENCE * 4}\n"))
    [item] = plan.items
    [unit] = item.units
    unit.prompt_tokens, unit.completion_tokens = 40, 128
    pieces = plans.smaller(plan, item, unit)
    assert pieces is not None
    assert len(pieces) == 2
    item.replace(unit, pieces)
    assert whole(item.units) == item.item.text
    assert all(piece.source.endswith("here.") for piece in pieces)
    assert [piece.splits for piece in pieces] == [1, 1]
    assert sum(piece.prompt_tokens for piece in pieces) == 40
    assert sum(piece.completion_tokens for piece in pieces) == 128


def test_a_unit_is_split_three_times_at_most() -> None:
    plans = planner()
    plan = plans.plan(job(SENTENCE * 64))
    [item] = plan.items
    for _ in range(3):
        pieces = plans.smaller(plan, item, item.units[0])
        assert pieces is not None
        item.replace(item.units[0], pieces)
    assert plans.smaller(plan, item, item.units[0]) is None
    assert whole(item.units) == item.item.text


@pytest.mark.parametrize("text", ["one", "one two, three four", "x" * 190])
def test_a_short_sentence_or_a_single_word_is_not_split(text: str) -> None:
    plans = planner()
    plan = plans.plan(job(text))
    assert plans.smaller(plan, plan.items[0], plan.units[0]) is None


def test_the_job_s_own_limit_is_respected() -> None:
    plans = planner()
    plan = plans.plan(job(SENTENCE * 4, sampling={"max_tokens": 10}))
    assert plans.smaller(plan, plan.items[0], plan.units[0]) is None


# --- requests for remedies ------------------------------------------------------------------------


def test_a_request_for_a_part_is_warmer_and_has_the_next_seed() -> None:
    plans = planner()
    plan = plans.plan(job("one two. three", sampling={"temperature": 0.5, "seed": 7}))
    unit = plans.request(plan, plan.items[0], " three", warmer=0.2, seed_step=2)
    assert (unit.before, unit.source) == (" ", "three")
    assert unit.decoding.temperature == pytest.approx(0.7)
    assert unit.decoding.seed == 9
    assert plan.units[0].decoding.temperature == 0.5
    assert len(plan.units) == 1, "the request is the caller's"


def test_the_temperature_stays_within_what_engines_accept() -> None:
    plans = planner()
    plan = plans.plan(job("one", sampling={"temperature": 1.9}))
    unit = plans.request(plan, plan.items[0], "one", warmer=0.6)
    assert (unit.decoding.temperature, unit.decoding.seed) == (2.0, None)


def test_a_correction_enters_the_prompt_of_profiles_that_take_instructions() -> None:
    engine = ChatEngine()
    plans = planner(engine, CHAT)
    plan = plans.plan(job("one <x0/>"))
    plans.request(
        plan, plan.items[0], "one <x0/>", correction="Not English.", protected_tokens=True
    )
    assert "Not English." not in engine.encoded[0]
    assert "Not English." in engine.encoded[-1]
    assert "numbered token" in engine.encoded[-1]


def test_a_profile_without_instructions_ignores_a_correction() -> None:
    plans = planner()
    plan = plans.plan(job("one"))
    plans.request(plan, plan.items[0], "one", correction="Not English.")
    assert plan.items[0].warnings == []


def test_a_request_that_does_not_fit_is_too_long() -> None:
    plans = planner(profile=PlainProfile(max_source_tokens=3))
    plan = plans.plan(job("one"))
    with pytest.raises(TooLong, match="at most 3"):
        plans.request(plan, plan.items[0], "one two three four")


# --- terms and literals ---------------------------------------------------------------------------


def stored(*terms: Term, source_lang: str | None = "en") -> StoredGlossary:
    return StoredGlossary("g1", "v1", source_lang, TermIndex(terms))


def planned(text: Any, glossary_of: StoredGlossary | None = None, **fields: Any) -> Plan:
    plans = planner()
    return completed(plans, plans.open(job(text, **fields), glossary=glossary_of))


def test_a_unit_has_the_terms_that_occur_and_its_own_glossary_wins() -> None:
    plan = planned(
        ["the red house beside a house", "a tree"],
        stored(
            Term("House", ("Gebäude",)), Term("red house", ("Rotes Haus",)), Term("car", ("x",))
        ),
        glossary_id="g1",
        glossary={"house": "Haus"},
    )
    assert [[term.targets[0] for term in unit.terms] for unit in plan.units] == [
        ["Rotes Haus", "Haus"],
        [],
    ]


def test_more_terms_than_a_prompt_takes_are_left_out_with_a_warning() -> None:
    words = [f"word{number:03}" + "x" * (number % 7) for number in range(80)]
    plan = planned(" ".join(words), glossary=dict.fromkeys(words, "w"))
    [unit] = plan.units
    assert len(unit.terms) == MOST_TERMS
    left = set(words) - {term.source for term in unit.terms}
    assert max(map(len, left)) <= min(len(term.source) for term in unit.terms)
    assert any(warning.startswith("terms: 80 ") for warning in plan.items[0].warnings)


def test_a_glossary_for_another_source_language_is_not_applied() -> None:
    french = stored(Term("house", ("maison",)), source_lang="fr")
    plan = planned("the house", french, glossary_id="g1")
    assert plan.units[0].terms == ()
    assert any(warning.startswith("glossary_id: ") for warning in plan.items[0].warnings)


def test_a_glossary_with_terms_in_another_script_only_is_reported() -> None:
    simplified = StoredGlossary("g1", "v1", "en", TermIndex(()), "zh")
    plan = planned("the house", simplified, glossary_id="g1", target_lang="zh-TW")
    assert plan.units[0].terms == ()
    [warning] = [one for one in plan.items[0].warnings if one.startswith("glossary_id: ")]
    assert "terms for zh" in warning


@pytest.mark.parametrize("source_lang", ["en-GB", "en", None])
def test_a_glossary_for_the_same_language_or_for_any_is_applied(source_lang: str | None) -> None:
    plan = planned(
        "the house", stored(Term("house", ("h",)), source_lang=source_lang), glossary_id="g"
    )
    assert [term.source for term in plan.units[0].terms] == ["house"]
    assert not any(warning.startswith("glossary_id") for warning in plan.items[0].warnings)


def test_a_glossary_that_does_not_exist_fails_the_job() -> None:
    with pytest.raises(UnknownGlossary, match="g1"):
        planner().open(job("one", glossary_id="g1"))


def test_a_unit_has_the_literals_that_occur_in_it() -> None:
    plan = planned(
        [{"text": "Acme costs {0} in Rome", "protect": ["{0}", "{1}"]}],
        do_not_translate=["Acme", "Rom", "Oslo"],
    )
    assert plan.units[0].protected == ("{0}", "Acme")


# --- languages ------------------------------------------------------------------------------------


def test_detections_from_outside_are_used_item_by_item() -> None:
    plans = planner()
    plan = plans.open(
        job(["one", "deux", "x y"], source_lang=...),
        detections=[Detection("en", 0.9), Detection("fr", 0.9), None],
    )
    completed(plans, plan)
    assert [item.source_lang for item in plan.items] == ["en", "fr", None]
    assert [item.detected for item in plan.items] == ["en", "fr", None]


def test_a_prompt_that_names_the_source_gets_the_job_s_usual_language_in_doubt() -> None:
    plans = planner(profile=PlainProfile(needs_source=True))
    given = [Detection("fr", 0.9), None, Detection("fr", 0.9), Detection("en", 0.9)]
    plan = plans.open(job(["a", "b", "c", "d"], source_lang=...), detections=given)
    completed(plans, plan)
    assert (plan.items[1].source_lang, plan.items[1].detected) == ("fr", None)


def test_without_any_detection_the_script_decides() -> None:
    plans = planner(profile=PlainProfile(needs_source=True))
    plan = plans.open(job(["OK", "Да"], source_lang=...), detections=[None, None])
    completed(plans, plan)
    assert [item.source_lang for item in plan.items] == ["en", "ru"]


# --- cost -----------------------------------------------------------------------------------------


def test_the_source_of_a_usual_job_is_tokenised_once() -> None:
    engine = ChatEngine()
    plans = planner(engine, CHAT)
    plans.plan(job("first text"))
    engine.encoded.clear()
    engine.counted.clear()
    [unit] = plans.plan(job("one two three")).units
    assert len(engine.encoded) == 1
    assert engine.counted == []
    assert unit.decoding.max_tokens == pytest.approx(2 * 3 + 64, abs=2)


def test_a_steered_prompt_does_not_count_as_source() -> None:
    engine = ChatEngine()
    plans = planner(engine, CHAT)
    usual = plans.plan(job("one two three")).units[0].decoding
    steered = plans.plan(job("one two three", context="word " * 500)).units[0].decoding
    assert steered.max_tokens == usual.max_tokens
