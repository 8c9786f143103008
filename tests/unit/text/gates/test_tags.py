"""Tests of the gate `tags`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import tags
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Press <b>Start</b> now", "Drücke Start"),
        ("Press <b>Start</b> now", "Drücke <b>Start"),
        ("Press <b>Start</b> now", "Drücke <b>Start</b> <b>jetzt</b>"),
        ("<g1>Press</g1> <x2/>", "<g1>Drücke</g1>"),
        ("<g1>Press</g1> it", "<g1>Drücke</g2> es"),
        ("<g1>a</g1> <g2>b</g2>", "<g1>a <g2>b</g1></g2>"),
        ("<key>a</key>", "<Taste>a</Taste>"),
        ("Read our <0>terms</0> now", "Lesen Sie unsere Bedingungen"),
        ("The first <b>of the page is here.", "Der erste der Seite ist hier."),
    ],
)
def test_a_lost_paired_or_numbered_tag_is_a_defect(source: str, answer: str) -> None:
    defect = tags.find(Candidate(source, answer, "de"))
    assert defect is not None
    assert not defect.slight


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("One<br>two", "Eins zwei"),
        ('See <a href="/en">here</a>', 'Siehe <a href="/x">hier</a>'),
        ("plain", "<strong>fett</strong>"),
        ("Read <a>the terms</a> now", "Lesen Sie jetzt die Bedingungen<a></a>"),
        ("<g1>Read</g1> it", "<g1> </g1>Lesen Sie es"),
    ],
)
def test_a_lone_tag_or_an_attribute_is_slight(source: str, answer: str) -> None:
    defect = tags.find(Candidate(source, answer, "de"))
    assert defect is not None
    assert defect.slight


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("git switch <branch>", "git switch <Zweig>"),
        ("a < b and c > d", "a < b und c > d"),
        ("<b>a</b> <i>b</i>", "<i>b</i> <b>a</b>"),
        ('<img src="x" alt="dog"/>', '<img src="x" alt="Hund" />'),
        ("<b>one <i>two</b></i>", "<b>eins <i>zwei</b></i>"),
        ("<i></i> Home", "<i></i> Start"),
        ("Use <time> or <address>", "Nutze <Zeit> oder <Adresse>"),
    ],
)
def test_prose_in_angle_brackets_and_another_order_are_no_defects(source: str, answer: str) -> None:
    assert tags.find(Candidate(source, answer, "de")) is None


@pytest.mark.parametrize("unit", ["<b>", "<", "<a ", "<g1>", "<b></b>", "<x1/>", "</b>", '<a b="'])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    tags.find(Candidate(text, text[: len(text) // 2], "de"))
    assert time.process_time() - started < LINEAR_S
