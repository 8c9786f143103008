"""Files that are configuration by their names, in a run over a folder and named by the user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.configuration import is_configuration
from dragoman_producer.runs.request import Reading
from dragoman_producer.testing import InMemoryClient


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("package.json", True),
        ("web/tsconfig.build.json", True),
        ("Chart.yaml", True),
        ("requirements-dev.txt", True),
        ("App/Images.xcassets/Contents.json", True),
        ("Images.xcassets/Group/AppIcon.appiconset/Contents.json", True),
        ("App/AppIcon.icon/icon.json", True),
        ("App/Images.xcassets/Tips.dataset/tips.json", False),
        ("app/schemas/org.tasks.data.Database/39.json", True),
        ("app/schemas/39.json", False),
        ("Podspecs/Realm.podspec.json", True),
        ("docs/contents.json", False),
        ("icons/icon.json", False),
        ("my-package.json", False),
        ("package.json.md", False),
        ("locales/en.json", False),
        ("requirements/notes.txt", False),
    ],
)
def test_configuration_is_known_by_its_name_or_place(path: str, *, expected: bool) -> None:
    assert is_configuration(path) is expected


def write() -> None:
    Path("in").mkdir()
    Path("in/package.json").write_text('{"description": "Some words"}')
    Path("in/_category_.json").write_text(
        '{"label": "All guides", "link": {"type": "generated index", "title": "Our guides"}}'
    )


def skipped() -> tuple[str, str, str]:
    found, *_ = json.loads(Path("out/report.json").read_text())["documents"]
    return found["path"], found["status"], found["reason"]


async def test_configuration_is_skipped_in_a_folder_and_read_if_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write()

    async def texts(*paths: str, **more: Any) -> list[str]:
        client = InMemoryClient()
        given = documents.translate(client, paths, to=["de"], out="out", reading=Reading(**more))
        async for _ in given:
            pass
        return sorted(item.text for job in client.submitted for item in job.items)

    assert await texts("in") == ["All guides", "Our guides"]
    assert skipped() == ("package.json", "skipped", "configuration")
    assert await texts("in/package.json") == ["Some words"]
