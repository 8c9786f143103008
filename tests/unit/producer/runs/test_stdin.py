"""Tests of `dragoman translate -`, with a client in memory."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dragoman_documents.parts import source as source_parts
from dragoman_producer import client as client_module
from dragoman_producer.cli import commands, translate_stdin
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import Item, TranslationJob

Translate = Callable[[Item, TranslationJob], str]
ARGUMENTS = ["translate", "-", "--to", "de", "--format", "lines"]


pytestmark = pytest.mark.usefixtures("line_formats")


@pytest.fixture(autouse=True)
def folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield temporary
    assert list(temporary.iterdir()) == []


def translated(
    monkeypatch: pytest.MonkeyPatch,
    given: bytes,
    *more: str,
    translate: Translate = lambda item, job: f"[de] {item.text}",
) -> Result:
    monkeypatch.setattr(
        client_module, "TranslationClient", lambda settings: InMemoryClient(translate)
    )
    return CliRunner().invoke(commands._commands(), [*ARGUMENTS, *more], input=given)


def test_stdin_is_translated_and_stdout_holds_the_document_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = translated(monkeypatch, b"One.\n# two\nThree.\n")
    assert done.exit_code == 0, done.output
    assert done.stdout_bytes == b"[de] One.\n# two\n[de] Three.\n"
    assert "1 of 1 document," in done.stderr
    assert "report:" not in done.stderr


@pytest.mark.parametrize("given", [b"", b"# markup alone"])
def test_a_document_without_text_comes_back(monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    done = translated(monkeypatch, given)
    assert (done.exit_code, done.stdout_bytes) == (0, given)


def test_a_document_that_cannot_be_read_writes_nothing_and_exits_as_a_file_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = translated(monkeypatch, b"#corrupt\nText.")
    assert (done.exit_code, done.stdout_bytes) == (1, b"")
    assert "stdin: not read: it is broken (corrupt)" in done.stderr


def test_a_failed_segment_keeps_its_source_and_the_exit_status_is_3(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        if item.text == "Two.":
            raise ItemFailed(FailureCode.ENGINE_FAILED)
        return f"[de] {item.text}"

    done = translated(monkeypatch, b"One.\nTwo.", translate=translate)
    assert (done.exit_code, done.stdout_bytes) == (3, b"[de] One.\nTwo.")


def test_a_dry_run_of_stdin_writes_nothing_to_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    done = translated(monkeypatch, b"One.", "--dry-run")
    assert (done.exit_code, done.stdout_bytes) == (0, b"")
    assert "1 segment," in done.stderr


def test_no_more_of_stdin_is_stored_than_shows_that_it_is_too_large(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(source_parts, "LARGEST_WHOLE", 10)
    for format_name, size in (("html", 11), ("csv", 100)):
        translate_stdin.store(tmp_path / format_name, io.BytesIO(b"x" * 100), format_name)
        assert (tmp_path / format_name).stat().st_size == size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--to", "de"], "give --format"),
        (["-", "other.md", "--to", "de", "--format", "lines"], "no other PATH"),
        (["-", "--to", "de,fr", "--format", "lines"], "one language"),
        (["-", "--to", "de", "--format", "lines", "--out", "x"], "leave --out away"),
        (["-", "--to", "de", "--format", "lines", "--json"], "--json"),
        (["-", "--to", "de", "--format", "none"], "--format: 'none' is not valid; choose"),
        (["docs", "--to", "de"], "--out DIR is missing"),
    ],
)
def test_options_that_do_not_fit_stdin_exit_with_2_and_one_line(
    arguments: list[str], message: str
) -> None:
    done = CliRunner().invoke(commands._commands(), ["translate", *arguments], input=b"One.")
    assert (done.exit_code, done.stdout_bytes) == (2, b"")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
