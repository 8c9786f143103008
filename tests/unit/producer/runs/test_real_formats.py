"""Tests of runs over formats of the product, with real child processes and a client in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman_producer.runs.events import DocumentEnded
from dragoman_producer.runs.request import Reading, RunRequest
from dragoman_producer.runs.translating import run_documents
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import Item, TranslationJob

MARKDOWN = "# Title\n\nSome *words* and `code`.\n\n- one item\n\n```sh\nmake all\n```\n"
GERMAN = (
    '# <a id="title"></a>[de] Title\n\n[de] Some *words* and `code`.\n\n- [de] one item\n\n'
    "```sh\nmake all\n```\n"
)
PO = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: pl\\n"
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 "
"&& (n%100<10 || n%100>=20) ? 1 : 2);\\n"

msgid "Open"
msgstr ""

msgid "Filled"
msgstr "Pełne"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""
"""


async def translated(folder: Path, *, to: str, reading: Reading | None = None) -> list[str]:
    """Translate `folder/in` to `folder/out`; return the texts that were submitted."""
    client = InMemoryClient()
    request = RunRequest((folder / "in",), (to,), folder / "out", reading=reading or Reading())
    ended = [each async for each in run_documents(client, request)]
    statuses = {each.status for each in ended if isinstance(each, DocumentEnded)}
    assert statuses <= {"done", "unchanged"}, ended
    return sorted(item.text for job in client.submitted for item in job.items)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


async def test_markdown_is_translated_with_its_markup_and_once(folder: Path) -> None:
    (folder / "in/a.md").write_text(MARKDOWN)
    texts = ["Some <g1>words</g1> and <x2/>.", "Title", "one item"]
    assert await translated(folder, to="de") == texts
    assert (folder / "out/de/a.md").read_text() == GERMAN
    assert await translated(folder, to="de") == []


async def test_a_bilingual_run_and_a_plain_one_share_their_translations(folder: Path) -> None:
    (folder / "in/a.md").write_text(MARKDOWN)
    await translated(folder, to="de")
    assert await translated(folder, to="de", reading=Reading(bilingual=True)) == []
    written = (folder / "out/de/a.md").read_text()
    assert "# Title\n\n# [de] Title\n" in written


@pytest.mark.parametrize(("refresh", "filled"), [(False, []), (True, ["Filled"])])
async def test_drafts_are_translated_again_and_finished_messages_only_on_request(
    folder: Path, refresh: bool, filled: list[str]
) -> None:
    message = 'msgid "{0}"\nmsgstr "x"\n'
    (folder / "in/a.po").write_text(
        f"#, fuzzy\n{message.format('Guessed')}\n{message.format('Filled')}"
    )
    unit = '<trans-unit id="{0}"><source>{0}</source><target state="{1}">x</target></trans-unit>'
    (folder / "in/a.xlf").write_text(
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a"'
        ' source-language="en" target-language="pl" datatype="plaintext"><body>'
        + unit.format("Reviewed", "needs-review-translation")
        + unit.format("Filled", "final")
        + "</body></file></xliff>"
    )
    texts = await translated(folder, to="pl", reading=Reading(refresh=refresh))
    assert texts == [*filled, "Guessed", "Reviewed"]


async def test_texts_with_half_a_character_stay_and_are_one_remark(folder: Path) -> None:
    source = r'{"a": "Half \ud800 here", "b": "Whole \ud83d\ude00", "c": "Another \udc00"}'
    (folder / "in/a.json").write_text(source)
    assert await translated(folder, to="de") == ["Whole \U0001f600"]
    written = (folder / "out/de/a.json").read_text()
    assert written == source.replace("Whole", "[de] Whole")
    (document,) = json.loads((folder / "out/report.json").read_text())["documents"]
    (issue,) = document["issues"]
    assert (issue["code"], issue["kind"]) == ("remark", "characters")
    assert (issue["count"], issue["place"]) == (2, "a")


async def test_a_po_file_gets_the_plural_forms_of_its_language_and_keeps_what_is_filled(
    folder: Path,
) -> None:
    (folder / "in/pl.po").write_text(PO)
    assert await translated(folder, to="pl") == ["1 file", "21 files", "22 files", "Open"]
    written = (folder / "out/pl/pl.po").read_text()
    assert 'msgstr[0] "[pl] %d file"\nmsgstr[1] "[pl] %d files"\nmsgstr[2]' in written
    assert 'msgstr "Pełne"' in written


