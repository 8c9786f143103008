"""Remarks of a document: one line for each kind, with a count and the first place."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from dragoman_documents.codec import LEFT, Remark, RemarkKind
from dragoman_producer.runs.child_rows import Remarks

ROOT = Path(__file__).parents[4]


def test_remarks_of_one_kind_are_one_line_whatever_they_say() -> None:
    remarks = Remarks()
    remarks.add(Remark("line 3", "one thing", "message"), Remark("line 1", "names", "name", 2))
    remarks.add(Remark("line 9", "another thing", "message", 4))
    assert remarks.rows() == [("line 3", "one thing", "message", 5), ("line 1", "names", "name", 2)]


def test_the_page_explains_every_kind() -> None:
    page = (ROOT / "docs/how-to/translate-documents.md").read_text("utf-8")
    kinds = get_args(RemarkKind)
    assert set(kinds) >= LEFT
    assert [kind for kind in kinds if f"`{kind}`" not in page] == []
