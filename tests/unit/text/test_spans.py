"""Placeholders are found, masked and restored; prose is not changed."""

from __future__ import annotations

import itertools
import re
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dragoman_text.masks import (
    BRACES,
    BRACKETS,
    STYLES,
    TAGS,
    Masked,
    Restored,
    TokenStyle,
    mask,
    restore,
)
from dragoman_text.spans import (
    Span,
    find_spans,
    has_letters,
    has_words,
    is_translatable,
    unprotected,
)
from support.pace import LINEAR_S

# Other tests share the machine, so slowness is not a failure here.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ANY_STYLE = st.sampled_from(STYLES)
TEXTS = st.text() | st.lists(
    st.sampled_from(
        [
            "{name}",
            "%d",
            "%",
            "{{x}}",
            "{",
            "}",
            "<b>",
            "<x",
            "/>",
            "⟦0⟧",
            "⟦",
            "⟧",
            "{{1}}",
            "<x2/>",
            "https://a.de/b",
            "ACME",
            "`",
            " ",
            "3",
            "word",
            "ü",
            "⟦ 999999 ⟧",
            "&amp;",
            "a@b.de",
        ]
    ),
    max_size=30,
).map("".join)
TERMS = st.lists(st.sampled_from(["ACME", "or", "d", "", "word ACME"]) | st.text(max_size=3))


def kept(text: str, *terms: str) -> list[str]:
    return [text[span.start : span.end] for span in find_spans(text, terms)]


@pytest.mark.parametrize(
    "placeholder",
    [
        "{{x}}",
        "{{ user.name }}",
        "{{{raw}}}",
        "${x}",
        "%(x)s",
        "%(count)d",
        "%1$s",
        "%d",
        "%5.2f",
        "%@",
        "%lld",
        "{name}",
        "{0}",
        "{}",
        "{price:.2f}",
        "{items[0]}",
        "%%",
        '<tag a="b">',
        "</tag>",
        "<tag/>",
        "<em>",
        "<g1>",
        "<x2/>",
        "<br/>",
        '<a href="x">',
        "<!-- no -->",
        "&nbsp;",
        "&#160;",
        "&#xA0;",
        "https://x.org/a?b=c",
        "http://x.org",
        "www.example.org/a_(b)",
        "first.last+tag@mail.example.org",
        "`code here`",
        "``a `b` c``",
        "`a = 'b'`",
        "`'b'`",
        "`it's`",
        "https://de.wikipedia.org/wiki/Straße",
        "https://x.org/{id}/y",
        "%1",
        "%L1",
        "%n",
        "{:.2f}",
        "{!r}",
        "{$name}",
        "{ $name }",
        "[[name]]",
        "$t(common.more)",
        "<%= name %>",
        ":name",
        ":smile:",
    ],
)
def test_a_placeholder_is_found_in_its_sentence(placeholder: str) -> None:
    assert kept(f"Vorher {placeholder} nachher.") == [placeholder]
    assert kept(f"({placeholder}).") == [placeholder]


@pytest.mark.parametrize(
    "prose",
    [
        "100 % der Leute",
        "5 %ige Lösung",
        "a 50% discount",
        "50 % of",
        "I <3 you",
        "a < b and c > d",
        "R&D and Q&A",
        "Tom & Jerry;",
        "{not a placeholder}",
        "$5 {",
        "me @home",
        "10:30 a.m.",
        "don't `quote",
        "e.g. this",
        "and/or",
        "C:\\path",
        "www. is short",
        "git checkout <branch>",
        "<your name> and <file name>",
        "`foo' and `bar', or `baz'",
        "``foo'' and ``bar''",
        "5 %ölige",
        "%50 indirim",
        "HH:MM[:ss]",
        "[[Main page]]",
        "so: name :) and C:name",
    ],
)
def test_prose_is_not_changed(prose: str) -> None:
    assert kept(prose) == []


@pytest.mark.parametrize(
    "text", ["%s이어야 합니다", "%sは必要です", "%s中的", "%1$s에서", "ไฟล์ %sครับ", "файл %sу"]
)
def test_a_format_is_found_before_a_letter_that_is_not_latin(text: str) -> None:
    assert [text[span.start : span.end] for span in find_spans(text)] == [
        re.search(r"%(1\$)?s", text)[0]  # type: ignore[index]
    ]


def test_formats_between_quotes_of_gnu_are_found() -> None:
    assert kept("unexpected `%s', expected `)' or `%d'") == ["%s", "%d"]


def test_a_pair_of_any_name_is_markup_and_formats_in_a_tag_of_prose_are_found() -> None:
    assert kept("<branch>x</branch>") == ["<branch>", "</branch>"]
    assert kept("<file %s> of <b>") == ["%s", "<b>"]


def test_words_count_only_as_whole_words_in_their_own_case() -> None:
    assert [(s.start, s.end) for s in find_spans("Good Go go", words=["Go"])] == [(5, 7)]
    assert [(s.start, s.end) for s in find_spans("Good Go go", ["Go"])] == [(0, 2), (5, 7)]


