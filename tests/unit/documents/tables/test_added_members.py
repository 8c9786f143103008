"""JSONL with `--add`: a member for each translation, and everything else byte by byte."""

from __future__ import annotations

import json

import pytest

from dragoman_documents.codec import Options
from dragoman_documents.registry import codec
from support.documents.laws import assert_read_back

JSONL = codec("jsonl")
ADDING = Options("de", fields=("t", "a.t"), add=True)


def test_a_member_with_the_translation_stands_behind_its_source() -> None:
    data = b'{"id": 1,  "t" : " One. ", "n": 1.50}\n\n{"a": {"t": "Two."}}'
    made = assert_read_back(JSONL, data, ["Eins \u201ex\u201c", "Zwei"], ADDING)
    assert made.decode() == (
        '{"id": 1,  "t" : " One. ", "t.de": " Eins \u201ex\u201c ", "n": 1.50}\n\n'
        '{"a": {"t": "Two.", "t.de": "Zwei"}}'
    )


def test_a_text_without_translation_is_there_again_so_that_all_lines_have_the_member() -> None:
    found = JSONL.extract(b'{"t": "One."}\n', ADDING)
    made = JSONL.splice(b'{"t": "One."}\n', found, [None], ADDING)
    assert json.loads(made) == {"t": "One.", "t.de": "One."}


@pytest.mark.parametrize(
    ("line", "left"),
    [
        (b'{"t": "One.", "t.de": 1}', 0),
        (b'{"t": ["One.", "Two."]}', 2),
        (b'"One."', 1),
        (b'["One."]', 1),
    ],
)
def test_a_text_without_room_for_a_member_is_left_and_told_unless_it_has_one(
    line: bytes, left: int
) -> None:
    found = JSONL.extract(line, Options("de", add=True))
    assert found.segments == ()
    assert [(each.kind, each.count) for each in found.remarks] == [("list", left)] * bool(left)


@pytest.mark.parametrize(("name", "place"), [("2", "line 2 (S-1), t"), ("no", "line 2, t")])
def test_the_column_of_ids_may_be_a_number_also_without_a_header(name: str, place: str) -> None:
    headed = codec("csv").extract(b"t,sku\nOne.,S-1\n", Options("de", columns=("t",), ids=(name,)))
    assert [each.place for each in headed.segments] == [place]
    bare = codec("csv").extract(b"One.,S-1\n", Options("de", columns=("1",), ids=("2",)))
    assert [each.place for each in bare.segments] == ["line 1 (S-1), 1"]


def test_the_number_of_the_column_of_ids_makes_no_header_of_a_row_that_holds_it() -> None:
    bare = codec("csv").extract(b"1,One.\n2,Two.\n", Options("de", columns=("2",), ids=("1",)))
    assert [each.place for each in bare.segments] == ["line 1 (1), 2", "line 2 (2), 2"]


def test_a_first_row_that_holds_the_name_of_the_ids_is_a_header() -> None:
    options = Options("de", columns=("2",), ids=("sku.",))
    found = codec("csv").extract(b"sku.,It is.\nS-1,One.\n", options)
    assert [(each.text, each.place) for each in found.segments] == [
        ("One.", "line 2 (S-1), It is.")
    ]


def test_the_place_of_a_row_names_its_id() -> None:
    options = Options("de", fields=("t",), ids=("sku",))
    [found] = JSONL.extract(b'{"sku": 17, "t": "One."}', options).segments
    assert found.place == "line 1 (17), t"
    table = codec("csv").extract(b"sku,t\nS-1,One.\n", Options("de", columns=("t",), ids=("sku",)))
    assert [each.place for each in table.segments] == ["line 2 (S-1), t"]
