"""Tests of `dragoman review`: pages of a run, edits applied to its outputs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman_producer.cli.commands import _commands
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.operations.glossary_files import Languages
from dragoman_producer.operations.memory_files import MemoryRow, read_memory
from dragoman_producer.runs.events import Extracted, Planned
from dragoman_producer.runs.request import RunRequest, Translation
from dragoman_producer.runs.translating import run_documents
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.approved import ApprovedTranslation
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import Item, TranslationJob

pytestmark = pytest.mark.usefixtures("line_formats")


def answer(item: Item, job: TranslationJob) -> str:
    if item.text == "Fails.":
        raise ItemFailed(FailureCode.ENGINE_FAILED, "no answer")
    return f"[{job.target_lang}] {item.text}"


@pytest.fixture
async def out(tmp_path: Path) -> Path:
    """Provide the folder of a run into German and French."""
    source = tmp_path / "in"
    (source / "sub").mkdir(parents=True)
    (source / "a.lines").write_text("One.\nTwo.\nFails.\n")
    (source / "sub" / "b.lines").write_text("Two.\nFour.\n")
    request = RunRequest((source,), ("de", "fr"), tmp_path / "out", Translation("en"))
    async for _ in run_documents(InMemoryClient(answer), request):
        pass
    return tmp_path / "out"


Review = Callable[..., Result]


@pytest.fixture
def review(out: Path) -> Review:
    def call(*arguments: str) -> Result:
        return CliRunner().invoke(_commands(), ["review", str(out), *arguments])

    return call


def data_of(path: Path) -> dict[str, Any]:
    embedded = path.read_text().partition('id="data">')[2].partition("</script>")[0]
    found = json.loads(embedded)
    assert isinstance(found, dict)
    return found


def edited(out: Path, changes: dict[int, str], **more: Any) -> Path:
    """Write what a person downloads who changed these rows of the German page."""
    page = data_of(out / "review-de.html")
    rows = [page["rows"][index] for index in changes]
    edits = [
        {"document": row["document"], "segment": row["segment"], "digest": row["digest"]}
        | {"text": text, "approved": False}
        | more
        for row, text in zip(rows, changes.values(), strict=True)
    ]
    path = out / "edits.json"
    path.write_text(
        json.dumps({"schema": 1, "run": page["run"], "target_lang": "de", "edits": edits})
    )
    return path


def test_a_page_per_language_shows_each_text_with_its_verdict(out: Path, review: Review) -> None:
    ended = review()
    assert ended.exit_code == 0
    assert ended.output.split() == [str(out / "review-de.html"), str(out / "review-fr.html")]
    rows = data_of(out / "review-de.html")["rows"]
    assert [(row["document"], row["segment"], row["place"]) for row in rows] == [
        ("a.lines", 0, "line 1"),
        ("a.lines", 1, "line 2"),
        ("a.lines", 2, "line 3"),
        ("sub/b.lines", 0, "line 1"),
        ("sub/b.lines", 1, "line 2"),
    ]
    assert (rows[0]["source"], rows[0]["target"]) == ("One.", "[de] One.")
    assert (rows[2]["target"], rows[2]["verdict"]) == (None, "fail")
    assert rows[2]["reasons"] == [{"gate": "engine_failed", "detail": "the model gave no answer"}]


def test_one_language_and_some_verdicts_can_be_asked_for(out: Path, review: Review) -> None:
    assert review("--to", "de", "--only", "fail").exit_code == 0
    assert not (out / "review-fr.html").exists()
    assert [row["source"] for row in data_of(out / "review-de.html")["rows"]] == ["Fails."]


async def translated_again(
    out: Path, *to: str, translation: Translation, paths: tuple[Path, ...] = ()
) -> None:
    request = RunRequest(paths or (out.parent / "in",), to, out, translation)
    async for _ in run_documents(InMemoryClient(answer), request):
        pass


async def test_pages_show_what_stands_whichever_run_wrote_it(out: Path, review: Review) -> None:
    (out.parent / "in" / "a.lines").unlink()
    await translated_again(out, "de", translation=Translation("en", formality="more"))
    await asyncio.to_thread(review)
    for lang in ("de", "fr"):
        rows = data_of(out / f"review-{lang}.html")["rows"]
        assert [row["document"] for row in rows] == ["a.lines"] * 3 + ["sub/b.lines"] * 2
    (out / "review-fr.html").unlink()
    await asyncio.to_thread(review, "--last-run")
    rows = data_of(out / "review-de.html")["rows"]
    assert [row["document"] for row in rows] == ["sub/b.lines"] * 2
    assert not (out / "review-fr.html").exists()


async def test_edits_of_documents_of_earlier_runs_are_written_with_their_options(
    out: Path, review: Review
) -> None:
    source = out.parent / "in" / "a.lines"
    held = source.read_text()
    source.unlink()
    (out.parent / "in" / "c.lines").write_text("Three.\n")
    request = RunRequest((out.parent / "in",), ("de",), out, Translation("en"), layout="suffix")
    async for _ in run_documents(InMemoryClient(answer), request):
        pass
    source.write_text(held)
    await asyncio.to_thread(review)
    ended = await asyncio.to_thread(review, "--apply", str(edited(out, {0: "Eins."})))
    assert ended.exit_code == 0, ended.output
    assert (out / "de/a.lines").read_text() == "Eins.\n[de] Two.\nFails.\n"
    assert not (out / "a.de.lines").exists()


async def test_a_document_that_failed_with_other_options_leaves_the_one_that_stands(
    out: Path, review: Review
) -> None:
    request = RunRequest(
        (out.parent / "in",), ("de",), out, Translation("en", formality="more", on_fail="fail")
    )
    async for _ in run_documents(InMemoryClient(answer), request):
        pass
    await asyncio.to_thread(review)
    rows = data_of(out / "review-de.html")["rows"]
    assert [row["document"] for row in rows] == ["a.lines"] * 3 + ["sub/b.lines"] * 2


def test_an_edit_is_written_wherever_the_text_occurs(out: Path, review: Review) -> None:
    review()
    ended = review("--apply", str(edited(out, {1: "Zwei.", 2: "Gut."})))
    assert ended.exit_code == 0
    assert "2 changed" in ended.output
    assert "--remember" in ended.output
    assert (out / "de/a.lines").read_text() == "[de] One.\nZwei.\nGut.\n"
    assert (out / "de/sub/b.lines").read_text() == "Zwei.\n[de] Four.\n"
    assert (out / "fr/a.lines").read_text() == "[fr] One.\n[fr] Two.\nFails.\n"
    report = json.loads((out / "report.json").read_text())
    assert report["targets"]["de"]["failed"] == 0
    assert report["targets"]["fr"]["failed"] == 1
    assert report["options"]["to"] == ["de", "fr"]


def test_blanks_at_the_ends_of_an_edit_are_those_of_its_source(out: Path, review: Review) -> None:
    source = out.parent / "in" / "c.srt"
    source.write_text("1\n00:00:01,000 --> 00:00:02,000\nA cue.\n")
    asyncio.run(translated_again(out, "de", "fr", translation=Translation("en")))
    review()
    rows = {
        row["source"]: index for index, row in enumerate(data_of(out / "review-de.html")["rows"])
    }
    ended = review("--apply", str(edited(out, {0: "Eins.\n", rows["A cue."]: " Ein Satz. "})))
    assert ended.exit_code == 0, ended.output
    assert (out / "de/a.lines").read_text() == "Eins.\n[de] Two.\nFails.\n"
    assert (out / "de/c.srt").read_text().endswith("\nEin Satz.\n")


def test_edits_of_another_folder_are_refused(out: Path, review: Review) -> None:
    review()
    path = edited(out, {0: "Eins."})
    path.write_text(path.read_text().replace('"run": "', '"run": "0'))
    ended = review("--apply", str(path))
    assert ended.exit_code == 2
    assert "did not write this folder" in ended.output
    assert (out / "de/a.lines").read_text().startswith("[de] One.")


async def test_edits_of_a_run_with_other_settings_are_refused(out: Path, review: Review) -> None:
    review()
    path = edited(out, {0: "Eins."})
    for translation, status in ((Translation("en", formality="more"), 2), (Translation("en"), 0)):
        request = RunRequest((out.parent / "in",), ("de",), out, translation)
        async for _ in run_documents(InMemoryClient(answer), request):
            pass
        ended = await asyncio.to_thread(review, "--apply", str(path))
        assert ended.exit_code == status, ended.output
    assert (out / "de/a.lines").read_text().startswith("Eins.")


async def test_the_files_of_a_review_are_no_sources(out: Path, review: Review) -> None:
    assert review().exit_code == 0
    exported = await asyncio.to_thread(review, "--to", "de", "--export", str(out / "work.xlf"))
    assert exported.exit_code == 0
    request = RunRequest((out,), ("de",), out, dry_run=True)
    events = [event async for event in run_documents(InMemoryClient(), request)]
    assert [event.path for event in events if isinstance(event, Extracted)] == []


def test_an_edit_stays_in_later_pages_and_runs(out: Path, review: Review) -> None:
    review()
    review("--apply", str(edited(out, {0: "Eins."})))
    review()
    row = data_of(out / "review-de.html")["rows"][0]
    assert (row["target"], row["verdict"], row["origin"]) == ("Eins.", "ok", "edited")
    assert review("--apply", str(edited(out, {0: "Eins."}))).output.startswith("0 changed")


@pytest.mark.parametrize(
    ("changes", "more", "why"),
    [
        ({1: "Zwei <x1/>."}, {}, "a.lines, segment 2: its tags"),
        ({0: " "}, {}, "a.lines, segment 1: it is empty"),
        ({0: "Eins."}, {"digest": "0" * 16}, "its source has changed"),
        ({0: "Eins."}, {"segment": 99}, "1 edit for segments that no longer exist"),
        ({0: "Eins."}, {"document": "no.lines"}, "1 edit for segments that no longer exist"),
    ],
)
def test_an_edit_that_does_not_fit_is_named_and_changes_nothing(
    out: Path, review: Review, changes: dict[int, str], more: dict[str, Any], why: str
) -> None:
    review()
    ended = review("--apply", str(edited(out, changes, **more)))
    assert ended.exit_code == 1
    assert why in ended.output
    assert (out / "de/a.lines").read_text() == "[de] One.\n[de] Two.\nFails.\n"


def test_the_other_edits_of_a_file_are_applied(out: Path, review: Review) -> None:
    review()
    ended = review("--apply", str(edited(out, {0: "Eins.", 1: "Zwei <g1>."})))
    assert ended.exit_code == 3
    assert (out / "de/a.lines").read_text() == "Eins.\n[de] Two.\nFails.\n"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ("in/a.lines", "not written: changed (it changed while it was translated"),
        ("out/de/a.lines", "was changed by hand"),
    ],
)
def test_a_document_that_cannot_be_written_again_is_named(
    out: Path, review: Review, changed: str, why: str
) -> None:
    review()
    edits = edited(out, {0: "Eins."})
    (out.parent / changed).write_text("Somebody's.")
    ended = review("--apply", str(edits))
    assert (ended.exit_code, why in ended.output) == (3, True), ended.output


def test_an_xliff_file_goes_out_and_comes_back(out: Path, review: Review) -> None:
    file = out / "work.xlf"
    assert review("--export", str(file), "--to", "de").exit_code == 0
    file.write_text(file.read_text().replace("[de] Four.", "Vier."))
    ended = review("--apply", str(file))
    assert (ended.exit_code, "1 changed" in ended.output) == (0, True)
    assert (out / "de/sub/b.lines").read_text() == "[de] Two.\nVier.\n"


@pytest.mark.parametrize("changed", [False, True])
async def test_xliff_shows_what_tags_are_while_the_document_is_as_it_was(
    tmp_path: Path, changed: bool
) -> None:
    source = tmp_path / "a.md"
    source.write_text("# One\n\nA *b* [c](d).\n")
    out = tmp_path / "out"
    await translated_again(out, "de", translation=Translation("en"), paths=(source,))
    if changed:
        source.write_text("other")
    file = tmp_path / "work.xlf"
    call = CliRunner().invoke
    ended = await asyncio.to_thread(call, _commands(), ["review", str(out), "--export", str(file)])
    assert ended.exit_code == 0, ended.output
    shown = '<g id="2" ctype="link" equiv-text="[...](d)">'
    assert (shown in file.read_text(), '<g id="2">' in file.read_text()) == (not changed, changed)


def test_a_tmx_file_goes_to_the_memory(out: Path, review: Review) -> None:
    file = out / "work.tmx"
    ended = review("--export", str(file), "--to", "de", "--json")
    assert (ended.exit_code, json.loads(ended.output)["segments"]) == (0, 3)
    [first, *_] = read_memory(file, Languages())
    assert isinstance(first, MemoryRow)
    assert first.translation == ApprovedTranslation("One.", "[de] One.", "de", "en")


async def test_tmx_of_a_run_without_a_source_language_is_refused(out: Path, review: Review) -> None:
    await translated_again(out, "de", translation=Translation())
    ended = await asyncio.to_thread(review, "--to", "de", "--export", str(out / "work.tmx"))
    assert (ended.exit_code, "--from" in ended.output) == (2, True)
    assert not (out / "work.tmx").exists()


def test_what_cannot_be_done_is_refused_with_what_to_do(review: Review) -> None:
    refused = (
        (("--export", "work.json"), "give a file in .xlf, .xliff, .tmx"),
        (("--export", "no/work.xlf", "--to", "de"), "No such file or directory; give"),
        (("--to", "ja"), "there are translations into de, fr"),
        (("--to", "x y"), "--to"),
        (("--only", "good"), "--only: 'good' is not valid"),
        (("--export", "work.xlf"), "--to"),
        (("--remember",), "--apply"),
        (("--apply", "no.json"), "no.json: No such file"),
        (("--apply", __file__), "not XML"),
        (("--apply", "no.json", "--only", "ok"), "cannot be combined with"),
    )
    for arguments, why in refused:
        ended = review(*arguments)
        assert (ended.exit_code, why in ended.output) == (2, True), ended.output


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    ended = CliRunner().invoke(_commands(), ["review", str(tmp_path)])
    assert (ended.exit_code, "translate --out" in ended.output) == (2, True)


def test_a_run_that_has_not_ended_is_refused(tmp_path: Path) -> None:
    Manifest.open(tmp_path / ".dragoman" / "manifest.db").close()
    ended = CliRunner().invoke(_commands(), ["review", str(tmp_path)])
    assert (ended.exit_code, "has ended" in ended.output) == (1, True)


def test_a_folder_that_is_being_translated_is_refused(out: Path, review: Review) -> None:
    holding = Manifest.open(out / ".dragoman" / "manifest.db")
    try:
        ended = review()
    finally:
        holding.close()
    assert (ended.exit_code, "another run" in ended.output) == (1, True)


# --- later runs keep edits ------------------------------------------------------------------------

STRICT = Translation("en", quality="strict")


@pytest.fixture
async def reviewed(out: Path, review: Review) -> Path:
    """Provide the folder after a review that edited "One." and "Two."."""
    await asyncio.to_thread(review)
    ended = await asyncio.to_thread(review, "--apply", str(edited(out, {0: "Eins.", 1: "Zwei."})))
    assert ended.exit_code == 0, ended.output
    return out


async def run_again(out: Path, client: InMemoryClient | None = None, **more: Any) -> list[str]:
    """Run into German again; return the texts that were submitted."""
    client = client or InMemoryClient(answer)
    translation = more.pop("translation", Translation("en"))
    request = RunRequest((out.parent / "in",), ("de",), out, translation, **more)
    async for _ in run_documents(client, request):
        pass
    return sorted({item.text for job in client.submitted for item in job.items})


def counts_of(out: Path) -> dict[str, int]:
    counts = json.loads((out / "report.json").read_text())["targets"]["de"]
    return {name: counts[name] for name in ("new", "reused", "edited")}


@pytest.mark.parametrize(
    ("translation", "counts"),
    [
        (Translation("en"), {"new": 0, "reused": 1, "edited": 3}),
        (STRICT, {"new": 1, "reused": 0, "edited": 3}),
        (Translation("en", memory="refresh"), {"new": 1, "reused": 0, "edited": 3}),
        (Translation("en", glossary={"one": "eins"}), {"new": 0, "reused": 1, "edited": 3}),
    ],
)
async def test_a_later_run_keeps_edits_whatever_its_options(
    reviewed: Path, translation: Translation, counts: dict[str, int]
) -> None:
    texts = await run_again(reviewed, translation=translation)
    assert texts == ["Fails."] + ["Four."] * counts["new"]
    assert (reviewed / "de/a.lines").read_text() == "Eins.\nZwei.\nFails.\n"
    assert (reviewed / "de/sub/b.lines").read_text() == "Zwei.\n[de] Four.\n"
    assert counts_of(reviewed) == counts


async def test_an_edit_takes_the_place_of_a_translation_of_other_options(
    out: Path, review: Review
) -> None:
    await translated_again(out, "de", translation=STRICT)
    await translated_again(out, "de", "fr", translation=Translation("en"))
    await asyncio.to_thread(review)
    await asyncio.to_thread(review, "--apply", str(edited(out, {0: "Eins."})))
    assert await run_again(out, translation=STRICT) == ["Fails."]
    assert (out / "de/a.lines").read_text() == "Eins.\n[de] Two.\nFails.\n"


async def test_the_latest_edit_of_a_text_counts_under_all_options(
    reviewed: Path, review: Review
) -> None:
    await run_again(reviewed, translation=STRICT)
    await asyncio.to_thread(review)
    await asyncio.to_thread(review, "--apply", str(edited(reviewed, {0: "Die Eins."})))
    for translation in (Translation("en"), STRICT):
        await run_again(reviewed, translation=translation)
        assert (reviewed / "de/a.lines").read_text() == "Die Eins.\nZwei.\nFails.\n"


async def test_edits_stay_if_the_file_changes_elsewhere(reviewed: Path) -> None:
    (reviewed.parent / "in" / "a.lines").write_text("New.\nTwo.\nOne.\n")
    assert await run_again(reviewed) == ["New."]
    assert (reviewed / "de/a.lines").read_text() == "[de] New.\nZwei.\nEins.\n"


async def test_approved_translations_are_kept_as_edits_are(out: Path, review: Review) -> None:
    await asyncio.to_thread(review)
    path = edited(out, {0: "[de] One."}, approved=True)
    await asyncio.to_thread(review, "--apply", str(path))
    assert await run_again(out, InMemoryClient(lambda *_: "X"), translation=STRICT) == [
        "Fails.", "Four.", "Two.",
    ]  # fmt: skip
    assert (out / "de/a.lines").read_text().startswith("[de] One.\nX\n")


async def test_overwrite_drops_edits_under_all_options(reviewed: Path) -> None:
    await run_again(reviewed, translation=STRICT)
    assert await run_again(reviewed, overwrite=True) == ["Fails.", "One.", "Two."]
    assert (reviewed / "de/a.lines").read_text() == "[de] One.\n[de] Two.\nFails.\n"
    assert await run_again(reviewed, translation=STRICT) == ["Fails.", "One.", "Two."]
    assert counts_of(reviewed) == {"new": 2, "reused": 2, "edited": 0}


@pytest.mark.parametrize(("overwrite", "missing"), [(False, 2), (True, 4)])
async def test_a_dry_run_counts_edits_as_done_and_drops_none(
    reviewed: Path, overwrite: bool, missing: int
) -> None:
    request = RunRequest(
        (reviewed.parent / "in",), ("de",), reviewed, STRICT, overwrite=overwrite, dry_run=True
    )
    events = [event async for event in run_documents(InMemoryClient(), request)]
    assert [event.missing for event in events if isinstance(event, Planned)] == [missing]
    await run_again(reviewed)
    assert counts_of(reviewed)["edited"] == 3


async def test_the_result_of_a_job_in_flight_does_not_replace_an_edit(reviewed: Path) -> None:
    manifest = Manifest.open(reviewed / ".dragoman" / "manifest.db")
    with closing(manifest), manifest.writing() as db:
        db.execute("DELETE FROM translation WHERE code IS NOT 'edited'")
        db.execute("UPDATE job SET ended=0")
    assert "One." in await run_again(reviewed)
    assert (reviewed / "de/a.lines").read_text().startswith("Eins.\nZwei.\n")
