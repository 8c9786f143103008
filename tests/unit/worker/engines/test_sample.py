"""Tests of the test sentence: which answers show that an engine works."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.engines.sample import ask_sample, ask_sample_in_time, is_judged, sample_of
from dragoman_worker.errors import EngineDead, TooLong, TransientEngineError
from dragoman_worker.prompts.demo import DEMO
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.prompts.table import PROFILES
from dragoman_worker.settings import EchoSettings, EngineSettings
from support.fakes.scripted_engine import Says, ScriptedEngine, Step

TEXT = sample_of(DEMO).text


def answering(*steps: Step) -> ScriptedEngine:
    engine = ScriptedEngine()
    engine.script(TEXT, *steps)
    return engine


@pytest.mark.parametrize(
    ("says", "fault"),
    [
        (Says(""), "an empty text"),
        (Says(" \n"), "an empty text"),
        (Says("!!!"), "without a letter"),
        (Says("", "repetition", 18), "a loop (finish reason repetition, 18 tokens)"),
        (Says("Guten Morgen Guten", "length"), "without an end"),
    ],
)
async def test_an_answer_that_is_no_text_three_times_is_a_fault(says: Says, fault: str) -> None:
    engine = answering(says, says, says)
    assert fault in (await ask_sample(engine, DEMO, judged=True) or "")
    assert engine.asked(TEXT) == 3


async def test_a_text_is_right_also_if_the_first_try_was_none() -> None:
    assert await ask_sample(answering(Says("おはよう")), DEMO, judged=True) is None
    engine = answering(Says(""), Says("Guten Morgen!"))
    assert await ask_sample(engine, DEMO, judged=True) is None
    first, second = engine.requests
    assert first.decoding != second.decoding


async def test_an_answer_of_random_weights_is_not_judged() -> None:
    assert await ask_sample(answering(Says("", "length")), DEMO, judged=False) is None


async def test_an_answer_that_a_tiny_context_cuts_off_is_no_fault() -> None:
    engine = answering(Says("Guten", "length"))
    engine.limits = replace(engine.limits, max_model_len=8)
    assert await ask_sample(engine, DEMO, judged=True) is None
    assert await ask_sample(answering(TooLong("8")), DEMO, judged=True) is None


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
async def test_every_profile_renders_the_test_sentence(profile: object) -> None:
    engine = answering(Says("<seg>Guten Morgen!</seg>"))
    await ask_sample(engine, PROFILES[getattr(profile, "name", "")], judged=True)
    assert engine.asked(TEXT) >= 1


async def test_an_error_and_a_time_out_are_wrong_answers_and_a_death_is_a_death() -> None:
    async def asked(*steps: Step) -> str | None:
        return await ask_sample_in_time(answering(*steps), DEMO, judged=True, timeout_s=0.02)

    assert "no slot" in (await asked(TransientEngineError("no slot")) or "")
    assert "nothing" in (await asked(asyncio.Event()) or "")
    with pytest.raises(EngineDead):
        await asked(EngineDead("gone"))


@pytest.mark.parametrize("mode", ["tag", "identity", "table"])
async def test_the_echo_engine_answers_it_in_every_mode(mode: str, tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text(f"{TEXT}\tde\t\n", encoding="utf-8")
    echo = EchoSettings.model_validate({"mode": mode, "table": table, "faults": True})
    settings = EngineSettings(kind="echo", echo=echo)
    engine = EchoEngine(settings)
    await engine.start()
    assert await ask_sample(engine, PLAIN, judged=is_judged(settings)) is None
    await engine.close()


@pytest.mark.parametrize(
    ("settings", "judged"),
    [
        ({"kind": "echo"}, False),
        ({"model": "m"}, True),
        ({"model": "m", "exact_lengths": True}, False),
        ({"model": "m", "options": {"load_format": "dummy"}}, False),
        ({"model": "m", "options": {"load_format": "safetensors"}}, True),
    ],
)
def test_only_real_weights_are_judged(settings: dict[str, object], *, judged: bool) -> None:
    assert is_judged(EngineSettings.model_validate(settings)) is judged
