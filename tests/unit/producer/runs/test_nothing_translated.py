"""Documents without a segment: those that have no text, and those whose text is left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.events import Finished
from dragoman_producer.runs.request import Reading
from dragoman_producer.testing import InMemoryClient

LEFT = {
    "html.md": ("> <p>Text</p>\n\n***\n\n> <p>More text</p>\n", 2),
    "front.md": ("---\ntitle: a: b\n---\n", 1),
    "icu.arb": ('{"f": "{n, plural, one {# day} other {# days}"}', 1),
    "half.json": ('{"a": "Half a character \\ud800", "b": "Another \\ud800"}', 2),
}
DONE = {
    "code.md": "```\nText\n```\n",
    "other.json": '{"b": "Not selected"}',
    "chosen.json": '{"a": "Selected"}',
    "some.md": "One line.\n\n> <p>Text</p>\n",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()


def write(files: Mapping[str, str]) -> None:
    for name, content in files.items():
        Path("in", name).write_text(content, encoding="utf-8")


def output(name: str) -> str:
    return Path("out/de", name).read_text("utf-8")


def reported() -> dict[str, Any]:
    """Return the documents of the report by path."""
    documents = json.loads(Path("out/report.json").read_bytes())["documents"]
    return {each["path"]: each for each in documents}


async def ran(**more: Any) -> tuple[int, dict[str, Any]]:
    """Translate `in`; return the exit status and the documents of the report by path."""
    events = [
        event
        async for event in documents.translate(
            InMemoryClient(), ["in"], to=["de"], out="out", reading=Reading(**more)
        )
    ]
    assert isinstance(events[-1], Finished)
    return events[-1].exit_status, reported()


async def test_a_document_whose_text_is_all_left_is_partial_on_every_run() -> None:
    write({name: content for name, (content, _) in LEFT.items()})
    for _ in range(2):
        status, found = await ran()
        assert status == 3
        for name, (content, count) in LEFT.items():
            each = found[name]
            assert (each["status"], each["reason"]) == ("partial", "nothing_translated"), name
            assert [issue["count"] for issue in each["issues"]] == [count]
            assert output(name) == content


async def test_a_document_without_text_or_with_some_translated_is_done() -> None:
    write(DONE)
    status, found = await ran(keys=("a",))
    assert status == 0
    assert {each["status"] for each in found.values()} == {"done"}
    remarks = [(i["kind"], i["count"], i["place"]) for i in found["some.md"]["issues"]]
    assert ("html", 1, "line 3") in remarks
