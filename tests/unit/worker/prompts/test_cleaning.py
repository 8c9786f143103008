"""Tests that cleaning removes what is no translation and keeps what is one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.prompts.cleaning import cleaned
from dragoman_worker.prompts.table import PROFILES, get_profile
from support.pace import LINEAR_S


@pytest.mark.parametrize(
    ("written", "source", "expected"),
    [
        ("<think>\nHm, German.\n</think>\n\nHallo!", "Hello!", "Hallo!"),
        ("Hm, German.\n</think>\nHallo!", "Hello!", "Hallo!"),
        ("<think>\n\n</think>\n\nHallo!", "Hello!", "Hallo!"),
        ("<target>Hallo!</target>", "Hello!", "Hallo!"),
        ("```\nHallo!\n```", "Hello!", "Hallo!"),
        ("```text\nHallo,\nWelt!\n```\n", "Hello,\nworld!", "Hallo,\nWelt!"),
        ("Here is the translation: Hallo!", "Hello!", "Hallo!"),
        ("Here's the German translation:\n\nHallo!", "Hello!", "Hallo!"),
        ("Sure! Here is your text in German:\nHallo!", "Hello!", "Hallo!"),
        ("Certainly, here’s the translation:\n```\nHallo!\n```", "Hello!", "Hallo!"),
        ("Translation: Hallo!", "Hello!", "Hallo!"),
        ("The translation is: Hallo!", "Hello!", "Hallo!"),
        ("Übersetzung: Hallo!", "Hello!", "Hallo!"),
        ("译文：你好！", "Hello!", "你好！"),
        ("German: Hallo!", "Hello!", "Hallo!"),
        ("Deutsch: Hallo!", "Hello!", "Hallo!"),
        ("Français : Bonjour !", "Hello!", "Bonjour !"),
        ("**Español:** ¡Hola!", "Hello!", "¡Hola!"),
        ("日本語：こんにちは", "Hello", "こんにちは"),
        ("Chinese (Simplified): 你好！", "Hello!", "你好！"),
        ('"Hallo!"', "Hello!", "Hallo!"),
        ("„Hallo!“", "Hello!", "Hallo!"),
        ("“Hallo!”", "Hello!", "Hallo!"),
        ("  Hallo!\n", "Hello!", "Hallo!"),
        ("**Translation:**\n\nHallo!", "Hello!", "Hallo!"),
        ("### Translation\nHallo!", "Hello!", "Hallo!"),
        ("**Übersetzung**: Hallo!", "Hello!", "Hallo!"),
        ("<translation>Hallo!</translation>", "Hello!", "Hallo!"),
        ("<Answer>\nHallo!\n</answer>", "Hello!", "Hallo!"),
        ('{"translation": "Sag \\"Hallo\\"!"}', "Say hello!", 'Sag "Hallo"!'),
        ("<thinking>Hm.</thinking>Hallo!", "Hello!", "Hallo!"),
        ("[THINK]Hm.[/THINK]\n\nHallo!", "Hello!", "Hallo!"),
        ("<seed:think>Hm.</seed:think>Hallo!", "Hello!", "Hallo!"),
        ("<german>Hallo!</german>", "Hello!", "Hallo!"),
        ("[TRANSLATION]\nHallo!\n[/TRANSLATION]", "Hello!", "Hallo!"),
        ("◁think▷Hm.◁/think▷Hallo!", "Hello!", "Hallo!"),
    ],
)
def test_what_surrounds_a_translation_is_removed(written: str, source: str, expected: str) -> None:
    assert cleaned(written, source) == expected


@pytest.mark.parametrize(
    ("written", "source"),
    [
        ("Translation: a history", "Übersetzung: eine Geschichte"),
        ("German: a short course", "Deutsch: ein kurzer Lehrgang"),
        ("Hinweis: Hallo!", "Hello!"),
        ("Here is the translation: it took a year.", "Hier ist die Übersetzung: ein Jahr Arbeit."),
        ("Here is the key.", "Voici la clé."),
        ("Sure, I will come.", "Klar, ich komme."),
        ("Translation is hard work.", "Übersetzen ist harte Arbeit."),
        ('"Hello!"', "«Bonjour !»"),
        ('"Hello!"', "「こんにちは」"),
        ("“Come here.”", "— Ven aquí."),
        ('"Moby Dick"', "*Moby Dick*"),
        ('"Yes" or "no"', "Ja oder nein"),
        ('"Yes," he said.', "Ja, sagte er."),
        ("```\nprint(1)\n```", "```\nprint(1)\n```"),
        ("Use `make`:\n```\nmake\n```", "Nutze `make`:\n```\nmake\n```"),
        ("<target>a</target>", "<target>b</target>"),
        ("<answer>a</answer> b", "c"),
        ("<b>a</b>", "<b>c</b>"),
        ('{"a": "Hallo!"}', '{"a": "Hello!"}'),
        ('{"a": "Hallo!", "b": "Welt"}', "Hello!"),
        ('{"a": ["Hallo!"]}', "Hello!"),
        ('{"a": "Hallo!', "Hello!"),
        ("[THINK]", "[THINK]"),
        ("He said <think>hm</think> aloud", "Er sagte <think>hm</think> laut"),
        ("Note: bring water.", "Hinweis: Wasser mitbringen."),
        ("日本語：難しい言語", "Japanese: a hard language"),
        ("'", "'"),
        ('""', "leer"),
        ("", "Hello!"),
    ],
)
def test_a_correct_translation_is_left_unchanged(written: str, source: str) -> None:
    assert cleaned(written, source) == written


def test_without_the_source_only_thoughts_are_removed() -> None:
    assert cleaned("<think>x</think>Hallo!", None) == "Hallo!"
    for written in ('"Hallo!"', "Translation: Hallo!", "```\nHallo!\n```", "<target>a</target>"):
        assert cleaned(written, None) == written


def test_a_step_that_would_leave_nothing_is_undone() -> None:
    assert cleaned("Translation:", "Hello!") == "Translation:"
    assert cleaned("```\n```", "Hello!") == "```\n```"


def test_thoughts_alone_are_an_empty_answer() -> None:
    assert cleaned("<think>endless</think>\n", "Hello!") == ""


PROSE = st.text(
    alphabet=st.characters(categories=("L", "M", "N"), include_characters=" .,!?;-\n"),
    max_size=300,
)


@given(text=PROSE, source=st.one_of(st.none(), PROSE))
def test_plain_text_is_left_unchanged(text: str, source: str | None) -> None:
    for profile in PROFILES.values():
        assert profile.clean(text, source) == text.strip()


@given(text=st.text(max_size=200), source=st.one_of(st.none(), st.text(max_size=200)))
def test_cleaning_never_adds_text(text: str, source: str | None) -> None:
    result = cleaned(text, source)
    assert result in text
    assert result or not text.strip() or "</think>" in text


@given(text=st.text(max_size=200))
def test_a_copy_of_the_source_is_left_unchanged(text: str) -> None:
    assert cleaned(text, text) == text.strip()


@pytest.mark.parametrize(
    ("before", "unit", "after"),
    [
        ("```a\n", " ", "x"),
        ("```a\n", "\t\n", "x"),
        ("sure", " ", "x"),
        ("the translation", " ", "x"),
        ("<target>", "</target> ", "x"),
        ("<think>", " ", "x"),
        ("A", "a ", "x"),
        ("", '"', "x"),
        ("<thinking>", "</thought>", "x"),
        ("<answer>", "</answer>", ""),
        ('{"a":', '{"a":', "}"),
        ("**translation", " ", "x"),
        ("", " ", "x"),
    ],
)
def test_cleaning_a_hostile_answer_takes_linear_time(before: str, unit: str, after: str) -> None:
    started = time.process_time()
    cleaned(before + unit * (262_144 // len(unit)) + after, "source")
    assert time.process_time() - started < LINEAR_S


def test_every_profile_but_the_demo_cleans() -> None:
    for name in set(PROFILES) - {"demo"}:
        assert get_profile(name).clean('"Hallo!"', "Hello!") == "Hallo!"
    assert get_profile("demo").clean(' "Hallo!"\n', "Hello!") == '"Hallo!"'
