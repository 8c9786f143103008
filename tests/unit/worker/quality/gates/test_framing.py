"""Tests of the gate `framing`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.quality.gates import framing


@pytest.mark.parametrize(
    ("source", "answer", "language", "expected"),
    [
        ("  Hello\n", "Hallo", "de", "  Hallo\n"),
        ("Hello", " Hallo\n", "de", "Hallo"),
        ("It is late.", "Es ist spät", "de", "Es ist spät."),
        ("It is late.", "遅いです", "ja", "遅いです。"),
        ("It is late.", "यह देर है", "hi", "यह देर है।"),
        ("It is late.", "उशीर झाला आहे", "mr", "उशीर झाला आहे."),
        ("It is late.", "دیر ہو چکی ہے", "ur", "دیر ہو چکی ہے۔"),
        ("「遅い。」", "„It is late“", "en", "„It is late“"),
        ('"Yes"', "Ja", "de", '"Ja"'),
        ("«Yes.»", "Ja.", "de", "«Ja.»"),
    ],
)
def test_the_ends_are_repaired(source: str, answer: str, language: str, expected: str) -> None:
    assert framing.repaired(source, answer, language) == expected


@pytest.mark.parametrize(
    ("source", "answer", "language"),
    [
        ("It is late.", "Es ist spät!", "de"),
        ("It is late.", "สายแล้ว", "th"),
        ("Wait...", "Warte", "de"),
        ("Chapter 3.", "Kapitel 3", "de"),
        ('"Yes" or "no"', "Ja", "de"),
        ('"Yes"', "„Ja“", "de"),
        ("", "Hallo", "de"),
        ("Hello", "", "de"),
    ],
)
def test_what_is_in_doubt_stays(source: str, answer: str, language: str) -> None:
    assert framing.repaired(source, answer, language) == answer


@given(source=st.text(max_size=60), answer=st.text(max_size=60))
def test_repairing_twice_changes_nothing_more(source: str, answer: str) -> None:
    once = framing.repaired(source, answer, "de")
    assert framing.repaired(source, once, "de") == once


@given(st.text(max_size=60))
def test_a_copy_stays(text: str) -> None:
    assert framing.repaired(text, text, "de") == text
