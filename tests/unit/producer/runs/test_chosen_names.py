"""Names of columns, members and keys that documents do not have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman_documents import registry
from dragoman_documents.codec import Options
from dragoman_documents.recognition import format_of
from dragoman_producer import documents
from dragoman_producer.runs import chosen
from dragoman_producer.runs.chosen import in_no_document
from dragoman_producer.runs.request import NothingNamed, Reading
from dragoman_producer.testing import InMemoryClient

FILES = {
    "a.jsonl": '{"id": 1, "description": "A red shirt.", "note": null}\n',
    "a.json": '{"menu": {"open": "Open it"}, "list": [{"label": "One cat"}]}',
    "a.yaml": "menu:\n  open: Open it\n",
    "a.md": "---\ntitle: A title\nhero:\n  text: Two words\ntags: [one tag]\n---\n\nText.\n",
    "a.toml.md": '+++\ntitle = "A title"\nlead = "Two words"\n+++\n\nText.\n',
    "a.csv": "id,name\n1,One cat\n",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(files: dict[str, str]) -> None:
    for name, content in files.items():
        Path(name).write_text(content)


def read(path: str) -> str | None:
    return Path(path).read_text() if Path(path).exists() else None


async def ran(*paths: str, dry_run: bool = False, **more: Any) -> list[str]:
    """Translate files; return the texts that were sent."""
    client, reading = InMemoryClient(), Reading(**more)
    async for _ in documents.translate(
        client, paths, to=["de"], out="out", reading=reading, dry_run=dry_run
    ):
        pass
    return [item.text for job in client.submitted for item in job.items]


def looked_into(path: str, **more: Any) -> chosen.ReadDocument:
    """Return what is known of a document of FILES after it was read."""
    codec, data = registry.codec(format_of(Path(path)) or ""), FILES[path].encode()
    options = Options("de", **more)
    found = chosen.ChosenNames(codec, options)
    segments = codec.extract(data, options).segments
    found.look(data, segments)
    return chosen.ReadDocument(
        path, codec.name, len(segments), refused=False, chosen=found.unmatched()
    )


def remarks() -> dict[str, list[tuple[str, int]]]:
    """Return kind and count of the remarks of each document."""
    found = json.loads(Path("out/report.json").read_text())["documents"]
    return {each["path"]: [(i["kind"], i["count"]) for i in each["issues"]] for each in found}


@pytest.mark.parametrize(
    ("path", "option", "name", "has"),
    [
        ("a.jsonl", "fields", "descr", "description"),
        ("a.jsonl", "fields", "description.id", "description"),
        ("a.json", "keys", "menu", "menu.open"),
        ("a.json", "keys", "list.*.lable", "list.*.label"),
        ("a.yaml", "keys", "open", "menu.open"),
        ("a.md", "keys", "heroo.**", "hero.text"),
        ("a.toml.md", "keys", "leed", "lead"),
        ("a.csv", "columns", "nme", "name"),
        ("a.csv", "columns", "3", "name"),
        ("a.csv", "fields", "name", "jsonl"),
    ],
)
def test_a_name_that_no_document_has_is_told_with_names_that_exist(
    path: str, option: str, name: str, has: str
) -> None:
    more: dict[str, Any] = {option: (name,)}
    why = in_no_document([looked_into(path, **more)], Reading(**more))
    assert why is not None
    assert name in why
    assert has in why


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("a.jsonl", {"fields": ("description", "note")}),
        ("a.json", {"keys": ("menu.*", "**.label")}),
        ("a.yaml", {"keys": ("**.open",)}),
        ("a.md", {"keys": ("hero.**", "tags", "title")}),
        ("a.csv", {"columns": ("name", "2")}),
    ],
)
def test_names_that_exist_are_taken_also_those_without_text(
    path: str, more: dict[str, Any]
) -> None:
    reading = looked_into(path, **more)
    assert reading.chosen is None
    assert in_no_document([reading], Reading(**more)) is None


def test_one_wrong_name_of_several_is_told() -> None:
    names = ("description", "descr")
    why = in_no_document([looked_into("a.jsonl", fields=names)], Reading(fields=names))
    assert why is not None
    assert why.startswith("--field descr:")


async def test_a_run_whose_documents_lack_a_name_sends_and_writes_nothing() -> None:
    write(FILES)
    for dry_run in (False, True):  # the second time the document is known
        with pytest.raises(NothingNamed, match="description"):
            await ran("a.jsonl", fields=("descr",), dry_run=dry_run)
    assert read("out/de/a.jsonl") is None


async def test_of_several_documents_those_without_the_name_have_one_remark() -> None:
    more = {"b.jsonl": '{"title": "Two cats"}\n', "b.csv": "id,title\n1,Two cats\n"}
    write(FILES | more)
    paths = ("a.jsonl", "b.jsonl", "a.csv", "b.csv")
    sent = await ran(*paths, fields=("description", "note"), columns=("name",))
    assert sorted(sent) == ["A red shirt.", "One cat"]
    found = {
        path: [each for each in found if each[0] != "option"] for path, found in remarks().items()
    }
    assert found == {
        "a.jsonl": [], "b.jsonl": [("unmatched", 2)], "a.csv": [], "b.csv": [("unmatched", 1)],
    }  # fmt: skip
    assert read("out/de/b.csv") == more["b.csv"]


@pytest.mark.parametrize("refused", [False, True])
def test_documents_that_are_empty_or_cannot_be_read_show_no_error_of_the_user(
    *, refused: bool
) -> None:
    missing = {"missing": [["fields", "a"]], "names": []}
    reading = chosen.ReadDocument("a.jsonl", "jsonl", 0, refused, None if refused else missing)
    assert in_no_document([reading], Reading(fields=("a",))) is None
