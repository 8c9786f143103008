"""Tests of the gate `control`."""

from __future__ import annotations

import time

import pytest

from dragoman_text.gates import control
from dragoman_text.verdicts import Candidate
from support.pace import LINEAR_S


@pytest.mark.parametrize(
    "added",
    [
        *(
            "<end_of_turn>",
            "<|im_end|>",
            "<｜end▁of▁sentence｜>",
            "</s>",
            "<pad>",
            "<extra_0>",
            "[INST]",
        ),
        *(
            "⟦7⟧",
            "{{ 7 }}",
            "\x00",
            "\x1b",
            "\x85",
            "\ufffd",
            "\ufeff",
            "▁",
            "\U000f0000",
            "\u202e",
            "\u2066",
            "\U000e0041",
            "\U000e0101",
            "\u3164",
        ),
    ],
)
def test_a_new_control_token_or_character_is_a_defect(added: str) -> None:
    assert control.find(Candidate("Hello", f"Hal{added}lo", "de"))
    assert control.find(Candidate(f"He{added}llo", f"Hal{added}lo", "de")) is None
    assert control.find(Candidate(f"He{added}llo", f"{added}Hal{added}lo", "de"))


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        ("a\tb\nc\r\n", "de"),
        ("\u200fשלום\u200e", "he"),
        ("می\u200cخواهم", "fa"),
        ("ខ្ញុំ\u200bចង់", "km"),
        ("👩\u200d👩\u200d👧\ufe0f", "de"),
        ("e\u0301", "fr"),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "de"),
        ("a\n\n\n\nb", "de"),
        ("a <b> c", "de"),
    ],
)
def test_what_scripts_need_is_no_defect(answer: str, target: str) -> None:
    assert control.find(Candidate("Hello", answer, target)) is None


def test_a_gap_of_empty_lines_is_a_defect() -> None:
    gap = "a" + "\n \t" * 500 + "\nb"
    assert control.find(Candidate("Hello", gap, "de"))
    assert control.find(Candidate(gap, gap, "de")) is None


@pytest.mark.parametrize("unit", ["\n ", "\n", "\n" + " " * 999 + "a"])
def test_a_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (131_072 // len(unit))
    started = time.process_time()
    control.find(Candidate("Hello", text, "de"))
    assert time.process_time() - started < LINEAR_S


def test_the_detail_shows_characters_by_their_number() -> None:
    defect = control.find(Candidate("Hello", "Hal\u202elo", "de"))
    assert defect is not None
    assert '"U+202E"' in defect.detail
