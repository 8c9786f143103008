"""Runs over pages of sites: what names the site, and who learns of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.events import DocumentEnded, Planned
from dragoman_producer.runs.request import Reading
from dragoman_producer.testing import InMemoryClient

OUT = Path("out")


@pytest.fixture(autouse=True)
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a Docusaurus site with a page of MDX and a catalog; it is the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    Path("docusaurus.config.js").write_text("", encoding="utf-8")
    Path("docs/page.md").write_text("export const a = 1\n\nText here.\n", encoding="utf-8")
    Path("docs/menu.json").write_text('{"a": "Text here."}', encoding="utf-8")


async def ran(
    site: str | None = None, source: str = "docs"
) -> tuple[Mapping[str | None, int], Any]:
    """Translate the site; return its files by site, and the documents of the report by path."""
    events = [
        event
        async for event in documents.translate(
            InMemoryClient(), [source], to=["de"], out=OUT, reading=Reading(site=site)
        )
    ]
    [planned] = [event for event in events if isinstance(event, Planned)]
    report = json.loads((OUT / "report.json").read_bytes())["documents"]
    statuses = {event.path: event.status for event in events if isinstance(event, DocumentEnded)}
    return {each.site: each.files for each in planned.sites}, {
        each["path"]: (each["site"], each["format"], statuses.get(each["path"])) for each in report
    }


async def test_the_report_names_the_site_of_markdown_alone() -> None:
    sites, found = await ran()
    assert sites == {"docusaurus": 1}
    assert found == {
        "page.md": ("docusaurus", "mdx", "done"),
        "menu.json": (None, "json", "done"),
    }
    with closing(sqlite3.connect(OUT / ".dragoman" / "manifest.db")) as db:
        rows = db.execute("SELECT path, site FROM file ORDER BY path").fetchall()
    assert rows == [("menu.json", None), ("page.md", "docusaurus")]


async def test_another_site_reads_its_pages_anew_and_nothing_else() -> None:
    await ran()
    sites, found = await ran("mkdocs")
    assert sites == {"mkdocs": 1}
    assert found["page.md"] == ("mkdocs", "markdown", "done")
    assert found["menu.json"] == (None, "json", "unchanged")


async def test_an_unknown_site_is_refused() -> None:
    with pytest.raises(ValueError, match="docusaurus"):
        await ran("docusaurs")
