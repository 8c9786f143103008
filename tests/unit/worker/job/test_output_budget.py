"""Output budgets follow from a text in many languages and the engine's own tokenizer."""

from __future__ import annotations

import sys
import unicodedata
from functools import lru_cache
from importlib.resources import files
from typing import Final
from unicodedata import is_normalized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_worker.job import output_budget
from dragoman_worker.job.output_budget import OutputBudget
from dragoman_worker.prompts import parallel_text
from dragoman_worker.prompts.names import script_of

HAN: Final = frozenset({"Hans", "Hant"})


def count_bytes(text: str) -> int:
    """Count a token per byte, as a tokenizer that has not learned a script does."""
    return len(text.encode())


@pytest.fixture(scope="module")
def budget() -> OutputBudget:
    return OutputBudget(count_bytes)


def test_every_script_of_the_text_has_its_likeliest_language_first() -> None:
    likeliest = {name: tags[0] for name, tags in parallel_text.tags_by_script().items()}
    assert {"Latn": "en", "Cyrl": "ru", "Arab": "ar", "Deva": "hi"}.items() <= likeliest.items()
    assert {
        "LATIN": "en",
        "CJK": "zh",
        "HIRAGANA": "ja",
        "HANGUL": "ko",
    }.items() <= likeliest.items()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("OK", "en"),
        ("Привет", "ru"),
        ("你好", "zh"),
        ("漢字ばかり", "ja"),
        ("1 + 1", "en"),
        ("٣ 😀", "en"),
        ("ភាសា", "km"),
        ("\U00013000", "en"),
    ],
)
def test_the_likeliest_language_follows_from_the_script(text: str, language: str) -> None:
    assert parallel_text.likeliest_language(text) == language


def test_a_script_that_the_tokenizer_splits_into_bytes_gets_a_larger_budget(
    budget: OutputBudget,
) -> None:
    assert budget.factor("en", "en") == 1.0
    assert budget.factor("en", "my") > 3.0
    assert budget.factor("my", "en") == pytest.approx(1 / budget.factor("en", "my"))
    assert budget.expected(100, "Hello", "en", "my") > 300


@pytest.mark.parametrize(
    ("tag", "like"),
    [
        ("de-AT", "de"),
        ("zh-TW", "zh-Hant"),
        ("zh-CN", "zh"),
        ("sr-Cyrl", "sr"),
        ("no", "nb"),
        ("uz-Cyrl", "uz-Cyrl"),
        ("pa-PK", "pa-Arab"),
    ],
)
def test_a_tag_has_the_factor_of_its_language_and_script(
    budget: OutputBudget, tag: str, like: str
) -> None:
    assert budget.factor("en", tag) == budget.factor("en", like)


def test_an_unlisted_language_needs_more_than_most_of_its_script_and_less_than_the_most(
    budget: OutputBudget,
) -> None:
    cyrillic = parallel_text.tags_by_script()["Cyrl"]
    factors = sorted(budget.factor("en", tag) for tag in cyrillic)
    assert factors[len(factors) // 2] < budget.factor("en", "cv") < factors[-1]


def test_an_unlisted_source_is_one_of_the_middle_of_its_script(budget: OutputBudget) -> None:
    cyrillic = parallel_text.tags_by_script()["Cyrl"]
    factors = sorted(budget.factor(tag, "en") for tag in cyrillic)
    assert factors[0] < budget.factor("cv", "en") < factors[-1]


def test_an_unlisted_language_of_a_script_with_one_language_needs_more(
    budget: OutputBudget,
) -> None:
    assert budget.factor("en", "as") == pytest.approx(1.5 * budget.factor("en", "bn"))


@pytest.mark.parametrize(("tag", "like"), [("arz", "ar"), ("apc", "ar"), ("ckb", "ug")])
def test_a_dialect_has_the_factor_of_its_language(
    budget: OutputBudget, tag: str, like: str
) -> None:
    assert budget.factor("en", tag) == budget.factor("en", like)


def test_a_language_of_an_unknown_script_gets_the_most_that_any_needs(budget: OutputBudget) -> None:
    everything = parallel_text.by_tag()
    assert budget.factor("en", "nqo") == max(budget.factor("en", tag) for tag in everything)


def test_without_a_source_language_the_script_of_the_text_counts(budget: OutputBudget) -> None:
    assert budget.expected(100, "ជំរាបសួរ", None, "en") < 50
    assert budget.expected(100, "Hello", None, "en") >= 100


def test_variants_of_letters_count_as_what_they_stand_for() -> None:
    for text, name in (
        ("Ｈｅｌｌｏ", "LATIN"),
        ("𝗛𝗲𝗹𝗹𝗼", "LATIN"),
        ("3 µ", "GREEK"),
        ("ｶﾀｶﾅ", "HIRAGANA"),
    ):
        assert parallel_text.script_name(text) == name


def test_letters_of_every_name_in_unicode_have_a_budget(budget: OutputBudget) -> None:
    by_name = {
        unicodedata.name(character, "").split(" ")[0]: character
        for character in map(chr, range(sys.maxunicode + 1))
        if character.isalpha()
    }
    assert {"MICRO", "FEMININE", "SYRIAC", "BOPOMOFO", "MODIFIER", "SCRIPT"} <= by_name.keys()
    for letter in by_name.values():
        assert budget.expected(100, f"6.7 {letter}", None, "de") > 0


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(["de", "zh-Hant", "nqo"]))
def test_any_text_without_a_source_language_has_a_budget(text: str, target: str) -> None:
    assert _counting_bytes().expected(100, text, None, target) > 0


