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
    "line", [b'{"t": "One.", "t.de": "Eins."}', b'{"t": ["One."]}', b'"One."', b'["One."]']
)
def test_nothing_is_added_where_the_member_is_there_or_cannot_be(line: bytes) -> None:
    assert JSONL.extract(line, Options("de", add=True)).segments == () or b"t.de" in line
    assert [each.text for each in JSONL.extract(line, ADDING).segments] == []


def test_the_place_of_a_row_names_its_id() -> None:
    options = Options("de", fields=("t",), ids=("sku",))
    [found] = JSONL.extract(b'{"sku": 17, "t": "One."}', options).segments
    assert found.place == "line 1 (17), t"
    table = codec("csv").extract(b"sku,t\nS-1,One.\n", Options("de", columns=("t",), ids=("sku",)))
    assert [each.place for each in table.segments] == ["line 2 (S-1), t"]
