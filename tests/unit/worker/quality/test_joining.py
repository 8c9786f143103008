"""Pieces of an item are joined with the blanks of the target's script."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_worker.quality.joining import TranslatedPiece, join


def joined(target_lang: str, *pieces: tuple[str, str, str, str]) -> str:
    return join([TranslatedPiece(*piece) for piece in pieces], target_lang)


@pytest.mark.parametrize(
    "source", ["これは文です。", "ประโยคหนึ่ง", "ពាក្យ", "这是句子。", "ཚིག", "စာ။", "ປະໂຫຍກ"]
)
def test_pieces_of_a_script_without_blanks_get_one_in_a_language_with_blanks(source: str) -> None:
    pieces = ("", source, "", "Sentence 1."), ("", source, "", "This.")
    assert joined("en", *pieces) == "Sentence 1. This."


@pytest.mark.parametrize("target_lang", ["ja", "zh", "zh-TW", "yue"])
def test_sentences_have_no_blank_between_them_in_chinese_and_japanese(target_lang: str) -> None:
    pieces = ("", "One.", " ", "一です。"), ("", "Two.", "", "二です。")
    assert joined(target_lang, *pieces) == "一です。二です。"


@pytest.mark.parametrize("target_lang", ["th", "km", "lo", "my", "bo", "ko", "en"])
def test_other_scripts_keep_the_blank_between_sentences(target_lang: str) -> None:
    pieces = ("", "One.", " ", "ក"), ("", "Two.", "", "ខ")
    assert joined(target_lang, *pieces) == "ក ខ"


@pytest.mark.parametrize("blank", ["\n", "\n\n", " \n ", "\r\n", "\t", "\u2029"])
@pytest.mark.parametrize("target_lang", ["en", "ja", "th"])
def test_line_breaks_and_tabs_stay_as_they_are(blank: str, target_lang: str) -> None:
    pieces = ("", "文。", blank, "一。"), ("", "文。", "", "二。")
    assert joined(target_lang, *pieces) == f"一。{blank}二。"


def test_an_ideographic_space_becomes_an_ordinary_one() -> None:
    pieces = ("", "文。", "\u3000", "One."), ("", "文。", "", "Two.")
    assert joined("en", *pieces) == "One. Two."


def test_between_japanese_and_chinese_nothing_is_added() -> None:
    pieces = ("", "文。", "", "一。"), ("", "文。", "", "二。")
    assert joined("zh", *pieces) == "一。二。"


def test_foreign_words_that_meet_keep_their_blank() -> None:
    pieces = ("", "Redis", " ", "Redis"), ("", "Kafka", "", "Kafka")
    assert joined("ja", *pieces) == "Redis Kafka"


def test_a_cut_without_a_blank_stays_without_one_in_a_script_with_blanks() -> None:
    pieces = ("", "a/", "", "a/"), ("", "b", "", "b")
    assert joined("de", *pieces) == "a/b"


@pytest.mark.parametrize("target_lang", ["en", "ja", "th"])
def test_the_blanks_around_an_item_are_kept(target_lang: str) -> None:
    assert joined(target_lang, ("\u3000 ", "文。", "  ", "一。")) == "\u3000 一。  "
    assert joined(target_lang) == ""


TEXTS = st.text("aあ。. ", max_size=4)


# Other tests share the machine, so slowness is not a failure here.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.text(" \n"), TEXTS, st.text(" \n\u3000"), TEXTS)),
    st.sampled_from(["ja", "en", "th"]),
)
def test_only_blanks_are_ever_added_or_left_out(
    pieces: list[tuple[str, str, str, str]], target_lang: str
) -> None:
    written = "".join(piece[3] for piece in pieces)
    assert "".join(joined(target_lang, *pieces).split()) == "".join(written.split())
    breaks = sum(piece[0].count("\n") + piece[2].count("\n") for piece in pieces)
    assert joined(target_lang, *pieces).count("\n") == breaks
