"""Outputs that stand in the folder, and runs whose outputs would lack translations of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.events import Finished
from dragoman_producer.runs.request import Translation
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import Item, TranslationJob

OUTPUT = Path("out/de/a.lines")
GERMAN = "[de] One.\n[de] Two.\n"
WRONG = Translation(profile="nope")


@pytest.fixture(autouse=True)
async def _run(line_formats: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Translate a document completely."""
    monkeypatch.chdir(tmp_path)
    write("One.\nTwo.\n")
    assert await ran() == (0, "done", None)
    assert output() == GERMAN


def write(content: str) -> None:
    Path("a.lines").write_text(content)


def remove() -> None:
    OUTPUT.unlink()


def output() -> str:
    return OUTPUT.read_text()


def reported() -> tuple[str, str | None]:
    [document] = json.loads(Path("out/report.json").read_text())["documents"]
    return document["status"], document["reason"]


async def ran(*failing: str, **more: Any) -> tuple[int, str, str | None]:
    """Translate the document; return the exit status, and its status and reason."""

    def answer(item: Item, job: TranslationJob) -> str:
        if item.text in failing:
            raise ItemFailed(FailureCode.UNKNOWN_PROFILE)
        return f"[{job.target_lang}] {item.text}"

    client = InMemoryClient(answer)
    given = documents.translate(client, ["a.lines"], to=["de"], out="out", **more)
    events = [event async for event in given]
    assert isinstance(events[-1], Finished)
    return events[-1].exit_status, *reported()


async def test_a_complete_output_is_kept_where_other_settings_would_lose_a_translation() -> None:
    for _ in range(2):
        assert await ran("One.", translation=WRONG) == (3, "failed", "poorer")
        assert output() == GERMAN
    assert await ran() == (0, "unchanged", "no_target_change")
    assert await ran("One.", translation=WRONG, replace_poorer=True) == (3, "partial", None)
    assert output() == "One.\n[de] Two.\n"


async def test_translations_of_another_engine_on_this_host_do_not_count() -> None:
    for engine, expected in (("echo", "done"), ("echo", "unchanged"), ("model", "done")):
        found = await ran(translation=Translation(engine=engine))
        assert found[:2] == (0, expected), engine
    failing = Translation(engine="another")
    assert await ran("One.", translation=failing) == (3, "failed", "poorer")
    again = await ran(translation=Translation(engine="model"))
    assert again == (0, "unchanged", "no_target_change")


async def test_a_complete_output_is_kept_where_a_refresh_would_lose_a_translation() -> None:
    refresh = Translation(memory="refresh")
    assert await ran("One.", "Two.", translation=refresh) == (3, "failed", "poorer")
    assert await ran("One.") == (3, "failed", "poorer")
    assert await ran("One.", overwrite=True) == (3, "failed", "poorer")
    assert output() == GERMAN
    assert await ran() == (0, "done", None)


async def test_an_output_follows_its_source_and_new_texts_may_fail() -> None:
    write("Two.\n")
    assert await ran() == (0, "done", None)
    assert output() == "[de] Two.\n"
    write("Two.\nNew.\n")
    assert await ran("New.") == (3, "partial", None)
    assert output() == "[de] Two.\nNew.\n"


async def test_a_text_that_stands_translated_is_kept_though_the_document_has_changed() -> None:
    write("Two.\nNew.\n")
    assert await ran("Two.", "New.", translation=WRONG) == (3, "failed", "poorer")
    assert output() == GERMAN
    assert await ran("New.", translation=WRONG) == (3, "partial", None)
    assert output() == "[de] Two.\nNew.\n"
    remove()
    assert await ran("Two.", translation=Translation(profile="none")) == (3, "partial", None)
    assert output() == "Two.\n[de] New.\n"
