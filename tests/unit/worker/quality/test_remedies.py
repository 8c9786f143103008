"""Remedies: what is asked for next, and how the answers are joined; spans are never lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dragoman_text.masks import STYLES, TokenStyle
from dragoman_text.terms import Term
from dragoman_text.verdicts import Finding, Judgement
from dragoman_worker.quality.remedies import Try, Wanted, better, first, following, join

TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "{a}",
            "%d",
            "<b>",
            "</b>",
            "⟦0⟧",
            "⟦ 1 ⟧",
            "<x0/>",
            "{{2}}",
            "Word",
            ". ",
            "Ok. ",
            "\n",
            "\n\n",
            "(",
            ") ",
            "! ",
            "これは",
            "。",
            "ACME",
            " ",
            "See https://a.de/b ",
            "`c d`",
            "½",
        ]
    ),
    max_size=25,
).map("".join)
UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\ua4cf\ua9e0-\uffef\U00020000-\U0003ffff]")
GATES = ("placeholders", "tags", "copy", "language", "loop", "paragraphs", "structure", "length")
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def failed(*gates: str, text: str = "", warned: int = 0, distance: float = 0.0) -> Judgement:
    findings = [Finding(gate, "fail", "") for gate in gates]
    findings += [Finding("numbers", "warn", "")] * warned
    return Judgement(text, tuple(findings), distance)


def climb(wanted: Wanted, *answers: str) -> list[Try]:
    """Return the tries after answers that failed the gates named, separated by blanks."""
    tries = [first(wanted)]
    for attempt, gates in enumerate(answers, start=2):
        tries.append(following(wanted, tries[-1], failed(*gates.split()), attempt))
    return tries


def names(tries: list[Try]) -> list[str]:
    return [each.name for each in tries]


def asked(tried: Try) -> list[str]:
    return [piece.text for piece in tried.asked]


TWO = "You have {count} files, {name}. Nothing here. Delete them?"


def test_the_first_try_asks_for_the_text_as_it_is_without_the_blanks_around_it() -> None:
    tried = first(Wanted("  Hi {name}!\n", "de"))
    assert asked(tried) == ["Hi {name}!"]
    assert join(tried, ["Hallo {name}!"]) == ("  Hallo {name}!\n", ())


def test_the_ladder_is_tokens_then_sentences_then_pieces() -> None:
    wanted = Wanted(TWO, "de", max_attempts=5)
    tries = climb(wanted, "placeholders", "placeholders", "placeholders")
    assert names(tries) == ["native", "tokens", "sentences", "pieces"]
    assert [asked(tried) for tried in tries[1:]] == [
        ["You have <x0/> files, <x1/>. Nothing here. Delete them?"],
        ["You have <x0/> files, <x1/>.", "Nothing here. Delete them?"],
        ["You have", "files", "Nothing here. Delete them?"],
    ]


def test_the_last_attempt_is_the_pieces_which_warn() -> None:
    assert names(climb(Wanted(TWO, "de", max_attempts=3), "tags", "tags"))[-1] == "pieces"
    wanted = Wanted("You have {count} files.", "de", max_attempts=2)
    tried = climb(wanted, "placeholders")[-1]
    assert tried.name == "pieces"
    text, findings = join(tried, ["Sie haben", "Dateien."])
    assert text == "Sie haben {count} Dateien."
    assert [(each.gate, each.severity) for each in findings] == [("pieces", "warn")]


def test_a_single_sentence_goes_from_tokens_to_pieces() -> None:
    wanted = Wanted("You have {count} files.", "de", max_attempts=5)
    assert names(climb(wanted, "tags", "tags")) == ["native", "tokens", "pieces"]


def test_masked_text_that_came_back_as_a_copy_is_asked_for_without_tokens_from_then_on() -> None:
    wanted = Wanted(TWO, "de", max_attempts=5)
    tries = climb(wanted, "placeholders", "copy", "placeholders")
    assert names(tries) == ["native", "tokens", "native", "sentences"]
    assert tries[2].warmer > 0
    assert asked(tries[2]) == [TWO]
    assert asked(tries[3])[0] == "You have {count} files, {name}."


def test_other_gates_are_answered_warmer_with_a_sentence_then_in_halves_then_in_quarters() -> None:
    text = "One is here. Two is here. Three is here. Four is here."
    tries = climb(Wanted(text, "de", max_attempts=5), "loop", "loop", "loop")
    assert names(tries) == ["native", "resample", "split", "split"]
    assert [len(tried.asked) for tried in tries] == [1, 1, 2, 4]
    assert [round(tried.warmer, 1) for tried in tries] == [0.0, 0.2, 0.4, 0.6]
    assert tries[1].correction == ("Translate each part of the text once, without repetitions.")


def test_lost_paragraphs_are_asked_for_one_by_one() -> None:
    wanted = Wanted("One.\nStill one.\n\nTwo.\n\n\nThree.", "de")
    tried = climb(wanted, "paragraphs")[-1]
    assert tried.name == "paragraphs"
    assert join(tried, ["Eins.", "Zwei.", "Drei."])[0] == "Eins.\n\nZwei.\n\n\nDrei."


def test_the_correction_names_language_script_limit_and_missed_terms() -> None:
    terms = (Term("cat", ("mačka",)), Term("dog", ("pas", "pseto")))
    wanted = Wanted("The cat and the dog", "sr", "en", terms=terms, max_chars=20)
    judgement = failed("language", "max_chars", "glossary", text="Neki PAS")
    assert following(wanted, first(wanted), judgement, 2).correction == (
        "Write the whole translation in Serbian in Cyrillic script. Use at most 20 characters. "
        "Translate “cat” as “mačka”."
    )


@pytest.mark.parametrize("style", STYLES)
def test_tokens_come_back_however_they_are_spelled(style: TokenStyle) -> None:
    wanted = Wanted("Hi {name}, you are ACME now.", "de", protect=("ACME",), style=style)
    tried = climb(wanted, "placeholders")[-1]
    answer = f"{style.token(1).upper()} {style.before} ０ {style.after}"
    assert join(tried, [answer]) == ("ACME {name}", ())


def test_missing_repeated_and_unknown_tokens_are_findings_of_their_gates() -> None:
    wanted = Wanted("<b>Hi {name}</b>, it is {time}.", "de")
    tried = climb(wanted, "tags")[-1]
    _, findings = join(tried, ["<x0/> <x1/> <x1/> <x3/> <x8/>"])
    assert {(each.gate, each.severity, each.detail) for each in findings} == {
        ("tags", "fail", "</b> is missing"),
        ("placeholders", "fail", "{name} occurs more than once"),
        ("placeholders", "fail", "1 tokens stand for nothing"),
    }


def test_a_token_that_moved_from_the_end_to_the_front_is_a_warning() -> None:
    tried = climb(Wanted("The file is {name}.", "de"), "placeholders")[-1]
    text, findings = join(tried, ["<x0/> ist die Datei."])
    assert text == "{name} ist die Datei."
    assert [(each.gate, each.severity) for each in findings] == [("placeholders", "warn")]


def test_numbered_tags_in_an_answer_are_respelled_as_in_the_source() -> None:
    tried = first(Wanted("<g1>Hello</g1>, you<x2/>!", "de"))
    assert join(tried, ["< G1 >Hallo</ g1>, du<X2 />!"])[0] == "<g1>Hallo</g1>, du<x2/>!"


def test_words_are_protected_as_whole_words_only() -> None:
    wanted = Wanted("Good Go", "de", do_not_translate=("Go",))
    assert asked(climb(wanted, "placeholders")[-1]) == ["Good <x0/>"]


def test_a_text_of_ten_thousand_spans_is_not_asked_for_in_ten_thousand_pieces() -> None:
    wanted = Wanted("a {b} " * 10_000, "de")
    tried = climb(wanted, "placeholders", "placeholders")[-1]
    assert len(tried.asked) == 1


@UNHURRIED
@given(TEXTS, st.lists(st.sampled_from(GATES), max_size=5), st.sampled_from(STYLES))
def test_answers_that_are_their_pieces_give_the_source(
    text: str, gates: list[str], style: TokenStyle
) -> None:
    assume(UNSPACED.search(text) is None)  # English has blanks where Japanese has none
    wanted = Wanted(text, "en", "en", protect=("ACME",), style=style, max_attempts=9)
    for tried in climb(wanted, *gates):
        assert join(tried, [piece.text for piece in tried.asked])[0] == text


def test_blanks_between_sentences_are_those_of_the_target() -> None:
    wanted = Wanted("You have {a}. It is {b}.", "ja", "en", max_attempts=5)
    tried = climb(wanted, "placeholders", "placeholders")[-1]
    assert join(tried, ["<x0/>あり。", "<x0/>です。"])[0] == "{a}あり。{b}です。"
    wanted = Wanted("{a}があります。{b}です。", "en", "ja", max_attempts=5)
    tried = climb(wanted, "placeholders", "placeholders")[-1]
    assert join(tried, ["There is <x0/>.", "It is <x0/>."])[0] == "There is {a}. It is {b}."


def test_fewer_failed_gates_are_better_then_fewer_warnings_then_the_length() -> None:
    ranked = [
        failed(distance=0.1),
        failed(distance=0.2),
        failed(warned=1),
        failed("copy", warned=1),
        failed("copy", "loop"),
    ]
    for worse in range(1, len(ranked)):
        assert better(ranked[worse], ranked[worse - 1]) is ranked[worse - 1]
        assert better(ranked[worse - 1], ranked[worse]) is ranked[worse - 1]