@pytest.mark.parametrize(
    ("answers", "counts", "codes"),
    [
        ({}, ("done", 0, 0), []),
        (
            {"21 files": "viele"},
            ("partial", 3, 0),
            ["message_incomplete", "message_incomplete", "plural_lost"],
        ),
        ({"22 files": "einige"}, ("done", 0, 1), ["plural"]),
        ({"22 files": None}, ("done", 0, 1), ["engine_failed", "plural"]),
        ({"22 files": "<x1/> 22"}, ("done", 0, 1), ["plural", "tags"]),
        (
            {"1 file": "eine", "21 files": "viele", "22 files": "einige"},
            ("partial", 3, 0),
            ["plural_lost"] * 3,
        ),
    ],
)
async def test_plural_forms_without_their_number_are_counted_by_what_became_of_them(
    folder: Path,
    answers: dict[str, str | None],
    counts: tuple[str, int, int],
    codes: list[str],
) -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        answer = answers.get(item.text, f"[pl] {item.text}")
        if answer is None:
            raise ItemFailed(FailureCode.ENGINE_FAILED)
        return answer

    (folder / "in/pl.po").write_text(PO)
    request = RunRequest((folder / "in",), ("pl",), folder / "out")
    client = InMemoryClient(translate)
    assert [each async for each in run_documents(client, request)]
    report = json.loads((folder / "out/report.json").read_text())
    (document,) = report["documents"]
    found = document["counts"]
    assert (document["status"], found["source"], found["warned"]) == counts
    assert sorted(each["code"] for each in document["issues"]) == codes


async def test_encodings_that_were_recognised_or_left_are_reported(folder: Path) -> None:
    text = "Café crème brûlée … très bon, déjà vu.\n"
    (folder / "in/a.txt").write_bytes(text.encode("cp1252"))
    (folder / "in/b.txt").write_text(text)
    client = InMemoryClient(lambda item, _: item.text.replace("Café", "Łódź"))
    request = RunRequest((folder / "in",), ("pl",), folder / "out")
    async for _ in run_documents(client, request):
        pass
    assert (folder / "out/pl/a.txt").read_text() == text.replace("Café", "Łódź")
    first, second = json.loads((folder / "out/report.json").read_text())["documents"]
    assert (first["encoding"], first["output_encoding"]) == ("cp1252", "utf-8")
    assert [(each["code"], each["segment"]) for each in first["issues"]] == [
        ("remark", None), ("encoding", None),
    ]  # fmt: skip
    assert "recognised" in first["issues"][0]["detail"]
    assert (second["encoding"], second["output_encoding"], second["issues"]) == (
        "utf-8", "utf-8", [],
    )  # fmt: skip


async def test_the_encoding_that_is_given_is_read_and_written(folder: Path) -> None:
    (folder / "in/a.txt").write_bytes("Да".encode("koi8-r"))
    assert await translated(folder, to="be", reading=Reading(encoding="koi8-r")) == ["Да"]
    assert (folder / "out/be/a.txt").read_text("koi8-r") == "[be] Да"
    [document] = json.loads((folder / "out/report.json").read_text())["documents"]
    assert (document["output_encoding"], document["issues"]) == ("koi8-r", [])


async def test_options_that_a_format_does_not_have_are_one_remark(folder: Path) -> None:
    (folder / "in/a.csv").write_text("name\nOne cat\n")
    (folder / "in/a.json").write_text('{"a": "One cat"}')
    (folder / "in/a.txt").write_text("One cat")
    reading = Reading(columns=("name",), keys=("a",), bilingual=True, headings=True)
    await translated(folder, to="de", reading=reading)
    found = json.loads((folder / "out/report.json").read_text())["documents"]
    ignored = {
        each["format"]: [
            (i["kind"], i["count"], i["detail"].split(": ")[0]) for i in each["issues"]
        ]
        for each in found
    }
    assert ignored == {
        "csv": [("option", 3, "--bilingual, --key, --context headings")],
        "json": [("option", 3, "--bilingual, --column, --context headings")],
        "txt": [("option", 3, "--column, --key, --context headings")],
    }
