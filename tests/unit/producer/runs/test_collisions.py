"""Files that stand where outputs are to go: found before anything is sent."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.events import Finished, Noted
from dragoman_producer.runs.request import Translation
from dragoman_producer.testing import InMemoryClient
from support.processes.waiting import patient

FILES = {"a.lines": "One.\n", "b.lines": "Two.\n", "markup.lines": "# nothing to send\n"}


@pytest.fixture(autouse=True)
async def _translated(line_formats: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write()
    assert await ran() == (0, ["One.", "Two."])


def write() -> None:
    Path("in").mkdir()
    for name, content in FILES.items():
        Path("in", name).write_text(content)


async def ran(**more: Any) -> tuple[int, list[str]]:
    """Translate the files; return the exit status, and the texts that were sent."""
    client = InMemoryClient()
    given = documents.translate(client, ["in"], to=["de"], out="out", **more)
    events = [event async for event in given]
    assert isinstance(events[-1], Finished)
    texts = sorted(item.text for job in client.submitted for item in job.items)
    return events[-1].exit_status, texts


def reasons() -> dict[str, str | None]:
    found = json.loads(Path("out/report.json").read_text())["documents"]
    return {each["path"]: each["reason"] for each in found}


def edit(path: str) -> None:
    Path(path).write_text("Edited.\n")


def lose(*names: str) -> None:
    for name in names:
        path = Path("out", name)
        shutil.rmtree(path) if path.is_dir() else path.unlink()


async def test_the_report_shows_the_outputs_of_a_lost_manifest() -> None:
    lose(".dragoman")
    assert await ran() == (0, ["One.", "Two."])


async def test_an_edited_output_is_not_paid_for_again_though_the_manifest_is_lost() -> None:
    lose(".dragoman")
    edit("out/de/a.lines")
    assert await ran() == (3, ["Two."])
    assert reasons()["a.lines"] == "collision"


async def test_without_manifest_and_report_nothing_is_sent_and_equal_bytes_are_accepted() -> None:
    lose(".dragoman", "report.json")
    assert await ran() == (3, [])
    assert reasons() == {
        "a.lines": "collision", "b.lines": "collision", "markup.lines": "nothing_to_translate",
    }  # fmt: skip
    assert await ran(overwrite=True) == (0, ["One.", "Two."])


async def test_an_edited_output_is_not_paid_for_when_its_source_changes_or_is_refreshed() -> None:
    edit("out/de/a.lines")
    edit("in/a.lines")
    assert await ran() == (3, [])
    refresh = Translation(memory="refresh")
    assert await ran(translation=refresh) == (3, ["Two."])


async def test_a_manifest_that_is_begun_anew_is_said_before_anything_else() -> None:
    lose(".dragoman")
    edit_manifest()
    events = documents.translate(InMemoryClient(), ["in"], to=["de"], out="out")
    async with aclosing(events), asyncio.timeout(patient(60)):
        assert isinstance(await anext(events), Noted)


def edit_manifest() -> None:
    Path("out/.dragoman").mkdir()
    Path("out/.dragoman/manifest.db").write_bytes(b"no database" * 1_000)
