"""Tests of the gate `placeholders`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import placeholders
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Delete %s?", "Löschen?"),
        ("Delete %s?", "%s %s löschen?"),
        ("Delete %d files", "%s Dateien löschen"),
        ("Hello {name}!", "Hallo {Name}!"),
        ("Hello {{ name }}!", "Hallo {{name}}!"),
        ("Cost: ${price}", "Preis: {price}"),
        ("Used by %(user)s", "Von %(user) benutzt"),
        ("Moved {0} to {1}", "{0} verschoben"),
        ("%1$s invited %2$s to it.", "%2$s hat %2$s eingeladen."),
        ("%1$s invited %2$s to it.", "%3$s hat %4$s eingeladen."),
        ("%1$s invited %2$s to it.", "%s hat %s zu %s eingeladen."),
        ("Copied %s to %d computers.", "%d 台のコンピューターに %s をコピーしました。"),
        ("%1 of %2", "%1 von %3"),
        ("%n file(s)", "%m Datei(en)"),
        ("Hello :name", "Hallo :Name"),
        ("Hello {$name}", "Hallo {$Name}"),
        ("Hello { $name }", "Hallo { $Name }"),
        ("It takes {:.2f} s", "Es dauert {:.3f} s"),
        ("Hello [[name]]", "Hallo [[Name]]"),
        ("See $t(common.more)", "Siehe $t(common.mehr)"),
        ("Hello <%= name %>", "Hallo <%= Name %>"),
    ],
)
def test_a_changed_placeholder_is_a_defect(source: str, answer: str) -> None:
    assert placeholders.find(Candidate(source, answer, "de"))


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("%s must be set", "%s이어야 합니다"),
        ("%s to %s", "%2$s von %1$s"),
        ("Hello {name}!", "{name}さん、こんにちは"),
        ("Up to 100 % off", "Bis zu 100 %ige Ermäßigung"),
        ("5 % of it", "5 %der Menge"),
        ("100%% done", "100%% fertig"),
        ("plain", "{new}"),
        ("%s to %d", "%2$d von %1$s"),
        ("%1$s, %2$s", "%2$s, %1$s"),
        ("On %B %d at %H:%M", "Am %d. %B um %H:%M"),
        ("%1 of %2", "%2 中的 %1"),
        ("%50 indirim, %20 faiz", "50 % off, 20 % interest"),
        ("HH:MM[:ss] at 10:30", "СС:ММ[:сс] в 10:30"),
        ("See :name.", ":nameさん"),
        ("1 item | {n} items", "1 element | {n} elementy | {n} elementów"),
    ],
)
def test_a_kept_placeholder_is_no_defect(source: str, answer: str) -> None:
    assert placeholders.find(Candidate(source, answer, "ko")) is None


def test_a_protected_literal_must_come_through_as_often() -> None:
    source = "Acme and Acme Cloud"
    protected = ("Acme", "Acme Cloud", "absent", "")
    kept = Candidate(source, "Acme und Acme Cloud", "de", protected=protected)
    assert placeholders.find(kept) is None
    for answer in ("Acme und Acme Wolke", "Acme Cloud", "Acme, Acme und Acme Cloud"):
        assert placeholders.find(Candidate(source, answer, "de", protected=protected))


def test_a_word_counts_only_as_a_whole_word_in_the_source_and_with_endings_in_the_answer() -> None:
    def found(source: str, answer: str, word: str) -> object:
        candidate = Candidate(source, answer, "fi", protected=(word,), words=(word,))
        return placeholders.find(candidate)

    assert found("Go is good, Good Go", "Go on hyvä, hyvä Go", "Go") is None
    assert found("Kafka is fast", "Kafkan nopeus", "Kafka") is None
    assert found("Go is good", "Se on hyvä", "Go")
    assert found("Go is good", "Go Go on hyvä", "Go")
    assert found("Good", "hyvä", "Go") is None


GENDERS = "{gender, select, male {He} female {She} other {They}} liked {title}."
FILES = "{count, plural, =0 {no file} one {# file} other {# files}} in {folder}"


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (GENDERS, "{gender, select, male {Il} female {Elle} other {Iels}} a aimé {title}."),
        (
            GENDERS,
            "{gender, select, male {Il {title}} female {Elle {title}} other {Iels {title}}}",
        ),
        (
            FILES,
            "{count, plural, =0 {brak} one {# plik} few {# p.} other {{count} pliku}} w {folder}",
        ),
    ],
)
def test_the_texts_of_an_icu_message_may_change(source: str, answer: str) -> None:
    assert placeholders.find(Candidate(source, answer, "fr")) is None


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (GENDERS, "{genre, select, male {Il} female {Elle} other {Iels}} a aimé {title}."),
        (GENDERS, "{gender, select, homme {Il} female {Elle} other {Iels}} a aimé {title}."),
        (GENDERS, "{gender, select, male {Il} female {Elle} other {Iels}} a aimé."),
        (GENDERS, "Iels ont aimé {title}."),
        (FILES, "{count, plural, =0 {brak} uno {# plik} otro {# pliku}} w {folder}"),
        (FILES, "{count, plural, one {# plik} other {# pliku}} w {folder}"),
        (FILES, "{count, plural, =0 {brak} one {# plik} other {pliku}} w {folder}"),
        (FILES, "{count, plural, =0 {brak} one {# plik} other {# pliku} w {folder}"),
        (FILES, "{count, number} {folder}"),
    ],
)
def test_the_skeleton_of_an_icu_message_must_not_change(source: str, answer: str) -> None:
    assert placeholders.find(Candidate(source, answer, "pl"))


def test_a_literal_may_look_like_a_regular_expression() -> None:
    kept = Candidate("Use (a|b)* now", "Nutze (a|b)*", "de", protected=("(a|b)*",))
    assert placeholders.find(kept) is None


@pytest.mark.parametrize(
    "unit",
    [
        "%",
        "{",
        "{{",
        "${",
        "%(a",
        "{a}",
        "%s",
        "%%",
        "{{{a}",
        "%1$s",
        ":a",
        "$t(",
        "[[a",
        "{a,select,a{",
    ],
)
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    placeholders.find(Candidate(text, text[:-1], "de"))
    assert time.process_time() - started < LINEAR_S