def test_only_the_arms_of_an_icu_message_are_prose() -> None:
    text = "{who}: {n, plural, =0 {no %s} one {# file} other {{n} files}} left"
    assert kept(text) == [
        "{who}",
        "{n, plural, =0 {",
        "%s",
        "} one {",
        "#",
        "} other {",
        "{n}",
        "}}",
    ]


def test_a_link_ends_before_the_sentence_does() -> None:
    assert kept("See https://x.org/a, (or https://y.org/b_(c)). 请访问https://z.cn/路。") == [
        "https://x.org/a",
        "https://y.org/b_(c)",
        "https://z.cn/",
    ]


def test_every_occurrence_of_a_term_is_found_verbatim() -> None:
    assert kept("ACME sells acme. ACME!", "ACME") == ["ACME", "ACME"]
    assert kept("a.b axb", "a.b") == ["a.b"]


def test_spans_that_only_touch_stay_separate() -> None:
    assert kept("{a}{b}%d<br/>") == ["{a}", "{b}", "%d", "<br/>"]


def test_overlapping_spans_are_merged() -> None:
    text = "New York City"
    assert find_spans(text, ["New York", "York City"]) == [Span(0, 13, "term")]
    assert [span.kind for span in find_spans("https://acme.org/x", ["acme"])] == ["url"]


@UNHURRIED
@given(TEXTS, TERMS)
def test_spans_are_in_order_and_disjoint(text: str, terms: list[str]) -> None:
    spans = find_spans(text, terms)
    assert all(span.start < span.end for span in spans)
    assert all(one.end <= other.start for one, other in itertools.pairwise(spans))
    assert (not spans) or spans[-1].end <= len(text)


@UNHURRIED
@given(
    st.text(st.sampled_from("aab "), max_size=20),
    st.lists(st.text(st.sampled_from("aab "), min_size=1, max_size=4), max_size=6),
)
def test_occurrences_that_overlap_are_one_span_and_those_that_touch_are_two(
    text: str, terms: list[str]
) -> None:
    found = {
        (match.start(), match.end())
        for term in terms
        for match in re.finditer(re.escape(term), text)
    }
    inner = {gap for start, end in found for gap in range(start + 1, end)}
    edges = sorted({place for each in found for place in each if place not in inner})
    spans = [(span.start, span.end) for span in find_spans(text, terms)]
    assert sorted({place for each in spans for place in each}) == edges


def test_hundreds_of_terms_at_every_place_take_little_memory() -> None:
    text = "abcdefghijklmnopqrstuvwxyz" * 400
    terms = [text[start : start + length] for length in range(1, 40) for start in range(26)]
    tracemalloc.start()
    try:
        assert find_spans(text, terms) == [Span(0, len(text), "term")]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@UNHURRIED
@given(TEXTS, TERMS)
def test_a_term_is_always_covered(text: str, terms: list[str]) -> None:
    spans = find_spans(text, terms)
    for term in filter(None, terms):
        place = text.find(term)
        assert place < 0 or any(s.start <= place and place + len(term) <= s.end for s in spans)


@UNHURRIED
@given(TEXTS, TERMS, ANY_STYLE)
def test_restoring_the_mask_gives_the_text(text: str, terms: list[str], style: TokenStyle) -> None:
    masked = mask(text, find_spans(text, terms), style)
    assert restore(masked.text, masked).text == text


@UNHURRIED
@given(TEXTS, ANY_STYLE)
def test_tokens_may_come_back_spaced_and_in_another_order(text: str, style: TokenStyle) -> None:
    masked = mask(text, find_spans(text), style)
    tokens = [style.token(masked.first + n) for n in range(len(masked.originals))]
    spaced = [token.replace(style.before, style.before + " ") for token in reversed(tokens)]
    assert restore(" und ".join(spaced), masked).text == " und ".join(reversed(masked.originals))


@pytest.mark.parametrize("spelling", ["⟦0⟧", "⟦ 0 ⟧", "⟦0 ⟧", "⟦\u00a00⟧", "⟦０⟧", "⟦٠⟧"])
def test_a_token_is_recognised_however_it_is_spaced(spelling: str) -> None:
    masked = mask("Hi {name}!", find_spans("Hi {name}!"))
    assert restore(f"Hallo {spelling}!", masked).text == "Hallo {name}!"


def test_a_token_is_recognised_in_capitals() -> None:
    masked = mask("Hi {name}!", find_spans("Hi {name}!"), TAGS)
    assert restore("Hallo <X0 />!", masked).text == "Hallo {name}!"


@pytest.mark.parametrize(
    ("style", "spelling"), [(TAGS, "＜ｘ0／＞"), (TAGS, "< x 0 / >"), (BRACES, "｛｛ ０ ｝｝")]
)
def test_a_token_is_recognised_in_full_width(style: TokenStyle, spelling: str) -> None:
    masked = mask("Hi {name}!", find_spans("Hi {name}!"), style)
    assert restore(f"Hallo {spelling}!", masked).text == "Hallo {name}!"


