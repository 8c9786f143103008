"""Text is split at sentences, clauses and blanks, and nothing is lost."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman_text.sentences import pack, split_sentences
from dragoman_text.spans import find_spans

# Other tests share the machine, so slowness is not a failure here.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
LANGS = st.sampled_from(["en", "de", "zh-CN", "pt-BR", "ja", "th", "ar", "hi", "xx"])
TEXTS = st.text() | st.lists(
    st.sampled_from(
        ["Hello.", "z. B.", " ", "\n\n", "Wie geht's?", "你好。", "1,000", "ok, ", "{name}", "😀"]
    ),
    max_size=40,
).map("".join)


@UNHURRIED
@given(TEXTS, LANGS)
def test_sentences_joined_are_the_text(text: str, lang: str) -> None:
    sentences = split_sentences(text, lang)
    assert "".join(sentences) == text
    assert all(sentences)


@UNHURRIED
@given(TEXTS, LANGS)
def test_blanks_stay_with_the_sentence_before_them(text: str, lang: str) -> None:
    assert not any(sentence[0].isspace() for sentence in split_sentences(text, lang)[1:])


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        (
            "en",
            "Hello Mr. Smith.  How are you?\n\nFine. ",
            ["Hello Mr. Smith.  ", "How are you?\n\n", "Fine. "],
        ),
        ("zh-CN", "你好。我很好！谢谢", ["你好。", "我很好！", "谢谢"]),
        ("de", "Das ist z. B. gut. Ja.", ["Das ist z. B. gut. ", "Ja."]),
        ("en", "  Hi. Ho.", ["  Hi. ", "Ho."]),
        ("en", " \n ", [" \n "]),
        ("en", "", []),
    ],
)
def test_sentences_end_where_a_reader_expects(lang: str, text: str, expected: list[str]) -> None:
    assert split_sentences(text, lang) == expected


LETTERS = {"en": "Hello there. ", "ja": "これは文です。", "ff": "𞤀𞤢. ", "xx": "😀! "}


@pytest.mark.parametrize("lang", LETTERS)
@pytest.mark.parametrize("blank", ["", "\n\n", "\r\n\r\n"])
def test_a_long_text_has_as_many_sentences_as_its_parts(lang: str, blank: str) -> None:
    paragraph = LETTERS[lang] * 40 + blank
    count = 40_000 // len(paragraph)
    sentences = split_sentences(paragraph * count, lang)
    assert sentences == split_sentences(paragraph, lang) * count
    assert len(sentences) == 40 * count


def test_an_abbreviation_at_the_end_of_a_block_ends_no_sentence() -> None:
    for filler in range(1_990, 2_001):
        text = "a" * (filler - 12) + ". Mr. Smith comes. Yes."
        assert split_sentences(text, "en")[1:] == ["Mr. Smith comes. ", "Yes."]


def test_no_sentence_ends_inside_a_protected_span() -> None:
    text = 'See <a title="One. Two. Three.">this</a>. Ask Acme. Inc. now. End.'
    assert split_sentences(text, "en", ["Acme. Inc."]) == [
        'See <a title="One. Two. Three.">this</a>. ',
        "Ask Acme. Inc. now. ",
        "End.",
    ]


@pytest.mark.parametrize(
    "unit", ["“a. ", "“", "\n", "x\n\n", ". ", "?", "a.", "«a. ", "「あ。", "(", "😀"]
)
def test_splitting_the_oddest_texts_takes_linear_time(unit: str) -> None:
    def seconds(chars: int) -> float:
        text = unit * (chars // len(unit))
        began = time.thread_time()
        assert "".join(split_sentences(text, "en")) == text
        return time.thread_time() - began

    assert seconds(120_000) < 20 * max(seconds(15_000), 0.01)


@UNHURRIED
@given(TEXTS, LANGS, st.integers(1, 30))
def test_chunks_joined_are_the_pieces(text: str, lang: str, limit: int) -> None:
    assert "".join(pack(split_sentences(text, lang), lambda part: len(part) <= limit)) == text


@UNHURRIED
@given(TEXTS, LANGS, st.integers(1, 30))
def test_chunks_are_as_long_as_fits(text: str, lang: str, limit: int) -> None:
    chunks = pack(split_sentences(text, lang), lambda part: len(part) <= limit)
    for chunk in chunks:
        oversize = len(chunk) > limit
        assert not oversize or len(chunk.split(maxsplit=1)) <= 1 or find_spans(chunk)
    packed_again = pack(chunks, lambda part: len(part) <= limit)
    assert packed_again == chunks


@UNHURRIED
@given(TEXTS, st.integers(1, 12))
def test_no_chunk_ends_inside_a_protected_span(text: str, limit: int) -> None:
    with_span = f"{text} <a href='x y'>, {{{{ a b }}}}; ACME, Inc. {text}"
    chunks = pack([with_span], lambda part: len(part) <= limit, ["ACME, Inc."])
    cuts = {sum(map(len, chunks[:count])) for count in range(len(chunks))}
    for span in find_spans(with_span, ["ACME, Inc."]):
        assert not any(span.start < cut < span.end for cut in cuts)


def test_short_sentences_share_a_chunk() -> None:
    pieces = ["One. ", "Two. ", "Three. ", "Four."]
    assert pack(pieces, lambda part: len(part) <= 10) == ["One. Two. ", "Three. ", "Four."]


def test_a_long_sentence_is_split_at_clauses_before_blanks() -> None:
    piece = "one two, three four; five six seven"
    assert pack([piece], lambda part: len(part) <= 15) == [
        "one two, ",
        "three four; ",
        "five six seven",
    ]


def test_a_long_clause_is_split_at_blanks() -> None:
    assert pack(["one two three"], lambda part: len(part) <= 8) == ["one two ", "three"]


def test_numbers_and_times_are_not_split() -> None:
    piece = "pay 1,000 at 12:30"
    assert pack([piece], lambda part: len(part) <= 9) == ["pay ", "1,000 at ", "12:30"]


def test_chinese_clauses_need_no_blank() -> None:
    assert pack(["你好，世界，再见"], lambda part: len(part) <= 4) == ["你好，", "世界，", "再见"]


@pytest.mark.parametrize(
    "text",
    [
        "漢字" * 20,
        "カタカナ" * 9,
        "ความสุขของโลก" * 3,
        "ភាសាខ្មែរ" * 4,
        "မြန်မာစာ" * 4,
        "བོད་ཡིག་" * 4,
        "ພາສາລາວ" * 4,
    ],
)
def test_a_script_without_blanks_is_split_between_syllables(text: str) -> None:
    chunks = pack([text], lambda part: len(part) <= 12)
    assert "".join(chunks) == text
    assert all(len(chunk) <= 12 for chunk in chunks)
    assert not any(unicodedata.category(chunk[0]).startswith("M") for chunk in chunks)
    assert not any(chunk[0] in "ぁゃっーァャッ" for chunk in chunks)


def test_a_piece_that_cannot_be_split_is_returned_whole() -> None:
    assert pack(["x" * 50], lambda part: len(part) <= 10) == ["x" * 50]


@pytest.mark.parametrize(
    "stretch",
    ["QUJD" * 60, "data:image/png;base64," + "QUJD" * 60, "%E4%BD%A0" * 30, "😀" * 60],
)
def test_what_no_one_can_cut_is_a_chunk_of_its_own(stretch: str) -> None:
    for before, behind in (("See ", " here"), ("größer\n", "\nüber")):
        chunks = pack([before + stretch + behind], lambda part: len(part) <= 50)
        assert stretch in map(str.strip, chunks)
        assert "".join(chunks) == before + stretch + behind


def test_a_term_inside_data_does_not_cut_it() -> None:
    assert pack(["QUJD" * 60], lambda part: len(part) <= 50, ["DQ"]) == ["QUJD" * 60]


def test_a_part_without_blanks_is_split_around_tags_and_links() -> None:
    text = "one<b>two</b>three:https://example.org/a"
    chunks = pack([text], lambda part: len(part) <= 12)
    assert chunks == ["one<b>two", "</b>three:", "https://example.org/a"]


def test_the_number_of_length_checks_is_about_the_number_of_chunks() -> None:
    asked = 0

    def fits(part: str) -> bool:
        nonlocal asked
        asked += 1
        return len(part) <= 2000

    chunks = pack(["word "] * 20_000, fits)
    assert len(chunks) == 50
    assert asked < 20_000 + 50 * 25


def test_no_pieces_give_no_chunks() -> None:
    assert pack([], lambda _part: True) == []
    assert pack(["", ""], lambda _part: True) == []
