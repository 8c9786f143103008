"""Tests of what XLIFF says of an inline code."""

from __future__ import annotations

import pytest

from dragoman_documents.codec import InlineCode
from dragoman_producer.review.xliff import described, type_of


@pytest.mark.parametrize(
    ("opening", "kind"),
    [
        ("**", "bold"),
        ("*", "italic"),
        ("[", "link"),
        ("![", "image"),
        ("`d`", "x-code"),
        ("$x$", "x-formula"),
        ("<b>", "bold"),
        ("<a href='x'>", "link"),
        ("<img src=a>", "image"),
        ("<br>", "lb"),
        ("<kbd>k</kbd>", "x-kbd"),
        ('<w:hyperlink r:id="rId4">', "link"),
        ("<w:rPr><w:b/></w:rPr>", "bold"),
        ('<text:span text:style-name="T1">', "x-span"),
        ("&copy;", "x-code"),
    ],
)
def test_codes_have_the_type_of_their_markup(opening: str, kind: str) -> None:
    assert type_of(InlineCode(opening)) == kind


def test_what_a_code_spells_is_shown_as_an_attribute() -> None:
    shown = described(InlineCode('<a href="x">', "</a>"))
    assert shown == """ ctype="link" equiv-text='&lt;a href="x"&gt;...&lt;/a&gt;'"""


def test_a_long_code_is_cut_and_control_characters_are_left_out() -> None:
    shown = described(InlineCode("\x01" + "x" * 10_000))
    assert len(shown) < 200
    assert "\x01" not in shown
