"""Tests of the pages of a review: self-contained, safe with any text, split by rows."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from dragoman_producer.review import page
from dragoman_producer.review.page import Review, ReviewRow, RowFinding, pages

REVIEW = Review("run-1", "de", "en", "dragoman review out --apply edits-de-1.json")
HOSTILE = "</script><script>alert(1)</script><!--<script>\u2028${policy}$data"


def row(number: int = 0, source: str = "Hello.", target: str | None = "Hallo.") -> ReviewRow:
    return ReviewRow("a.md", number, "line 1", source, target, "ok")


class Parts(HTMLParser):
    """The scripts and styles of a page, its tags, and its policy."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.loaded: list[str] = []
        self.policy = ""
        self._inside: list[str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = {"script": self.scripts, "style": self.styles}.get(tag)
        if self._inside is not None:
            self._inside.append("")
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        self.loaded += [name for name in ("src", "srcset", "data", "action") if name in given]

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self._inside[-1] += data


def only_page(*rows: ReviewRow) -> Parts:
    [(_, text)] = pages(REVIEW, rows, len(rows))
    return Parts(text)


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_a_page_runs_its_own_script_alone_and_loads_nothing() -> None:
    parts = only_page(row(source=HOSTILE, target=HOSTILE))
    assert len(parts.scripts) == 2
    assert parts.loaded == []
    assert "default-src 'none'" in parts.policy
    assert f"script-src 'sha256-{digest(parts.scripts[1])}'" in parts.policy
    assert f"style-src 'sha256-{digest(parts.styles[0])}'" in parts.policy
    assert "unsafe" not in parts.policy


@given(st.text(), st.one_of(st.none(), st.text()))
def test_any_text_is_in_the_page_as_data(source: str, target: str | None) -> None:
    parts = only_page(row(source=source, target=target))
    [held] = json.loads(parts.scripts[0])["rows"]
    assert (held["source"], held["target"]) == (source, target)


def test_the_script_writes_no_markup() -> None:
    script = only_page().scripts[1]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)


def test_the_reasons_of_a_verdict_are_given() -> None:
    found = ReviewRow(
        "a.md", 3, "line 9", "One.", "Eins.", "warn", (RowFinding("length", "2.1 times"),)
    )
    [held] = json.loads(only_page(found).scripts[0])["rows"]
    assert held["reasons"] == [{"gate": "length", "detail": "2.1 times"}]
    assert held["digest"] == page.digest("One.")


def test_many_segments_become_several_pages_that_name_each_other() -> None:
    rows = [row(number) for number in range(page.MOST_ROWS + 1)]
    made = dict(pages(REVIEW, rows, len(rows)))
    assert list(made) == ["review-de-1.html", "review-de-2.html"]
    first, second = (json.loads(Parts(text).scripts[0]) for text in made.values())
    assert (len(first["rows"]), len(second["rows"])) == (page.MOST_ROWS, 1)
    assert [each["href"] for each in first["pages"]] == [None, "review-de-2.html"]


def test_a_review_without_segments_is_a_page() -> None:
    assert [name for name, _ in pages(REVIEW, [], 0)] == ["review-de.html"]
