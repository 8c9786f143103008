"""Tests of the gate `incomplete` and of the marks at the ends of sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_text.gates import incomplete, sentence_ends
from dragoman_text.verdicts import Candidate

LETTER = "The committee read the letter twice and then decided to answer it before the weekend."
ANSWER = "Der Ausschuss las den Brief zweimal und beschloss dann, ihn noch vor dem Wochenende zu."


@pytest.mark.parametrize(
    ("source", "answer", "sign"),
    [
        (LETTER, "Der Ausschuss las den Brief zweimal und beschloss", "end mark"),
        (LETTER, "Der Ausschuss las den Brief (zweimal.", "does not close ("),
        (f"{LETTER} {LETTER}", ANSWER, "fewer sentences"),
    ],
)
def test_a_short_answer_with_a_sign_of_a_lost_end_is_incomplete(
    source: str, answer: str, sign: str
) -> None:
    defect = incomplete.find(Candidate(source, answer, "de", "en"))
    assert defect is not None
    assert sign in defect.detail
    assert not defect.slight


@pytest.mark.parametrize(
    ("source", "answer", "language"),
    [
        (LETTER, ANSWER.rstrip("."), "de"),  # as long as usual
        (LETTER, "Der Ausschuss beschloss, den Brief bald zu beantworten.", "de"),  # has its mark
        (LETTER.rstrip("."), "Der Ausschuss las den Brief zweimal", "de"),  # neither has a mark
        (LETTER, "คณะกรรมการอ่านจดหมายสองครั้งแล้วตัดสินใจ", "th"),  # Thai writes none
        ("Read the letter:", "Brief", "de"),  # a label
        ('"They will come back with the first train.', "「彼らは始発電車で戻ってくる。", "ja"),
        ('"Five weeks away from the polls.', "«Fem veker til valet.", "nn"),
        (
            "The train from the north arrived on time, and all passengers were glad about it.",
            "ከሰሜን የመጣው ባቡር በሰዓቱ ደረሰ፣ ተሳፋሪዎችም ተደሰቱ፡፡",
            "am",
        ),
        (LETTER, "Der Ausschuss beschloss, den Brief zu beantworten.\u200f", "de"),
        ("下記の手順で操作するには、次のようにします。", "To do so:", "en"),  # a single sentence
    ],
)
def test_other_short_answers_are_not(source: str, answer: str, language: str) -> None:
    assert incomplete.find(Candidate(source, answer, language, "en")) is None


@pytest.mark.parametrize(
    ("source", "answer", "language"),
    [
        ("This action cannot be undone.", "此操作無法復原", "zh-Hant"),
        ("The two password fields didn't match.", "Lösenorden matchade inte", "sv"),
        (LETTER, "Koreen xalayaa sana yeroo lama dubbise", "om"),  # often written without marks
    ],
)
def test_the_same_signs_are_slight_where_people_leave_words_and_marks_out(
    source: str, answer: str, language: str
) -> None:
    defect = incomplete.find(Candidate(source, answer, language, "en"))
    assert defect is not None
    assert defect.slight


@pytest.mark.parametrize(
    ("source", "answer", "language"),
    [
        ('"The mini-markets are looted everywhere."', '"Minimarket dijarah"', "id"),
        ("We are doing great with North Korea, he told the reporters.", "「上手い関係」", "ja"),
    ],
)
def test_a_quotation_that_closes_needs_no_end_mark(source: str, answer: str, language: str) -> None:
    assert incomplete.find(Candidate(source, answer, language, "en")) is None


def test_an_answer_within_a_limit_of_characters_may_be_short() -> None:
    answer = "Der Ausschuss las den Brief zweimal"
    assert incomplete.find(Candidate(LETTER, answer, "de", "en", max_chars=200)) is not None
    assert incomplete.find(Candidate(LETTER, answer, "de", "en", max_chars=40)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Eins. Zwei! Drei?", 3),
        ("Wait... what?", 1),
        ("「一つ。」二つ！", 2),
        ("version 1.2.3 of example.org", 0),
        ('He said "no." Then he left.', 2),
        ("Mr. J. Smith of the U.S. Senate left on Sept. 4.", 1),
        ("ተደሰቱ፡፡ ሄዱ።", 2),
        ("", 0),
        ("." * 100_000 + "x", 0),
        ('."' * 100_000 + "x", 0),
    ],
)
def test_sentences_are_counted_by_their_ends(text: str, expected: int) -> None:
    assert sentence_ends.count(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait.", True),
        ("„Halt!“ ", True),
        ("<b>Wait.</b>", True),
        ('<b><a href="x">Wait.</a></b>\n', True),
        ("「待って。」", True),
        ("Wait", False),
        ("Wait for this:", False),
        ("a > b", False),
        ("<b></b>", False),
        ("", False),
        ("</b>" * 30_000, False),
    ],
)
def test_a_sentence_may_end_before_quotes_brackets_and_tags(text: str, expected: bool) -> None:
    assert sentence_ends.ends_sentence(text) is expected


@given(st.text(max_size=80))
def test_a_copy_is_never_incomplete(text: str) -> None:
    assert incomplete.find(Candidate(text, text, "de", "en")) is None
