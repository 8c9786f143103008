"""Runs over a folder whose manifest an older version wrote: `tests/data/manifests`.

`in` and `out` are what its run read and wrote, `manifest.sql` is its database as text. One
translation is a person's edit that no output has yet.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman_documents import registry
from dragoman_documents.recognition import format_of
from dragoman_producer import documents
from dragoman_producer.manifest import schema
from dragoman_producer.runs.events import DocumentEnded
from dragoman_producer.testing import InMemoryClient

STORED = Path(__file__).parents[3] / "data" / "manifests"
FILES = 8
OUT = Path("out")
MANIFEST = OUT / ".dragoman" / "manifest.db"


@pytest.fixture(params=sorted(path.name for path in STORED.iterdir()))
def stored(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with `in`, `out` and its manifest; it is the working folder."""
    shutil.copytree(STORED / request.param, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    MANIFEST.parent.mkdir()
    with closing(sqlite3.connect(MANIFEST)) as db:
        db.executescript((tmp_path / "manifest.sql").read_text(encoding="utf-8"))
        db.execute("PRAGMA user_version=1")
    return tmp_path


async def ran(client: InMemoryClient) -> dict[tuple[str, str], str]:
    """Translate `in` as the stored run did; return how each document ended."""
    events = documents.translate(client, ["in"], to=["de", "pl"], out=OUT)
    ended = [event async for event in events if isinstance(event, DocumentEnded)]
    return {(event.path, event.target_lang): event.status for event in ended}


def sent(client: InMemoryClient) -> list[str]:
    return sorted(item.text for job in client.submitted for item in job.items)


def version(manifest: Path = MANIFEST) -> Any:
    with closing(sqlite3.connect(manifest)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


def outputs() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for lang in ("de", "pl") for path in of(OUT / lang)}


def _is_read_otherwise_since(path: str) -> bool:
    """Return whether a format is read or written otherwise than when the manifest was stored."""
    return registry.version(format_of(Path("in") / path) or "") > 1


def change_the_sources() -> None:
    notes = Path("in/notes.txt")
    notes.write_text(notes.read_text(encoding="utf-8").replace("Another", "A changed"), "utf-8")
    Path("in/new.txt").write_text("A new line.\n\nFirst item\n", encoding="utf-8")


def of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("stored")
async def test_nothing_is_sent_again_and_every_output_stays_but_for_the_edit() -> None:
    client, before = InMemoryClient(), outputs()
    ended = await ran(client)
    assert sent(client) == []
    assert {each for each, status in ended.items() if status != "unchanged"} == {
        ("guide.md", "de"),
        *(each for each in ended if _is_read_otherwise_since(each[0])),
    }
    after = outputs()
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {"out/de/guide.md", "out/pl/guide.md"}  # its lines are where they were
    assert b"- Der zweite Punkt\n" in after["out/de/guide.md"]
    assert version() == schema.VERSION
    assert not list(MANIFEST.parent.glob("*.unreadable-*"))


@pytest.mark.usefixtures("stored")
async def test_only_new_and_changed_texts_are_sent_and_they_are_counted() -> None:
    change_the_sources()
    client = InMemoryClient()
    await ran(client)
    assert sent(client) == ["A changed line.", "A changed line.", "A new line.", "A new line."]
    counts = json.loads((OUT / "report.json").read_bytes())["targets"]
    assert [counts[lang]["new"] for lang in ("de", "pl")] == [2, 2]


@pytest.mark.usefixtures("stored")
async def test_one_run_writes_the_outputs_of_an_older_codec_again_and_sends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await ran(InMemoryClient())
    newer = registry._FORMATS["markdown"]._replace(version=registry.version("markdown") + 1)
    monkeypatch.setitem(registry._FORMATS, "markdown", newer)
    client = InMemoryClient()
    ended = await ran(client)
    again = {key for key, status in ended.items() if status == "done"}
    assert again == {("guide.md", "de"), ("guide.md", "pl")}
    assert set((await ran(client)).values()) == {"unchanged"}
    assert sent(client) == []


@pytest.mark.usefixtures("stored")
async def test_a_manifest_of_a_later_version_is_moved_aside() -> None:
    with closing(sqlite3.connect(MANIFEST)) as db:
        db.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    await ran(InMemoryClient())
    assert version(MANIFEST.with_name("manifest.db.unreadable-1")) == schema.VERSION + 1
    assert version() == schema.VERSION
