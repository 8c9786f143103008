"""Tests of runs over folders, with real child processes and a client in memory."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman_documents.codec import Options
from dragoman_producer import documents
from dragoman_producer.errors import BrokerRefused, StoreUnreachable
from dragoman_producer.handle import JobHandle
from dragoman_producer.manifest.database import FolderBusy, Manifest, NoFolder, NoSpace
from dragoman_producer.operations import outage
from dragoman_producer.runs import progress, running
from dragoman_producer.runs.child_wire import options_fields
from dragoman_producer.runs.events import (
    DocumentEnded,
    Extracted,
    Finished,
    Planned,
    Waiting,
    Working,
)
from dragoman_producer.runs.extracting import Children
from dragoman_producer.runs.refusals import DocumentRefused
from dragoman_producer.runs.request import MissingGlossary, Reading, RunRequest, Stop, Translation
from dragoman_producer.runs.selecting import NothingThere, Selection
from dragoman_producer.runs.translating import run_documents
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_producer.watch import NO_RESULT, Quiet
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_schemas.jobs import Item, TranslationJob
from support.processes.waiting import patient

pytestmark = pytest.mark.usefixtures("line_formats")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.lines").write_text("One.\nTwo.\n# three\n")
    (folder / "sub" / "b.lines").write_text("Two.\nFour.\n")
    return folder


class Ran:
    """What a run did."""

    def __init__(self, out: Path, events: list[documents.Event], client: InMemoryClient) -> None:
        self.out = out
        self.events = events
        self.ended = {(e.path, e.target_lang): e for e in events if isinstance(e, DocumentEnded)}
        [self.planned] = [event for event in events if isinstance(event, Planned)]
        finished = events[-1]
        assert isinstance(finished, Finished)
        self.finished = finished
        self.texts = [item.text for job in client.submitted for item in job.items]
        self.report: dict[str, Any] = json.loads((out / "report.json").read_text())

    def of(self, path: str) -> dict[str, Any]:
        [found] = [each for each in self.report["documents"] if each["path"] == path]
        assert isinstance(found, dict)
        return found


async def ran(source: Path, out: Path, *, client: InMemoryClient | None = None, **more: Any) -> Ran:
    client = client or InMemoryClient()
    request = RunRequest((source,), more.pop("to", ("de",)), out, **more)
    events = [event async for event in run_documents(client, request)]
    return Ran(out, events, client)


async def test_a_folder_is_mirrored_and_repeats_are_sent_once(source: Path, tmp_path: Path) -> None:
    run = await ran(source, tmp_path / "out", to=("de", "fr"))
    assert (tmp_path / "out/de/a.lines").read_text() == "[de] One.\n[de] Two.\n# three\n"
    assert (tmp_path / "out/fr/sub/b.lines").read_text() == "[fr] Two.\n[fr] Four.\n"
    assert sorted(run.texts) == sorted(["One.", "Two.", "Four."] * 2)
    assert run.finished.exit_status == 0
    assert run.planned == Planned(4, 8, 6, 6, 26)
    assert (
        run.report["targets"]["de"] | {"new": 3, "reused": 1, "written": 2}
        == run.report["targets"]["de"]
    )


async def test_a_second_run_sends_nothing_and_leaves_the_files_alone(
    source: Path, tmp_path: Path
) -> None:
    await ran(source, tmp_path / "out")
    before = (tmp_path / "out/de/a.lines").stat().st_mtime_ns
    run = await ran(source, tmp_path / "out")
    assert run.texts == []
    assert {each.status for each in run.ended.values()} == {"unchanged"}
    assert (tmp_path / "out/de/a.lines").stat().st_mtime_ns == before
    assert run.finished.exit_status == 0


async def test_a_changed_paragraph_is_the_only_one_sent(source: Path, tmp_path: Path) -> None:
    await ran(source, tmp_path / "out")
    (source / "a.lines").write_text("One.\nNew.\n# three\n")
    run = await ran(source, tmp_path / "out")
    assert run.texts == ["New."]
    assert (tmp_path / "out/de/a.lines").read_text() == "[de] One.\n[de] New.\n# three\n"
    statuses = {path: each.status for (path, _), each in run.ended.items()}
    assert statuses == {"a.lines": "done", "sub/b.lines": "unchanged"}


# --- outputs that a person has changed ------------------------------------------------------------


async def test_an_output_that_was_edited_stays_while_its_source_does(
    source: Path, tmp_path: Path
) -> None:
    await ran(source, tmp_path / "out")
    edited = tmp_path / "out/de/a.lines"
    edited.write_text("Edited.\n")
    run = await ran(source, tmp_path / "out")
    assert edited.read_text() == "Edited.\n"
    assert run.of("a.lines")["status"] == "unchanged"


async def test_an_output_that_was_edited_is_not_replaced_unasked(
    source: Path, tmp_path: Path
) -> None:
    await ran(source, tmp_path / "out")
    edited = tmp_path / "out/de/a.lines"
    edited.write_text("Edited.\n")
    (source / "a.lines").write_text("New.\n")
    run = await ran(source, tmp_path / "out")
    assert (run.of("a.lines")["status"], run.of("a.lines")["reason"]) == ("failed", "collision")
    assert edited.read_text() == "Edited.\n"
    await ran(source, tmp_path / "out", overwrite=True)
    assert edited.read_text() == "[de] New.\n"


async def test_an_output_of_other_options_is_replaced(source: Path, tmp_path: Path) -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        return f"{job.formality}: {item.text}"

    written = []
    for formality in ("more", "less", "more"):
        given = Translation(formality=formality)
        await ran(source, tmp_path / "out", client=InMemoryClient(translate), translation=given)
        written.append((tmp_path / "out/de/a.lines").read_text().split(":")[0])
    assert written == ["more", "less", "more"]


async def test_a_dry_run_forgets_nothing(source: Path, tmp_path: Path) -> None:
    await ran(source, tmp_path / "out", translation=Translation(memory="refresh"))
    request = RunRequest(
        (source,), ("de",), tmp_path / "out", Translation(memory="refresh"), dry_run=True
    )
    events = [event async for event in run_documents(InMemoryClient(), request)]
    [planned] = [event for event in events if isinstance(event, Planned)]
    assert planned.missing == planned.unique == 3
    with closing(Manifest.open(tmp_path / "out/.dragoman/manifest.db")) as manifest:
        assert manifest.number("SELECT COUNT(*) FROM translation") == 3


async def test_a_file_that_no_run_wrote_is_not_replaced_unasked(
    source: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "out/de/a.lines"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("Foreign.\n")
    run = await ran(source, tmp_path / "out")
    assert "--overwrite" in run.of("a.lines")["detail"]
    assert (foreign.read_text(), run.of("sub/b.lines")["status"]) == ("Foreign.\n", "done")


async def test_an_output_of_ours_is_replaced_when_its_source_changes_twice(
    source: Path, tmp_path: Path
) -> None:
    for text in ("First.", "Second.", "Third."):
        (source / "a.lines").write_text(text)
        await ran(source, tmp_path / "out")
        assert (tmp_path / "out/de/a.lines").read_text() == f"[de] {text}"


async def test_a_translation_whose_run_was_killed_before_it_wrote_is_written_by_the_next_run(
    source: Path, tmp_path: Path
) -> None:
    await ran(source, tmp_path / "out", client=failing("One."))
    manifest = Manifest.open(tmp_path / "out/.dragoman/manifest.db")
    with closing(manifest), manifest.writing() as db:
        db.execute("UPDATE translation SET text='Eins.', run='killed' WHERE text IS NULL")
    run = await ran(source, tmp_path / "out")
    assert run.texts == []
    assert (tmp_path / "out/de/a.lines").read_text() == "Eins.\n[de] Two.\n# three\n"


# --- refresh --------------------------------------------------------------------------------------

REFRESH = Translation(memory="refresh")


def versions(version: int, *, of: int = 1_000) -> InMemoryClient:
    """Return a client that adds a version to each text, and refuses more than `of` texts."""
    left = of

    def translate(item: Item, job: TranslationJob) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise BrokerRefused("as requested by the test")
        return f"{version} {item.text}"

    return InMemoryClient(translate)


async def test_a_refresh_that_was_stopped_goes_on_and_a_finished_one_begins_anew(
    source: Path, tmp_path: Path
) -> None:
    (source / "a.lines").write_text("\n".join(f"Text {number}." for number in range(100)))
    await ran(source, tmp_path / "out", client=versions(1))
    stopped = await ran(source, tmp_path / "out", client=versions(2, of=64), translation=REFRESH)
    assert "stopped" in stopped.report
    run = await ran(source, tmp_path / "out", client=versions(3), translation=REFRESH)
    assert len(run.texts) == 38
    written = (tmp_path / "out/de/a.lines").read_text().split("\n")
    assert {line[0] for line in written} == {"2", "3"}
    run = await ran(source, tmp_path / "out", client=versions(4), translation=REFRESH)
    assert len(run.texts) == 102


async def test_a_run_after_a_refresh_keeps_what_was_refreshed(source: Path, tmp_path: Path) -> None:
    await ran(source, tmp_path / "out", client=versions(1))
    await ran(source, tmp_path / "out", client=versions(2), translation=REFRESH)
    run = await ran(source, tmp_path / "out", client=versions(3))
    assert run.texts == []
    assert (tmp_path / "out/de/a.lines").read_text() == "2 One.\n2 Two.\n# three\n"


# --- the report -----------------------------------------------------------------------------------


async def test_the_report_has_the_options_of_the_run_without_texts(
    source: Path, tmp_path: Path
) -> None:
    translation = Translation(
        "en", {"cat": "Katze"}, keep=("Ducks",), instructions=("Be kind.",), profile="chat"
    )
    reading = Reading(("*.lines",), ("x",), columns=("a",), keys=("b",), encoding="cp1252")
    run = await ran(source, tmp_path / "out", translation=translation, reading=reading)
    options = run.report["options"]
    terms, keep = options.pop("glossary_file"), options.pop("keep")
    assert (terms["terms"], keep["texts"]) == (1, 1)
    assert len(terms["digest"]) == len(keep["digest"]) == len(options.pop("settings")) == 32
    assert options == {
        "to": ["de"], "from": "en", "layout": "folders", "profile": "chat", "quality": None,
        "on_fail": "source", "memory": None, "formality": None, "instructions": 1,
        "glossary": None, "overwrite": False, "replace_poorer": False, "others": "skip",
        "include": ["*.lines"], "exclude": ["x"], "format": None, "formats": [],
        "columns": ["a"], "fields": [], "ids": [],
        "keys": ["b"], "add": False, "in_place": False, "bilingual": False,
        "context": "none", "refresh": False, "encoding": "cp1252",
        "site": None, "anchors": "auto", "links_fail": False,
    }  # fmt: skip
    assert not {"Katze", "Ducks", "kind"} & set(re.findall(r"\w+", json.dumps(run.report)))


# --- stored glossaries ----------------------------------------------------------------------------


async def test_a_changed_term_of_a_stored_glossary_asks_again_for_the_texts_that_have_it(
    source: Path, tmp_path: Path
) -> None:
    translation = Translation(glossary_id="terms")
    all_texts = ["Four.", "One.", "Two."]
    for terms, texts in (
        ({"four": "vier"}, all_texts),
        ({"four": "vier"}, []),
        ({"four": "viere", "six": "sechs"}, ["Four."]),
        ({"four": "viere", "two": "zwei"}, ["Two."]),
        ({"four": "viere"}, []),  # translated without that term before
    ):
        client = InMemoryClient()
        entries = [GlossaryEntry(term, (target,)) for term, target in terms.items()]
        client.glossaries["terms"] = {"de": entries, "fr": []}
        run = await ran(source, tmp_path / "out", client=client, translation=translation)
        assert sorted(run.texts) == texts


async def test_a_glossary_that_is_not_stored_ends_a_run_before_it_writes(
    source: Path, tmp_path: Path
) -> None:
    with pytest.raises(MissingGlossary, match=r"glossary terms: there is no .* `dragoman glossary"):
        await ran(source, tmp_path / "out", translation=Translation(glossary_id="terms"))
    assert not (tmp_path / "out").exists()


async def test_a_job_has_the_texts_to_keep_that_occur_in_it_and_200_at_most(tmp_path: Path) -> None:
    keep = tuple(f"Name{number}z" for number in range(1_000))
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [" ".join(keep[first : first + 50]) for first in range(0, 400, 50)]
    (folder / "a.lines").write_text("\n".join([*lines, "None."]))
    client = InMemoryClient()
    await ran(folder, tmp_path / "out", client=client, translation=Translation(keep=keep))
    assert [len(job.do_not_translate or ()) for job in client.submitted] == [200, 200]
    for job in client.submitted:
        texts = " ".join(item.text for item in job.items)
        assert job.do_not_translate == [each for each in keep if each in texts]


# --- odd files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("#hang", "timeout"),
        ("#spin", "timeout"),
        ("#kill", "corrupt"),
        ("#interrupt", "interrupted"),
        ("#memory", "too_large"),
        ("#raise", "corrupt"),
        ("#corrupt", "corrupt"),
    ],
)
async def test_a_file_that_breaks_its_reader_is_one_line_and_the_others_are_translated(
    source: Path, tmp_path: Path, first: str, reason: str
) -> None:
    (source / "bad.lines").write_text(f"{first}\nText.\n")
    run = await ran(source, tmp_path / "out")
    assert (run.of("bad.lines")["status"], run.of("bad.lines")["reason"]) == ("failed", reason)
    assert run.of("a.lines")["status"] == "done"
    assert run.finished.exit_status == 3
    assert not (tmp_path / "out/de/bad.lines").exists()


@pytest.mark.parametrize(
    ("first", "reason"),
    [("#splice-spin", "timeout"), ("#splice-kill", "corrupt"), ("#splice-memory", "too_large")],
)
async def test_a_file_that_breaks_its_writer_is_one_line_and_the_others_are_written(
    source: Path, tmp_path: Path, first: str, reason: str
) -> None:
    (source / "bad.lines").write_text(f"{first}\nText.\n")
    run = await ran(source, tmp_path / "out")
    assert (run.of("bad.lines")["status"], run.of("bad.lines")["reason"]) == ("failed", reason)
    assert run.of("a.lines")["status"] == "done"
    assert list((tmp_path / "out/.dragoman/parts").iterdir()) == []
    assert not (tmp_path / "out/de/bad.lines").exists()


async def test_no_more_texts_are_sent_to_a_child_that_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.lines"
    path.write_text("#kill\n")
    asked = {
        "path": str(path), "format": "lines", "options": options_fields(Options("de")),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "temporary": str(tmp_path / "b"),
    }  # fmt: skip
    texts = iter(["Text. " * 10] * 1_000_000)
    children = Children(1)
    with pytest.raises(DocumentRefused, match="signal 9"):
        await children.write(asked, texts)
    await children.close()
    assert next(texts, None) is not None
    assert caplog.records == []


async def test_a_run_tells_of_each_document_that_takes_long(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_TELL_S", 0)
    run = await ran(source, tmp_path / "out")
    told = {event for event in run.events if isinstance(event, Working)}
    names = ("a.lines", "sub/b.lines")
    assert told == {
        *(Working(name, "", "read", 0, 0) for name in names),
        *(Working(name, "de", "written", 0, 0) for name in names),
    }


async def test_texts_that_cannot_be_read_end_the_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.lines"
    path.write_text("Text.\n")
    asked = {
        "path": str(path), "format": "lines", "options": options_fields(Options("de")),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "temporary": str(tmp_path / "b"),
    }  # fmt: skip
    children = Children(1)
    with pytest.raises(NoSpace):
        await children.write(asked, _no_texts())
    assert (await children.read(asked, lambda _: None))["segments"] == 1
    await children.close()


def _no_texts() -> Iterator[str]:
    yield "Text"
    raise NoSpace("the disk is full")


async def test_signals_for_the_terminals_process_group_do_not_reach_the_children(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.lines"
    path.write_text("Text.\n")
    asked = {"path": str(path), "format": "lines", "options": options_fields(Options("de"))}
    children = Children(1)
    await children.read(asked, lambda _: None)
    [child] = children._all
    assert os.getpgid(child.pid) == child.pid != os.getpgid(0)
    os.kill(child.pid, signal.SIGTERM)  # as a supervisor that ends all processes of a unit does
    assert (await children.read(asked, lambda _: None))["segments"] == 1
    assert children._all == {child}
    await children.close()


async def test_a_file_that_is_called_like_a_module_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hashlib.py").write_text("raise SystemExit(7)")
    (tmp_path / "a.lines").write_text("Text.\n")
    monkeypatch.chdir(tmp_path)
    asked = {"path": "a.lines", "format": "lines", "options": options_fields(Options("de"))}
    children = Children(1)
    assert (await children.read(asked, lambda _: None))["segments"] == 1
    await children.close()


async def test_reading_that_is_cancelled_in_the_middle_of_an_answer_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.lines"
    path.write_text("\n".join("x" * 5_000 for _ in range(2_000)))
    asked = {"path": str(path), "format": "lines", "options": options_fields(Options("de"))}
    children = Children(1)
    reading = asyncio.create_task(children.read(asked, lambda _: None))
    async with asyncio.timeout(patient(60)):
        while not any(each.channel._waiting for each in children._all):  # noqa: ASYNC110  no event
            await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await children.close()


async def test_a_text_that_no_job_may_hold_keeps_its_source_and_the_others_are_translated(
    source: Path, tmp_path: Path
) -> None:
    (source / "a.lines").write_text(f"One.\n{'x' * 200_000}\nTwo.\n")
    run = await ran(source, tmp_path / "out")
    assert (tmp_path / "out/de/a.lines").read_text() == f"[de] One.\n{'x' * 200_000}\n[de] Two.\n"
    [issue] = run.of("a.lines")["issues"]
    assert (issue["segment"], issue["code"]) == (2, "invalid_job")
    assert run.finished.exit_status == 3
    again = await ran(source, tmp_path / "out")
    assert again.texts == []


async def test_of_a_job_that_is_invalid_the_valid_texts_are_translated(
    source: Path, tmp_path: Path
) -> None:
    (source / "a.lines").write_text("One.\n#limit\nTwo.\n")
    run = await ran(source, tmp_path / "out")
    assert (tmp_path / "out/de/a.lines").read_text() == "[de] One.\n#limit\nTwo.\n"
    assert [issue["code"] for issue in run.of("a.lines")["issues"]] == ["invalid_job"]


async def test_files_that_are_no_documents_are_skipped_with_a_reason(
    source: Path, tmp_path: Path
) -> None:
    (source / "picture.png").write_bytes(b"\x89PNG")
    (source / "code.ts").write_text("export const title: string = 'Some text';")
    os.mkfifo(source / "pipe.lines")
    (source / "gone.lines").symlink_to("nowhere.lines")
    (source / "long.lines").symlink_to("x" * 300)
    (source / ".hidden.lines").write_text("Hidden.")
    run = await ran(source, tmp_path / "out")
    assert run.of("picture.png")["reason"] == "unsupported_format"
    for name in ("picture.png", "code.ts"):
        assert run.of(name)["status"] == "skipped"
    assert run.of("pipe.lines")["reason"] == "wrong_type"
    assert run.of("gone.lines")["reason"] == "outside"
    assert run.report["hidden"] == 1
    assert sorted(run.texts) == ["Four.", "One.", "Two."]


async def test_outputs_of_runs_into_other_folders_among_the_sources_are_not_read(
    source: Path, tmp_path: Path
) -> None:
    await ran(source, source / "first")
    (source / "first" / "own.lines").write_text("Own.")
    run = await ran(source, tmp_path / "out")
    assert sorted(run.texts) == ["Four.", "One.", "Own.", "Two."]
    assert run.report["other_outputs"] == 3  # two documents and the report
    assert not (tmp_path / "out/de/first/de").exists()
    given = await ran(source / "first" / "de", tmp_path / "again")
    assert "[de] One." in given.texts


async def test_a_folder_with_a_file_that_is_no_manifest_is_read(
    source: Path, tmp_path: Path
) -> None:
    (source / ".dragoman").mkdir()
    (source / ".dragoman" / "manifest.db").write_bytes(b"no database")
    run = await ran(source, tmp_path / "out")
    assert (sorted(run.texts), run.report["other_outputs"]) == (["Four.", "One.", "Two."], 0)


async def test_every_entry_of_the_report_has_the_same_members(source: Path, tmp_path: Path) -> None:
    (source / "picture.png").write_bytes(b"\x89PNG")
    (source / "gone.lines").symlink_to("nowhere.lines")
    run = await ran(source, tmp_path / "out")
    members = {frozenset(run.of(name)) for name in ("a.lines", "picture.png", "gone.lines")}
    assert len(members) == 1
    assert run.of("picture.png")["issues"] == []


async def test_a_pattern_gives_files_their_format(source: Path, tmp_path: Path) -> None:
    (source / "sub/notes.asc").write_text("Note.")
    (source / "more.asc").write_text("More.")
    reading = Reading(formats=("sub/*.asc=lines", "*.asc=txt"))
    run = await ran(source, tmp_path / "out", reading=reading)
    formats = {each["path"]: each["format"] for each in run.report["documents"]}
    assert (formats["sub/notes.asc"], formats["more.asc"]) == ("lines", "txt")
    assert formats["a.lines"] == "lines"


async def test_a_skipped_file_tells_what_to_do(source: Path, tmp_path: Path) -> None:
    (source / "manual.PDF").write_bytes(b"%PDF-1.7")
    run = await ran(source, tmp_path / "out")
    assert run.of("manual.PDF")["detail"] == (
        "PDF is not read: convert it to DOCX or Markdown first"
    )


async def test_files_of_no_known_format_are_copied_if_asked(source: Path, tmp_path: Path) -> None:
    (source / "sub/picture.png").write_bytes(b"\x89PNG")
    run = await ran(source, tmp_path / "out", to=("de", "fr"), copy_others=True)
    assert (tmp_path / "out/fr/sub/picture.png").read_bytes() == b"\x89PNG"
    assert run.finished.exit_status == 0


async def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    for name in ("nothing", "*.lines"):
        with pytest.raises(NothingThere, match="no "):
            await ran(tmp_path / name, tmp_path / "out")


async def test_globs_are_mirrored_from_their_fixed_part(source: Path, tmp_path: Path) -> None:
    await ran(source / "**" / "*.lines", tmp_path / "out")
    assert (tmp_path / "out/de/sub/b.lines").exists()


async def test_include_and_exclude_choose_by_name_or_path(source: Path, tmp_path: Path) -> None:
    (source / "sub/c.lines").write_text("Three.")
    reading = Reading(include=("sub/*",), exclude=("c.*",))
    run = await ran(source, tmp_path / "out", reading=reading)
    assert list(run.ended) == [("sub/b.lines", "de")]


async def test_links_that_leave_the_folder_are_not_followed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.lines").write_text("Secret.")
    (source / "link.lines").symlink_to(tmp_path / "secret.lines")
    (source / "loop").symlink_to(source)
    run = await ran(source, tmp_path / "out")
    assert run.of("link.lines")["reason"] == "outside"
    assert run.of("loop")["reason"] == "outside"
    assert "Secret." not in run.texts
    assert {run.of(each)["status"] for each in ("link.lines", "loop")} == {"skipped"}
    assert run.finished.exit_status == 0


async def test_a_link_that_leads_to_no_file_is_reported_as_such(
    source: Path, tmp_path: Path
) -> None:
    (source / "gone.lines").symlink_to("nowhere.lines")
    (source / "round.lines").symlink_to("round.lines")
    run = await ran(source, tmp_path / "out")
    for name in ("gone.lines", "round.lines"):
        assert run.of(name)["detail"] == "it is a link that leads to no file"
        assert run.of(name)["status"] == "skipped"


async def test_nothing_is_written_through_a_link_in_the_folder_of_outputs(
    source: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/de").symlink_to(elsewhere)
    run = await ran(source, tmp_path / "out")
    assert run.of("a.lines")["reason"] == "outside"
    assert list(elsewhere.iterdir()) == []
    assert run.finished.exit_status == 1


async def test_names_that_differ_in_case_alone_do_not_share_an_output(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "A.lines").write_text("Capital.")
    run = await ran(source, tmp_path / "out")
    assert {run.of(each)["status"] for each in ("A.lines", "a.lines")} == {"done"}
    assert run.finished.exit_status == 0
    monkeypatch.setattr(Selection, "_ignores_case", lambda _: True)  # as on macOS
    run = await ran(source, tmp_path / "other")
    assert run.of("A.lines")["status"] == "done"
    assert run.of("a.lines")["reason"] == "collision"
    assert run.finished.exit_status == 3


@pytest.mark.parametrize("out", [".", "out", "sub/out"])
async def test_outputs_inside_the_source_are_not_translated(source: Path, out: str) -> None:
    for lang in ("fr", "de"):
        run = await ran(source, source / out, to=(lang,))
        assert len(run.report["documents"]) == 2
        assert (source / out / lang / "sub/b.lines").exists()


async def test_of_a_folder_named_like_a_language_only_the_outputs_are_left_out(
    source: Path,
) -> None:
    (source / "de").mkdir()
    (source / "de/own.lines").write_text("Own.\n")
    (source / "de.lines").write_text("Also.\n")
    for _ in range(2):
        run = await ran(source, source)
        found = {each["path"] for each in run.report["documents"]}
        assert found == {"a.lines", "de.lines", "de/own.lines", "sub/b.lines"}
    (source / "a.lines").unlink()
    run = await ran(source, source)
    assert "de/a.lines" not in {each["path"] for each in run.report["documents"]}
    assert (source / "de/de/own.lines").read_text() == "[de] Own.\n"


async def test_outputs_are_not_read_if_the_manifest_was_lost(source: Path) -> None:
    await ran(source, source)
    (source / ".dragoman/manifest.db").unlink()
    run = await ran(source, source)
    assert {each["path"] for each in run.report["documents"]} == {"a.lines", "sub/b.lines"}


async def test_a_glob_does_not_find_the_outputs(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source)
    for _ in range(2):
        run = await ran(Path("**/*.lines"), Path())
        assert {each["path"] for each in run.report["documents"]} == {"a.lines", "sub/b.lines"}


async def test_the_layout_with_suffixes_does_not_translate_its_own_outputs(
    source: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        run = await ran(source, source, layout="suffix")
        assert len(run.report["documents"]) == 2
    assert (source / "sub/b.de.lines").read_text() == "[de] Two.\n[de] Four.\n"


async def test_a_file_name_that_is_not_utf8_is_translated(source: Path, tmp_path: Path) -> None:
    (source / os.fsdecode(b"\xff\xfe.lines")).write_text("Odd.")
    for _ in range(2):
        run = await ran(source, tmp_path / "out")
        assert run.of("\\udcff\\udcfe.lines")["status"] in {"done", "unchanged"}
    written = tmp_path / "out/de" / os.fsdecode(b"\xff\xfe.lines")
    assert written.read_text() == "[de] Odd."


async def test_odd_names_of_files_are_kept(source: Path, tmp_path: Path) -> None:
    names = ["a\nb", " a", "-", "a\x1b[31m", "\u202ea", "x" * 249, "é" * 124]
    for name in names:
        (source / f"{name}.lines").write_text("Odd.")
    await ran(source, tmp_path / "out")
    for name in names:
        assert (tmp_path / "out/de" / f"{name}.lines").read_text() == "[de] Odd."


async def test_files_that_vanish_or_cannot_be_written_are_reported(
    source: Path, tmp_path: Path
) -> None:
    (source / f"{'x' * 249}.lines").write_text("Long.")

    def translate(item: Item, job: TranslationJob) -> str:
        (source / "a.lines").unlink(missing_ok=True)
        return f"[{job.target_lang}] {item.text}"

    client = InMemoryClient(translate)
    run = await ran(source, tmp_path / "out", client=client, layout="suffix")
    assert "No such file" in run.of("a.lines")["detail"]
    assert "too long" in run.of(f"{'x' * 249}.lines")["detail"]
    assert run.of("sub/b.lines")["status"] == "done"
    assert run.finished.exit_status == 3


async def test_two_runs_into_one_folder_are_refused(source: Path, tmp_path: Path) -> None:
    manifest = Manifest.open(tmp_path / "out/.dragoman/manifest.db")
    with pytest.raises(FolderBusy, match="another run"):
        await ran(source, tmp_path / "out")
    manifest.close()
    assert (await ran(source, tmp_path / "out")).finished.exit_status == 0


async def test_a_folder_of_outputs_that_cannot_be_made_ends_the_run_before_it_begins(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NoFolder, match="Not a directory"):
        await ran(source, tmp_path / "file/out")


def test_a_manifest_that_is_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "manifest.db").mkdir()
    with pytest.raises(OSError, match=r"cannot be opened.*manifest\.db"):
        Manifest.open(tmp_path / "manifest.db")


async def test_a_full_disk_in_the_middle_of_a_large_file_ends_the_run(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (f"Line {number} of a file that fills a pipe." for number in range(20_000))
    (source / "a.lines").write_text("\n".join(lines))
    add_segments = Manifest.add_segments

    def full_after_some(manifest: Manifest, file: int, rows: Iterable[Any]) -> None:
        if manifest.number("SELECT COUNT(*) FROM occurrence") > 8_000:
            raise NoSpace("as requested by the test")
        add_segments(manifest, file, rows)

    monkeypatch.setattr(Manifest, "add_segments", full_after_some)
    async with asyncio.timeout(patient(60)):
        with pytest.raises(NoSpace):
            await ran(source, tmp_path / "out")


@pytest.mark.parametrize(
    "content", [b"not a database" * 100, b"", b"SQLite format 3\0" + b"x" * 5000]
)
async def test_an_unreadable_manifest_is_moved_aside(
    source: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "out/.dragoman/manifest.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    run = await ran(source, tmp_path / "out")
    assert run.finished.exit_status == 0
    assert path.with_name("manifest.db.unreadable-1").exists() == bool(content)
    moved_to = "manifest.db.unreadable-1" if content else None
    assert run.report.get("manifest_moved_to") == moved_to


async def test_a_file_that_changes_before_it_is_written_is_read_again_in_the_same_run(
    source: Path, tmp_path: Path
) -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        (source / "a.lines").write_text("Changed.\nTwo.\n")
        return f"[{job.target_lang}] {item.text}"

    client = InMemoryClient(translate)
    run = await ran(source, tmp_path / "out", client=client, to=("de", "fr"))
    assert sorted(run.texts) == sorted(["One.", "Two.", "Four.", "Changed."] * 2)
    for lang in ("de", "fr"):
        written = (tmp_path / "out" / lang / "a.lines").read_text()
        assert written == f"[{lang}] Changed.\n[{lang}] Two.\n"
    assert run.finished.exit_status == 0
    assert [each["path"] for each in run.report["documents"]].count("a.lines") == 2
    again = await ran(source, tmp_path / "out", to=("de", "fr"))
    assert {each.status for each in again.ended.values()} == {"unchanged"}


async def test_a_file_that_breaks_while_it_is_translated_is_reported_with_its_reason(
    source: Path, tmp_path: Path
) -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        (source / "a.lines").write_text("#corrupt\n")
        return f"[de] {item.text}"

    run = await ran(source, tmp_path / "out", client=InMemoryClient(translate))
    assert run.of("a.lines")["reason"] == "corrupt"
    assert run.finished.exit_status == 3


async def test_a_file_that_changes_twice_before_it_is_written_is_reported(
    source: Path, tmp_path: Path
) -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        name = "Too." if item.text == "Changed." else "Changed."
        (source / "a.lines").write_text(f"{name}\n")
        return f"[de] {item.text}"

    run = await ran(source, tmp_path / "out", client=InMemoryClient(translate))
    assert run.of("a.lines")["reason"] == "changed"
    assert "Too." not in run.texts
    (source / "a.lines").write_text("Changed.\nToo.\n")
    again = await ran(source, tmp_path / "out")
    assert again.texts == ["Too."]
    assert again.of("a.lines")["status"] == "done"


# --- segments that fail ---------------------------------------------------------------------------


def failing(*texts: str, code: FailureCode = FailureCode.ENGINE_FAILED) -> InMemoryClient:
    def translate(item: Item, job: TranslationJob) -> str:
        if item.text in texts:
            raise ItemFailed(code)
        return f"[de] {item.text}"

    return InMemoryClient(translate)


async def test_a_failed_segment_keeps_its_source_after_a_second_attempt_of_its_own(
    source: Path, tmp_path: Path
) -> None:
    run = await ran(source, tmp_path / "out", client=failing("Two."))
    assert (tmp_path / "out/de/a.lines").read_text() == "[de] One.\nTwo.\n# three\n"
    assert run.texts.count("Two.") == 2
    assert run.texts.count("One.") == 1
    found = run.of("a.lines")
    assert (found["status"], found["detail"]) == (
        "partial", "1 text stays in the source language, at line 2 (engine_failed)"
    )  # fmt: skip
    [issue] = found["issues"]
    assert (issue["segment"], issue["place"]) == (2, "line 2")
    assert (issue["code"], issue["detail"], issue["kind"]) == ("engine_failed", None, None)
    assert run.finished.exit_status == 3
    again = await ran(source, tmp_path / "out")
    assert again.texts == ["Two."]
    assert again.of("a.lines")["status"] == "done"


async def test_an_error_that_is_not_retryable_is_not_repeated(source: Path, tmp_path: Path) -> None:
    run = await ran(source, tmp_path / "out", client=failing("Two.", code=FailureCode.TOO_LONG))
    assert run.texts.count("Two.") == 1


async def test_with_on_fail_fail_no_incomplete_document_is_written(
    source: Path, tmp_path: Path
) -> None:
    translation = Translation(on_fail="fail")
    run = await ran(source, tmp_path / "out", client=failing("One."), translation=translation)
    assert run.of("a.lines")["status"] == "failed"
    assert not (tmp_path / "out/de/a.lines").exists()
    assert run.of("sub/b.lines")["status"] == "done"


async def test_a_translation_that_breaks_the_markup_keeps_its_source_and_the_others_stay(
    source: Path, tmp_path: Path
) -> None:
    lines = [f"Line {number}." for number in range(100)]
    (source / "a.lines").write_text("\n".join(lines))
    bad = {"Line 7.": "# heading", "Line 50.": "two\nlines", "Line 51.": "#", "Line 60.": ""}

    def translate(item: Item, job: TranslationJob) -> str:
        return bad.get(item.text, f"[de] {item.text}")

    run = await ran(source, tmp_path / "out", client=InMemoryClient(translate))
    expected = [line if line in bad else f"[de] {line}" for line in lines]
    assert (tmp_path / "out/de/a.lines").read_text() == "\n".join(expected)
    codes = {issue["place"]: issue["code"] for issue in run.of("a.lines")["issues"]}
    assert codes == {
        "line 8": "read_back",
        "line 51": "read_back",
        "line 52": "read_back",
        "line 61": "read_back",
    }


async def test_the_report_holds_no_text(source: Path, tmp_path: Path) -> None:
    await ran(source, tmp_path / "out", client=failing("Two."))
    report = (tmp_path / "out/report.json").read_text()
    assert not [text for text in ("One.", "Two.", "Four.") if text in report]


# --- languages, terms, long texts -----------------------------------------------------------------


async def test_a_format_with_segments_of_its_own_per_language_is_read_for_each(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.perlang").write_text("One.\n")
    for wanted in (["Extra.", "One.", "One."], []):
        run = await ran(tmp_path / "in", tmp_path / "out", to=("de", "pl"))
        assert sorted(run.texts) == wanted


async def test_another_glossary_asks_again_for_the_segments_alone_that_it_concerns(
    source: Path, tmp_path: Path
) -> None:
    await ran(source, tmp_path / "out")
    client = InMemoryClient()
    terms = Translation(glossary={"four": "vier", "nothing": "nichts"})
    run = await ran(source, tmp_path / "out", client=client, translation=terms)
    assert run.texts == ["Four."]
    assert client.submitted[0].glossary == {"four": "vier"}


async def test_a_text_too_long_for_a_job_is_cut_and_joined(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    text = "A sentence of some length.  " * 3_000
    (tmp_path / "in/a.lines").write_text(text)
    identity = InMemoryClient(lambda item, job: item.text)
    run = await ran(tmp_path / "in", tmp_path / "out", client=identity)
    assert (tmp_path / "out/de/a.lines").read_text() == text
    assert max(len(each) for each in run.texts) <= 16 * 1024


async def test_a_run_that_is_stopped_before_it_submits_writes_a_report(
    source: Path, tmp_path: Path
) -> None:
    stop, client = Stop(), InMemoryClient()
    stop()
    request = RunRequest((source,), ("de",), tmp_path / "out")
    events = [event async for event in run_documents(client, request, stop=stop)]
    run = Ran(tmp_path / "out", events, client)
    assert (run.texts, run.finished.exit_status) == ([], 3)


async def test_a_run_whose_jobs_no_worker_takes_says_so(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_LOOK_S", 0.01)
    monkeypatch.setattr(running, "Quiet", partial(Quiet, quiet_s=0))
    stop = Stop()
    client = InMemoryClient(held=True)
    reported = []
    given = documents.translate(client, [source], to=["de"], out=tmp_path / "out", stop=stop)
    async for event in given:
        if isinstance(event, Waiting):
            reported.append(event.why)
            stop()
    assert reported == [NO_RESULT]


class Cancelling(InMemoryClient):
    """Answers nothing, and stops the run when the first job was submitted."""

    def __init__(self, *, redis_is_away: bool = False) -> None:
        super().__init__(held=True)
        self.stop = Stop()
        self.cancelled: list[str] = []
        self._redis_is_away = redis_is_away

    async def submit(self, job: TranslationJob, **more: Any) -> JobHandle:
        self.stop()
        return await super().submit(job, **more)

    async def cancel(self, *, document_id: str) -> None:
        if self._redis_is_away:
            raise StoreUnreachable("Redis could not be reached")
        self.cancelled.append(document_id)


async def stopped(source: Path, out: Path, client: Cancelling, *to: str, **more: Any) -> Ran:
    given = documents.translate(client, [source], to=to, out=out, stop=client.stop, **more)
    return Ran(out, [event async for event in given], client)


async def test_cancel_ends_the_jobs_in_flight_for_the_targets_of_the_run_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GRACE_S", 0.0)
    out = tmp_path / "out"
    await stopped(source, out, Cancelling(), "fr")
    client = Cancelling()
    run = await stopped(source, out, client, "de", cancel=True)
    assert client.cancelled == [f"{run.report['run']}-de-1"]
    with closing(Manifest.open(out / ".dragoman/manifest.db")) as manifest:
        langs = manifest.rows("SELECT lang FROM job j JOIN target t ON t.id=target WHERE ended=0")
        assert list(langs) == [("fr",)]
    run = await ran(source, out)
    assert (len(run.texts), run.finished.exit_status) == (3, 0)


class CancelledInAnOutage(InMemoryClient):
    """Is unavailable once, for the second job, while another program cancels the document."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    async def submit(self, job: TranslationJob, **more: Any) -> JobHandle:
        self._calls += 1
        if self._calls == 2:
            assert job.document is not None
            await self.cancel(document_id=job.document.document_id)
            raise StoreUnreachable("Redis could not be reached")
        return await super().submit(job, **more)


