"""Tests of the gate `structure`."""

from __future__ import annotations

import pytest

from dragoman_text.gates import structure
from dragoman_text.verdicts import Candidate


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ('{"title": "House", "n": 3}', '{"Titel": "Haus", "n": 3}'),
        ('{"title": "House", "n": 3}', '{"title": "Haus", "n": "3"}'),
        ('["a", "b"]', '["a"]'),
        ('{"title": "House"}', "title: Haus"),
        ("Run:\n```\nmake\n```", "Starte:\n```\nmake"),
        ("| a | b |\n| - | - |\n| c | d |", "| a | b |\n| - | - |\n| c d |"),
        ("name\tcity\nAnn\tRome\nBob\tPisa", "Name\tStadt\nAnn Rom\nBob\tPisa"),
        ("a;b;c\nd;e;f\ng;h;i", "a;b;c\nd;e;f"),
    ],
)
def test_another_shape_is_a_defect(source: str, answer: str) -> None:
    assert structure.find(Candidate(source, answer, "de"))


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ('{"title": "House", "n": 3}', '{"title": "Haus", "n": 3}'),
        ("{name} is here", "{name} ist da"),
        ("[Note]", "[Hinweis]"),
        ("Bread, milk, and eggs.\nTea, salt, and jam.\nHam.", "Brot, Milch und Eier.\nTee.\nUnd."),
        ("| a | b |\n| - | - |", "| c | d |\n| - | - |"),
        ("[" * 100_000 + "]" * 100_000, "x"),
        ("[" + "9" * 5_000 + "]", "[1]"),
        ("x", "```\nx\n```"),
    ],
)
def test_the_same_shape_is_no_defect(source: str, answer: str) -> None:
    assert structure.find(Candidate(source, answer, "de")) is None
