"""Tests of the edits that a review page lets a person download."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.review.edits import BadEdits, Edit, parse


def content(**changed: Any) -> bytes:
    edit = {"document": "a.md", "segment": 2, "digest": "d" * 16, "text": "Hallo."}
    edit.update(changed)
    return json.dumps({"schema": 1, "run": "r", "target_lang": "de", "edits": [edit]}).encode()


def test_edits_are_read() -> None:
    read = parse(content(approved=True))
    assert (read.run, read.target_lang) == ("r", "de")
    assert read.edits == (Edit("a.md", 2, "d" * 16, "Hallo.", approved=True),)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "schema"),
        (b'{"schema": 2}', "schema"),
        (b'{"schema": 1, "edits": 5}', "not a list"),
        (b'{"schema": 1, "edits": [1]}', "edit 1 is not an object"),
        (content(segment=True), "edit 1: `segment`"),
        (content(segment=-1), "edit 1: `segment`"),
        (content(text=None), "edit 1: `text`"),
        (content(text="\ud800"), "edit 1: `text`"),
        (b'{"schema": 1, "edits": [], "run": "r"}', "target_lang"),
    ],
)
def test_what_is_not_edits_is_refused_with_its_place(given: bytes, problem: str) -> None:
    with pytest.raises(BadEdits, match=problem):
        parse(given)


@given(st.binary())
def test_any_bytes_are_read_or_refused(given: bytes) -> None:
    with pytest.raises(BadEdits):
        parse(given)
