"""The message for a full disk names the directory, its purpose and what to do."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman_text.detection import LanguageDetector
from dragoman_worker.engines.vllm.start_failures import start_failure
from dragoman_worker.errors import Halt
from dragoman_worker.process import full_disk as module
from dragoman_worker.process.full_disk import full_disk


def no_space(file: str | None = None) -> OSError:
    return OSError(errno.ENOSPC, "No space left on device", file)


def test_other_errors_are_not_a_full_disk() -> None:
    assert full_disk(ValueError("No space left on device")) is None
    assert full_disk(OSError(errno.EACCES, "Permission denied", "/x")) is None


def test_the_file_and_its_purpose_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    message = full_disk(no_space(str(tmp_path / "x" / "0.sock")))
    assert message is not None
    assert str(tmp_path / "x" / "0.sock") in message
    assert "TMPDIR" in message


def test_a_wrapped_cause_is_found() -> None:
    wrapped = RuntimeError("engine")
    wrapped.__cause__ = ValueError()
    wrapped.__cause__.__context__ = OSError(errno.EDQUOT, "Disk quota exceeded", "/q/file")
    assert "/q/file" in (full_disk(wrapped) or "")
    looped = RuntimeError()
    looped.__context__ = ValueError()
    looped.__context__.__context__ = looped
    assert full_disk(looped) is None


def test_without_a_file_name_the_full_directories_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(tmp_path / "not" / "there"))

    def statvfs(place: Path) -> SimpleNamespace:
        free = 0 if place == tmp_path else 10**9
        return SimpleNamespace(f_bavail=free, f_frsize=4096)

    monkeypatch.setattr(os, "statvfs", statvfs)
    message = full_disk(no_space()) or ""
    assert "VLLM_CACHE_ROOT" in message
    assert "TMPDIR" not in message
    monkeypatch.setattr(module, "_free", lambda _: 10.0**9)
    assert "unknown directory" in (full_disk(no_space()) or "")


def test_a_machine_without_a_temporary_or_home_directory_gets_the_message_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_usable() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    monkeypatch.setattr(Path, "home", no_home)
    assert "the disk is full" in (full_disk(no_space()) or "")
    assert "the disk is full at /x" in (full_disk(no_space("/x")) or "")


def test_an_engine_start_on_a_full_disk_reports_the_disk_and_not_a_missing_model() -> None:
    for error, reason in (
        (no_space("/cache/x"), None),
        (RuntimeError("died"), "OSError: [Errno 28] No space left on device"),
    ):
        failure = start_failure(error, reason, "/models/m")
        assert isinstance(failure, Halt)
        assert "the disk is full" in str(failure)


def test_the_language_model_needs_no_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked it has 68 MB, and a container's temporary directory often only 64 MB."""

    def full(*_: object, **__: object) -> None:
        raise no_space()

    for name in ("TemporaryFile", "NamedTemporaryFile", "mkstemp"):
        monkeypatch.setattr(tempfile, name, full)
    found = LanguageDetector().detect("Das ist ein ganz gewöhnlicher deutscher Satz.")
    assert found is not None
    assert found.language == "de"