def test_a_lost_token_is_reported() -> None:
    masked = mask("{a} and {b}", find_spans("{a} and {b}"))
    assert restore("⟦0⟧ und", masked) == Restored("{a} und", missing=("{b}",))


def test_a_repeated_token_is_reported() -> None:
    masked = mask("{a} and {b}", find_spans("{a} and {b}"))
    restored = restore("⟦0⟧ ⟦1⟧ ⟦0⟧", masked)
    assert restored == Restored("{a} {b} {a}", repeated=("{a}",))


def test_a_token_that_was_never_given_is_reported_unless_the_text_spells_it() -> None:
    masked = mask("⟦9⟧ {a}", find_spans("⟦9⟧ {a}"))
    assert restore("⟦9⟧ ⟦0⟧ ⟦5⟧", masked) == Restored("⟦9⟧ {a} ⟦5⟧", unknown=("⟦5⟧",))


@pytest.mark.parametrize(
    ("text", "translation", "moved"),
    [
        ("The file is {name}.", "⟦0⟧ ist die Datei.", True),
        ("The file is {name}.", "Die Datei ist ⟦0⟧.", False),
        ("{name} is the file of {owner}", "⟦1⟧ ⟦0⟧", False),
        ("{name} is the file", "⟦0⟧ ist die Datei", False),
        ("The {name} file", "⟦0⟧", False),
    ],
)
def test_a_token_at_the_end_that_came_first_is_reported(
    text: str, translation: str, moved: bool
) -> None:
    assert restore(translation, mask(text, find_spans(text))).moved_first == moved


def test_numbers_that_the_text_spells_itself_are_not_used() -> None:
    text = "⟦0⟧ and {a}"
    masked = mask(text, find_spans(text), BRACKETS)
    assert masked == Masked("⟦0⟧ and ⟦1⟧", ("{a}",), 1, BRACKETS)
    assert restore("⟦0⟧ und ⟦1⟧", masked).text == "⟦0⟧ und {a}"


def test_a_text_without_spans_is_its_own_mask() -> None:
    masked = mask("Hello.", [])
    assert masked.text == "Hello."
    assert restore("Hallo.", masked).text == "Hallo."


@pytest.mark.parametrize("text", ["a", "ü", "日", "नमस्ते", "1 a", "😀 b"])
def test_letters_of_every_script_are_letters(text: str) -> None:
    assert has_letters(text)
    assert is_translatable(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "12.5",
        "—!?…",
        "😀🎉",
        "1 + 1 = 2",
        "https://example.org/a",
        "{name}",
        "%s: %d",
        "<br/>",
        "a@b.de",
        "`code`",
        "{{x}} / {{y}}",
        "&nbsp;",
        "<b>1</b>",
    ],
)
def test_a_text_without_words_is_its_own_translation(text: str) -> None:
    assert not is_translatable(text)


@UNHURRIED
@given(
    st.sampled_from(
        ["", "Hello ", "www. ", "Hi, ", "a:", "https: ", "Größe", "a.b", "- Hi ", "1.x"]
    ),
    TEXTS | st.sampled_from(["//x.de", "example.org", "@b.de", ".c@b.de", "b%s"]),
)
def test_a_text_is_translatable_if_it_has_letters_outside_its_spans(word: str, rest: str) -> None:
    text = word + rest
    outside = unprotected(text, find_spans(text))
    assert is_translatable(text) == (has_words(text) and any(map(has_words, outside)))


def test_a_term_alone_is_its_own_translation() -> None:
    assert not is_translatable("ACME!", ["ACME"])
    assert is_translatable("ACME sells!", ["ACME"])


@UNHURRIED
@given(TEXTS)
def test_a_text_with_a_word_is_translatable(text: str) -> None:
    assume("`" not in text and "<" not in text and "{" not in text)
    assert is_translatable(f"{text} – Guten – ")


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "`a",
        "<!--",
        "<a ",
        "a@",
        "{",
        "%",
        "http://",
        "a.b@c.",
        "&a",
        "``a",
        "(",
        "{{",
        "%(a",
        "`a' ",
        "``a'",
        "<a>",
        "<a %s>",
        "</a>",
    ],
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    text = "https://a.de/" + unit * (131_072 // len(unit))
    started = time.process_time()
    find_spans(text)
    find_spans(text[13:])
    assert time.process_time() - started < LINEAR_S


def test_a_link_with_a_thousand_brackets_takes_linear_time() -> None:
    started = time.process_time()
    assert kept("https://a.de/" + ")" * 130_000) == ["https://a.de/"]
    assert time.process_time() - started < LINEAR_S


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%b %d", False), ("%-d. %B %Y", False), ("%Y-%m-%dT%H:%M:%SZ", False), ("%(n)s %b", False),
        ("%1$s / %2$d", False), ("%EY %Om", False), ("%H:%M Uhr", True), ("am %d", True),
        ("5%ige", True), ("%Hello", True), ("%%d", True), ("100 % der", True), ("%Y\u5e74", True),
        ("% a", True),
    ],
)  # fmt: skip
def test_directives_of_dates_are_no_words(text: str, expected: bool) -> None:
    assert is_translatable(text) is expected
