"""What a run says of names, full disks and missing packages, to people and to programs."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman_producer import client as client_module
from dragoman_producer.cli import commands
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.runs.report import RunReport
from dragoman_producer.runs.request import RunRequest
from dragoman_producer.testing import InMemoryClient


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(client_module, "TranslationClient", lambda settings: InMemoryClient())
    Path("in").mkdir()


def translated(*more: str) -> Result:
    arguments = ["translate", "in", "--to", "de", "--out", "out", *more]
    return CliRunner().invoke(commands._commands(), arguments)


def strings(value: Any) -> Iterator[str]:
    """Yield all strings of a JSON value."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from (key, *strings(each))
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_missing_package_is_one_line_and_ends_the_run(
    more: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/pyromark.py").write_text("raise ModuleNotFoundError(name='pyromark')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    for number in range(9):
        Path(f"in/{number}.md").write_text("Text.\n")
    done = translated(*more)
    assert (done.exit_code, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "pyromark" in line
    assert "'.[documents]'" in line


def test_a_report_is_strict_json_without_controls_whatever_names_and_keys_are() -> None:
    odd = ["a\udcffb", "gpj\u202etxt", "red\x1b[31m", "c1\x9b31m"]
    for name in odd:
        with suppress(OSError):  # names that the file system refuses
            Path(f"in/{name}.txt").write_text("Hello you.\n")
    half = {f"{name.replace(chr(0xDCFF), chr(0xD800))}": "{n, plural, one {" for name in odd}
    Path("in/keys.json").write_text(json.dumps(half))
    Path("in/rows.jsonl").write_text(json.dumps({"k\ud800": "Hello you"}) + "\n")
    done = translated("--exclude", "no\udcff", "--json")
    assert done.exit_code in {0, 3}, done.output
    written = Path("out/report.json").read_text("utf-8")
    for text in (written, *done.stdout.splitlines()):
        assert all(each.isprintable() or each == "\n" for each in text)
        for each in strings(json.loads(text)):
            each.encode()  # no half of a character
    paths = {each["path"] for each in json.loads(written)["documents"]}
    assert {"a\\udcffb.txt", "gpj\u202etxt.txt", "keys.json", "rows.jsonl"} <= paths


def test_a_report_that_the_disk_does_not_hold_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Manifest.open(tmp_path / "out/.dragoman/manifest.db")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(RunReport, "_write_documents", full)
    report = RunReport(RunRequest((), ("de",), tmp_path / "out"), manifest, "run")
    with pytest.raises(OSError, match=r"report\.json") as caught:
        report.write({})
    assert caught.value.errno == errno.ENOSPC
    assert [each.name for each in (tmp_path / "out").rglob("report.json")] == []
    manifest.close()


@pytest.mark.parametrize(("code", "reason"), [(errno.ENOSPC, "no_space"), (errno.EIO, "outside")])
def test_a_file_that_cannot_be_copied_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    def failing(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    Path("in/picture.png").write_bytes(b"x")
    monkeypatch.setattr("shutil.copyfile", failing)
    done = translated("--others", "copy")
    [line] = [each for each in done.stderr.splitlines() if "picture.png" in each]
    assert "out/de/picture.png" in line
    assert f"({reason})" in line