async def test_a_cancellation_during_an_outage_stays_when_the_run_goes_on(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage, "_PAUSE_S", 0.0)
    (source / "a.lines").write_text("".join(f"Line {number}.\n" for number in range(200)))
    client = CancelledInAnOutage()
    given = documents.translate(client, [source], to=["de"], out=tmp_path / "out", in_flight=1)
    async for _ in given:
        pass
    document = client.submitted[0].document
    jobs = [
        job
        for job in client.submitted
        if job.document and document and job.document.document_id == document.document_id
    ]
    first, *later = [await client.job(job.job_id).status() for job in jobs]
    assert first == "completed"
    assert later
    assert set(later) == {"cancelled"}


async def test_a_run_that_cannot_cancel_its_jobs_writes_its_report(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GRACE_S", 0.0)
    client = Cancelling(redis_is_away=True)
    run = await stopped(source, tmp_path / "out", client, "de", cancel=True)
    assert run.report["not_cancelled"] == "Redis could not be reached"
    assert {each["reason"] for each in run.report["documents"]} == {"interrupted"}
    assert run.finished.exit_status == 3


async def test_a_dry_run_in_python_counts_and_submits_nothing(source: Path, tmp_path: Path) -> None:
    client = InMemoryClient()
    given = documents.translate(client, [source], to=["de"], out=tmp_path / "o", dry_run=True)
    [planned] = [event async for event in given if isinstance(event, Planned)]
    assert replace(planned, budget=None) == Planned(2, 4, 3, 3, 13)
    assert client.submitted == []


async def test_a_run_over_files_that_are_known_can_be_stopped(source: Path, tmp_path: Path) -> None:
    for number in range(50):
        (source / f"{number}.lines").write_text("One.")
    await ran(source, tmp_path / "out")
    stop = Stop()
    request = RunRequest((source,), ("de",), tmp_path / "out")
    read = []
    async for event in run_documents(InMemoryClient(), request, stop=stop):
        if isinstance(event, Extracted):
            stop()
            read.append(event.path)
    assert len(read) < 10


async def test_a_dry_run_knows_its_seconds_if_an_earlier_run_had_a_rate(
    source: Path, tmp_path: Path
) -> None:
    async def seconds(*to: str) -> float | None:
        request = RunRequest((source,), to, tmp_path / "out", dry_run=True)
        events = [event async for event in run_documents(InMemoryClient(), request)]
        [planned] = [event for event in events if isinstance(event, Planned)]
        return planned.seconds

    assert await seconds("de") is None
    await ran(source, tmp_path / "out")
    manifest = Manifest.open(tmp_path / "out/.dragoman/manifest.db")
    with manifest.writing() as db:
        db.execute("UPDATE run SET segments=30, seconds=60")
    manifest.close()
    assert await seconds("de") == 0
    assert await seconds("fr", "it") == 12


async def test_a_file_that_is_read_per_language_is_one_planned_document_in_each(
    source: Path, tmp_path: Path
) -> None:
    (source / "a.perlang").write_text("One.\n")
    first = await ran(source, tmp_path / "out", to=("de", "pl"))
    again = await ran(source, tmp_path / "out")
    assert (first.planned.documents, again.planned.documents) == (len(first.ended), 3) == (6, 3)


async def test_one_string_is_not_taken_for_a_list(source: Path, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"paths": str(source), "to": ["de"]}, TypeError, "paths: give a list"),
        ({"paths": source, "to": ["de"]}, TypeError, "paths: give a list"),
        ({"paths": [source], "to": "de"}, TypeError, r"to: give a list .*\['de'\]"),
        ({"paths": [source], "to": []}, ValueError, "to: give at least one"),
    ]
    for given, error, message in wrong:
        run = documents.translate(InMemoryClient(), out=tmp_path / "out", **given)
        with pytest.raises(error, match=message):
            await anext(run)


async def test_a_dry_run_submits_and_writes_nothing(source: Path, tmp_path: Path) -> None:
    client = InMemoryClient()
    request = RunRequest((source,), ("de",), tmp_path / "out", dry_run=True)
    events = [event async for event in run_documents(client, request)]
    assert client.submitted == []
    assert not (tmp_path / "out/report.json").exists()
    [planned] = [event for event in events if isinstance(event, Planned)]
    assert replace(planned, budget=None) == Planned(2, 4, 3, 3, 13)
    assert isinstance(events[-1], Finished)
    assert events[-1].totals["planned"] == asdict(planned)
