"""Tests of a review as an XLIFF file."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_documents.codec import InlineCode
from dragoman_producer.review import xliff
from dragoman_producer.review.edits import BadEdits, Edit
from dragoman_producer.review.page import Review, ReviewRow, RowFinding, digest

REVIEW = Review("run-1", "de", "en", "")


def row(source: str = "Hello.", target: str | None = "Hallo.", **more: object) -> ReviewRow:
    return ReviewRow("a.md", 0, "line 1", source, target, "ok", **more)  # type: ignore[arg-type]


def file_of(*rows: ReviewRow) -> bytes:
    return "".join(xliff.written(REVIEW, rows)).encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_or_is_named_as_left_out(text: str) -> None:
    given = row(target=text)
    edits = xliff.parse(file_of(given)).edits
    if xliff.left_out([given]):
        assert edits == ()
    else:
        # XML reads every newline as one.
        assert [edit.text for edit in edits] == [re.sub("\r\n?", "\n", text)]


def test_tags_are_elements_and_come_back() -> None:
    text = "Press <g1>Save <x2/></g1> & <b>go</b>."
    made = file_of(row("<g1>a<x2/></g1>", text))
    assert b'<g id="1">Save <x id="2"/></g> &amp; &lt;b&gt;' in made
    assert xliff.parse(made).edits[0].text == text


def test_tags_say_what_they_stand_for() -> None:
    text = "<g1>a<x2/></g1>"
    codes = (InlineCode("**", "**"), InlineCode("`b`"))
    made = file_of(row(text, text, codes=codes)).decode()
    assert made.count('<g id="1" ctype="bold" equiv-text="**...**">a') == 2
    assert made.count('<x id="2" ctype="x-code" equiv-text="`b`"/></g>') == 2
    assert xliff.parse(made.encode()).edits[0].text == text


def test_a_unit_tells_its_segment_state_limit_and_reasons() -> None:
    found = ReviewRow(
        "d/b.md", 7, "line 3", "One.", "Eins.", "warn", (RowFinding("length", "2"),), "new", 9
    )
    made = file_of(found).decode()
    assert f'<trans-unit id="7-{digest("One.")}" resname="line 3" maxwidth="9"' in made
    assert '<target state="needs-review-translation">' in made
    assert '<note from="dragoman">length: 2</note>' in made
    assert xliff.parse(made.encode()).edits == (
        Edit("d/b.md", 7, digest("One."), "Eins.", approved=False),
    )


def test_a_segment_without_a_translation_is_no_edit() -> None:
    assert xliff.parse(file_of(row(target=None))).edits == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'state="translated"', b'state="final"'),
        (b"<trans-unit ", b'<trans-unit approved="yes" '),
    ],
)
def test_what_a_person_signed_off_is_approved(before: bytes, after: bytes) -> None:
    [edit] = xliff.parse(file_of(row()).replace(before, after)).edits
    assert edit.approved


def test_marks_of_an_editor_are_ignored() -> None:
    made = file_of(row()).replace(b"Hallo.", b'<mrk mtype="seg">Hallo</mrk>.')
    assert xliff.parse(made).edits[0].text == "Hallo."


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (b"</xliff>", b"", "line .*not XML.*give the edits of a review page, or"),
        (b"UTF-8", b"no-such-encoding", "encoding"),
        (b"UTF-8", b"utf-7", "encoding"),
        (b'target-language="de"', b"", "target-language"),
        (b'<trans-unit id="0', b'<trans-unit id="x', "line 5: .*ids must stay"),
        (b"Hallo.", b"<ph id='1'/>", "line 7: <ph>"),
        (b"<xliff ", b"<!DOCTYPE a [<!ENTITY b 'c'>]><xliff ", "entity"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(before: bytes, after: bytes, problem: str) -> None:
    made = file_of(row())
    assert before in made
    with pytest.raises(BadEdits, match=problem):
        xliff.parse(made.replace(before, after))


def test_two_target_languages_are_refused() -> None:
    other = Review("run-1", "fr", "en", "")
    both = file_of(row()).replace(b"</xliff>", b"")
    more = "".join(xliff.written(other, [row()])).encode().partition(b'1.2">')[2]
    with pytest.raises(BadEdits, match="several target languages"):
        xliff.parse(both + more)
