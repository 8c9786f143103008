"""Runs over pages with headings: their translations keep the ids of the sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.events import Finished, Planned
from dragoman_producer.runs.links import Links, checked
from dragoman_producer.runs.request import Reading, RunRequest
from dragoman_producer.testing import InMemoryClient
from dragoman_schemas.jobs import Item, TranslationJob

OUT = Path("out")
PAGE = "# Run it\n\nSee [this](#set-up).\n\n## Set up\n"


@pytest.fixture(autouse=True)
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an MkDocs site with one page; it is the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    Path("mkdocs.yml").write_text("markdown_extensions: [attr_list]\n", encoding="utf-8")
    Path("docs/page.md").write_text(PAGE, encoding="utf-8")


def marked(item: Item, _job: TranslationJob) -> str:
    return f"Zz {item.text}"


async def ended(client: InMemoryClient | None = None, files: int = 1, **options: Any) -> int:
    """Translate the site and return the exit status."""
    client = client or InMemoryClient(translate=marked)
    status = -1
    async for event in documents.translate(client, ["docs"], to=["de"], out=OUT, **options):
        if isinstance(event, Planned):
            assert [each.files for each in event.sites] == [files]
        if isinstance(event, Finished):
            status = event.exit_status
    return status


async def ran(client: InMemoryClient | None = None, **options: Any) -> dict[str, Any]:
    """Translate the site and return the report."""
    await ended(client, **options)
    report: dict[str, Any] = json.loads((OUT / "report.json").read_bytes())
    return report


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


def page() -> str:
    return (OUT / "de/page.md").read_text(encoding="utf-8")


async def test_a_translation_keeps_the_ids_in_the_syntax_of_its_site() -> None:
    report = await ran()

    assert page() == (
        "# Zz Run it {#run-it}\n\nZz See [this](#set-up).\n\n## Zz Set up {#set-up}\n"
    )
    assert report["options"]["anchors"] == "auto"
    assert report["sites"] == [
        {"site": "mkdocs", "config": "mkdocs.yml", "anchors": "attributes", "files": 1}
    ]


async def test_another_way_writes_the_page_again_and_sends_nothing() -> None:
    await ran()
    client = InMemoryClient(translate=marked)

    report = await ran(client, anchors="html")

    assert page().startswith('# <a id="run-it"></a>Zz Run it\n')
    assert report["targets"]["de"]["new"] == 0
    assert report["documents"][0]["status"] == "done"


async def test_a_second_run_writes_nothing() -> None:
    await ran()

    report = await ran()

    assert report["documents"][0]["status"] == "unchanged"


async def test_pages_without_ids_are_written_as_before() -> None:
    await ran(anchors="none")

    assert page() == PAGE.replace("Run", "Zz Run").replace("See", "Zz See").replace("Set", "Zz Set")


async def test_a_bilingual_page_has_no_ids() -> None:
    await ran(reading=Reading(bilingual=True))

    assert "{#" not in page()


async def test_a_way_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="attributes"):
        await ran(anchors="attribute")


async def test_the_report_counts_links_that_the_translation_broke() -> None:
    write("docs/other.md", "[x](page.md#set-up) [y](#none)\n")

    whole = await ran(files=2)
    broken = await ran(files=2, anchors="none")

    assert whole["links"] == {"fragments": 3, "dead": 1, "dead_in_source": 1, "new": []}
    assert broken["links"]["dead"] == 3
    assert [(each["line"], each["target"]) for each in broken["links"]["new"]] == [
        (1, "page.md#set-up"),
        (3, "#set-up"),
    ]


@pytest.mark.parametrize(("fails", "status"), [(False, 0), (True, 3)])
async def test_broken_links_fail_a_run_only_if_they_are_to(*, fails: bool, status: int) -> None:
    assert await ended(anchors="none", links_fail=fails) == status


async def test_links_of_translations_by_others_are_checked() -> None:
    await ran()
    request = RunRequest((Path("docs"),), ("de",), OUT)
    assert await checked(request) == (1, Links(fragments=1))

    write("out/de/page.md", "# Los\n\n[x](#set-up)\n")

    _, links = await checked(request)
    assert [(each.line, each.reason) for each in links.new] == [(3, "anchor")]
