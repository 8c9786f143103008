"""A text is composed as by the standard library, in linear time."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.composing import LONGEST_RUN, composed
from support.pace import LINEAR_S

MARKED = st.text(st.sampled_from("aé가각\u1100\u1161\u0301\u0323\u0315\u0f73\u0344ༀ "), max_size=60)


@given(st.text() | MARKED)
def test_the_composed_text_is_nfc(text: str) -> None:
    assert composed(text) == unicodedata.normalize("NFC", text)


def test_a_run_of_marks_is_composed_with_its_letter_up_to_the_longest_run() -> None:
    text = "e" + "\u0323\u0301" * (LONGEST_RUN // 2)
    assert composed(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("marks", ["\u0315\u0300\u0320", "\u0f73", "\u0344\u0323"])
def test_a_letter_with_forty_thousand_marks_takes_linear_time(marks: str) -> None:
    started = time.process_time()
    composed("e" + marks * (43_000 // len(marks)))
    assert time.process_time() - started < LINEAR_S
