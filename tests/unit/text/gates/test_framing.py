"""Tests of the gate `framing`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.gates import framing
from dragoman_text.verdicts import Candidate

LATE = "It is late. We should go home before the last train leaves."


def repaired(source: str, answer: str, language: str) -> str:
    return framing.repaired(Candidate(source, answer, language))


@pytest.mark.parametrize(
    ("source", "answer", "language", "expected"),
    [
        ("  Hello\n", "Hallo", "de", "  Hallo\n"),
        ("Hello", " Hallo\n", "de", "Hallo"),
        (
            LATE,
            f"Es ist spät. {'Wir gehen ' * 5}heim",
            "de",
            f"Es ist spät. {'Wir gehen ' * 5}heim.",
        ),
        (LATE, f"遅いです。{'帰る' * 20}", "ja", f"遅いです。{'帰る' * 20}。"),
        (LATE, f"देर है। {'घर ' * 20}घर", "hi", f"देर है। {'घर ' * 20}घर।"),
        (LATE, f"उशीर आहे. {'घरी ' * 15}जा", "mr", f"उशीर आहे. {'घरी ' * 15}जा."),
        (LATE, f"دیر ہے۔ {'گھر ' * 15}گھر", "ur", f"دیر ہے۔ {'گھر ' * 15}گھر۔"),
        (f"{'Word ' * 20}end.", f"{'Wort ' * 20}Ende", "de", f"{'Wort ' * 20}Ende."),
        ("「遅い。」", "„It is late“", "en", "„It is late“"),
        ('"Yes"', "Ja", "de", '"Ja"'),
        ("«Yes.»", "Ja.", "de", "«Ja.»"),
    ],
)
def test_the_ends_are_repaired(source: str, answer: str, language: str, expected: str) -> None:
    assert repaired(source, answer, language) == expected


@pytest.mark.parametrize(
    ("source", "answer", "language"),
    [
        ("It is late.", "Es ist spät", "de"),  # of a label, a translator may leave it out
        ("It is late.", "Es ist spät!", "de"),
        (LATE, f"Es ist spät, {'wir gehen ' * 5}heim", "de"),  # an answer without any end mark
        (LATE, f"Es ist spät. {'Wir gehen ' * 5}heim!", "de"),
        (LATE, "Es ist spät. Wir", "de"),  # it looks unfinished, and must not look complete
        (LATE, "สายแล้ว. " + "กลับบ้าน" * 8, "th"),
        ("Wait...", "Warte", "de"),
        ("Chapter 3.", "Kapitel 3", "de"),
        ('"Yes" or "no"', "Ja", "de"),
        ('"Yes"', "„Ja“", "de"),
        ("Yes (no)", "(Ja, nein)", "de"),
        ("- Yes", "- Ja", "de"),
        ('"Yes," he said', "- Ja", "fr"),
        ("January 19th", "19. Januar", "de"),
        ("Minus 5 degrees", "- 5 Grad", "de"),
        ("Dream of the Red Chamber", "《红楼梦》", "zh"),
        ("The Lord of the Rings", "『指輪物語』", "ja"),
        ("Yes\nNo", "- Ja\n- Nein", "de"),
        ("Yes", "(Ja) (doch)", "de"),
        ("", "Hallo", "de"),
        ("Hello", "", "de"),
    ],
)
def test_what_is_in_doubt_stays(source: str, answer: str, language: str) -> None:
    assert repaired(source, answer, language) == answer


@pytest.mark.parametrize(
    "around",
    [
        "«{}»",
        "「{}」",
        "({})",
        "[{}]",
        "**{}**",
        "__{}__",
        "<{}>",
        "- {}",
        "# {}",
        "> {}",
        "---\n{}\n---",
        '"""{}"""',
        "=== {} ===",
    ],
)
def test_marks_around_an_answer_are_removed(around: str) -> None:
    assert repaired("It is late", around.format("Es ist spät"), "de") == "Es ist spät"
    assert repaired(around.format("It is late"), around.format("Es ist spät"), "de") == (
        around.format("Es ist spät")
    )


@given(source=st.text(max_size=60), answer=st.text(max_size=60))
def test_repairing_twice_changes_nothing_more(source: str, answer: str) -> None:
    once = repaired(source, answer, "de")
    assert repaired(source, once, "de") == once


@given(st.text(max_size=60))
def test_a_copy_stays(text: str) -> None:
    assert repaired(text, text, "de") == text
