"""Tests of ICU messages in XLIFF, as Angular extracts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.catalogs.xliff.codec import CODECS
from dragoman_documents.codec import Options
from dragoman_documents.putting_back import put_back
from support.documents.laws import (
    GERMAN,
    assert_identity,
    assert_linear,
    assert_read_back,
    tagged,
)

XLIFF = CODECS["xliff"]
X = '<x id="INTERPOLATION" equiv-text="{{minutes}}"/>'
MINUTES = (
    f"{{VAR_PLURAL, plural, =0 {{just now}} =1 {{one minute ago}} other {{{X} minutes ago by "
    "{VAR_SELECT, select, male {him} other {them}}}}"
)
BOLD = '{VAR_PLURAL, plural, =1 {<g id="1">one</g> file} other {# <g id="1">files</g>}}'


def first(source: str, target: str = "") -> bytes:
    unit = f'<trans-unit id="1"><source>{source}</source>{target}</trans-unit>'
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        f'<file target-language="de" source-language="en"><body>{unit}</body></file></xliff>'
    ).encode()


def second(source: str) -> bytes:
    segment = f"<segment><source>{source}</source></segment>"
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en"'
        f' trgLang="de"><file id="f"><unit id="1">{segment}</unit></file></xliff>'
    ).encode()


def target_of(output: bytes) -> str:
    return output.decode().partition("<target")[2].partition(">")[2].partition("</target>")[0]


def test_each_sentence_is_a_segment_and_the_target_is_one_message() -> None:
    found = assert_identity(XLIFF, first(MINUTES))
    assert [(each.text, each.place) for each in found.segments] == [
        ("just now", "unit 1, male"),
        ("one minute ago", "unit 1, male"),
        ("<x1/> minutes ago by him", "unit 1, male"),
        ("just now", "unit 1, other"),
        ("one minute ago", "unit 1, other"),
        ("<x1/> minutes ago by them", "unit 1, other"),
    ]
    texts = ["jetzt", "vor 1 min", "von ihm vor <x1/> min", "jetzt", "vor 1 min", "<x1/> & x <"]
    output = target_of(assert_read_back(XLIFF, first(MINUTES), texts))
    assert output == (
        f"{{VAR_SELECT, select, male {{{{VAR_PLURAL, plural, =0 {{jetzt}} =1 {{vor 1 min}} other "
        f"{{von ihm vor {X} min}}}}}} other {{{{VAR_PLURAL, plural, =0 {{jetzt}} =1 {{vor 1 min}} "
        f"other {{{X} &amp; x &lt;}}}}}}}}"
    )


def test_forms_are_those_of_the_target_language() -> None:
    found = XLIFF.extract(first(BOLD), Options("pl", "en"))
    assert [each.plural for each in found.segments] == [None, "few", "many", "other"]
    assert_read_back(XLIFF, first(BOLD), tagged(found), Options("pl", "en"))


def test_a_target_is_read_as_the_sentences_that_it_holds() -> None:
    texts = ["jetzt", "vor 1 min", "von ihm vor <x1/> min", "jetzt", "vor 1 min", "<x1/> min"]
    output = assert_read_back(XLIFF, first(MINUTES), texts)
    again = assert_identity(XLIFF, output)
    assert [each.target for each in again.segments] == texts
    assert {each.state for each in again.segments} == {"done"}


@pytest.mark.parametrize("target", ["<target>x</target>", '<target state="new">{a</target>'])
def test_another_target_is_no_sentences_and_stays_without_translations(target: str) -> None:
    found = assert_identity(XLIFF, first(MINUTES, target))
    assert {each.target for each in found.segments} == {None}
    assert_read_back(XLIFF, first(MINUTES, target), [f"x {each.text}" for each in found.segments])


def test_a_message_is_written_whole_or_not_at_all() -> None:
    found = XLIFF.extract(first(MINUTES), GERMAN)
    done = put_back(XLIFF, first(MINUTES), found, ["x", *[None] * 5], GERMAN)
    assert (done.incomplete, done.changed) == ([0], [])
    assert b"<target" not in done.data


@pytest.mark.parametrize(
    "data", [first(BOLD), second(BOLD.replace("<g", "<pc").replace("</g", "</pc"))]
)
def test_pairs_of_elements_stay_nested(data: bytes) -> None:
    found = XLIFF.extract(data, GERMAN)
    assert [each.text for each in found.segments] == ["<x1/>one<x2/> file", "21 <x1/>files<x2/>"]
    assert_read_back(XLIFF, data, ["eine <x1/>Datei<x2/>", "<x1/>21<x2/> Dateien"])
    done = put_back(XLIFF, data, found, ["<x2/>eine<x1/>", "21 <x1/>Dateien<x2/>"], GERMAN)
    assert b"<target" not in done.data


def test_drafts_and_states_are_those_of_the_unit() -> None:
    found = XLIFF.extract(second(MINUTES), GERMAN)
    texts = [f"x {each.text}" for each in found.segments]
    output = XLIFF.splice(second(MINUTES), found, texts, Options("de", "en", drafts=frozenset({4})))
    assert output.count(b"<target>") == 1
    found = XLIFF.extract(first(MINUTES), GERMAN)
    output = XLIFF.splice(first(MINUTES), found, texts, Options("de", "en", drafts=frozenset({4})))
    assert b'<target state="needs-review-translation">' in output


def test_a_message_that_cannot_be_read_is_left_with_a_remark() -> None:
    found = XLIFF.extract(first("{a, plural, one {x y}"), GERMAN)
    assert not found.segments
    assert [each.kind for each in found.remarks] == ["message"]


@given(st.permutations(["x", " <x1/>", " y", "'", "&", "{", " #"]).map("".join))
def test_any_sentence_of_a_message_reads_back(text: str) -> None:
    source = f"{{n, plural, =1 {{one}} other {{many {X}}}}}"
    found = XLIFF.extract(first(source), GERMAN)
    done = put_back(XLIFF, first(source), found, ["z", f"z{text}z"], GERMAN)
    assert not done.changed


def test_many_elements_take_linear_time() -> None:
    def call(size: int) -> Callable[[], object]:
        many = "".join(f'<x id="{number}"/>' for number in range(size))
        data = first(f"{{n, plural, one {{a b}} other {{c {many}}}}} d")
        return lambda: XLIFF.extract(data, GERMAN)

    assert_linear(call, 100)