@lru_cache(maxsize=1)
def _counting_bytes() -> OutputBudget:
    return OutputBudget(count_bytes)


def test_a_script_without_a_language_here_gets_the_most_that_any_source_needs(
    budget: OutputBudget,
) -> None:
    cheapest = min(parallel_text.by_tag().values(), key=count_bytes)
    assert budget.expected(100, "ܫܠܡܐ", None, "de") == pytest.approx(
        100 * count_bytes(parallel_text.by_tag()["de"]) / count_bytes(cheapest)
    )


def test_a_tokenizer_that_counts_nothing_gives_no_error() -> None:
    assert OutputBudget(lambda _: 0).factor("en", "de") == 1.0


def test_the_estimate_is_smaller_than_the_cap_and_both_grow_with_what_is_expected() -> None:
    for expected in (0, 1, 10, 100, 10_000):
        assert output_budget.needed(expected) <= output_budget.cap(1, expected)
        assert output_budget.estimate(1, expected) <= output_budget.cap(1, expected)
    assert output_budget.cap(100, 10.0) == 2 * 100 + 64, "a text may stay as it is"
    assert output_budget.cap(100, 1_000.0) == 2 * 1_000 + 64
    assert output_budget.estimate(1_000, 1.0) > 300, "the text may not be in its language"


# --- the text -------------------------------------------------------------------------------------


def test_every_row_is_composed_as_people_type_it() -> None:
    rows = (
        files("dragoman_worker.prompts").joinpath("parallel_text.tsv").read_text(encoding="utf-8")
    )
    assert [row[:20] for row in rows.splitlines() if not is_normalized("NFC", row)] == []
    assert all(is_normalized("NFC", text) for text in parallel_text.by_tag().values())


NEWS: Final = (
    "af 1.10 am 1.71 az 1.26 be 1.87 bg 1.97 bn 2.62 bo 3.48 bs 1.06 ca 1.17 cs 1.09 cy 1.11 da "
    "1.04 de 1.22 dz 2.86 ee 1.05 el 2.17 es 1.19 et 1.03 eu 1.12 fa 1.74 fi 1.14 fil 1.18 fo "
    "1.12 fr 1.25 ga 1.27 gl 1.12 gu 2.59 ha 1.11 he 1.45 hi 2.69 hr 1.07 hu 1.23 hy 1.95 id "
    "1.16 ig 1.19 is 1.17 it 1.18 ja 1.31 ka 2.87 kk 1.93 km 3.22 kn 2.90 ko 1.28 ky 1.85 lb "
    "1.18 lo 2.90 lt 1.13 lv 1.20 mg 1.33 mi 1.17 mk 1.96 ml 3.37 mn 1.91 mr 2.80 ms 1.12 mt "
    "1.19 my 3.48 nb 1.04 ne 2.63 nl 1.18 nn 1.03 nso 1.18 ny 1.15 om 0.97 pa 2.57 pl 1.20 ps "
    "1.73 pt 1.15 ro 1.25 ru 2.02 rw 1.25 si 2.75 sk 1.11 sl 1.05 sm 1.14 sn 1.20 so 1.18 sq "
    "1.23 sr 1.77 sr-Latn 1.07 sv 1.06 sw 1.10 ta 3.40 te 2.68 tg 2.00 th 2.63 ti 1.68 tk 1.27 "
    "tn 1.35 to 1.38 tr 1.17 tt 1.81 ug 2.32 uk 1.92 ur 1.77 uz 1.22 vi 1.43 wo 0.99 xh 1.09 yo "
    "1.63 yue 0.93 zh 0.96 zu 1.04 "
)
"""Bytes of UTF-8 per byte of English in another text: the 1,997 sentences of news of NTREX-128."""


def test_every_language_has_the_length_that_it_has_in_another_text() -> None:
    """A row in another script, or of another text, is found; the Declaration is short in some."""
    numbers = NEWS.split()
    news = dict(zip(numbers[::2], map(float, numbers[1::2]), strict=True))
    texts = parallel_text.by_tag()
    english = count_bytes(texts["en"])
    found = {tag: count_bytes(texts[tag]) / english / length for tag, length in news.items()}
    assert {tag: each for tag, each in found.items() if not 0.74 < each < 1.34} == {}
    assert len(found) > 100


def test_every_row_is_in_the_script_of_its_tag() -> None:
    scripts = parallel_text.tags_by_script()
    for tag, text in parallel_text.by_tag().items():
        assert tag in scripts[parallel_text.script_name(text)]
        first = scripts[parallel_text.script_name(text)][0]
        assert script_of(first) == script_of(tag) or {script_of(first), script_of(tag)} <= HAN
