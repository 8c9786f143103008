"""Tests that errors bring no document text into the log and libraries cannot flood it."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal

import pytest
from structlog import DropEvent

from dragoman_worker import log
from dragoman_worker.cli.options import report_failure
from dragoman_worker.log import RepeatFilter, RepeatProcessor, where
from dragoman_worker.settings import EngineSettings, LogSettings, WorkerSettings
from support.plugins.own_log import own_log

QUOTED = "the text of a document"


def test_where_names_the_kind_and_place_of_an_error_but_not_its_message() -> None:
    def inner() -> None:
        raise ValueError(QUOTED)

    with pytest.raises(ValueError, match=QUOTED) as caught:
        inner()
    place = where(caught.value)
    assert "ValueError" in place
    assert "inner" in place
    assert QUOTED not in place


def test_where_names_the_kind_of_an_error_that_was_never_raised() -> None:
    assert where(ValueError(QUOTED)) == "ValueError"


def test_where_contains_no_message_of_an_exception_group() -> None:
    def together() -> None:
        raise ExceptionGroup(QUOTED, [ValueError(QUOTED)])

    with pytest.raises(ExceptionGroup) as caught:
        together()
    assert QUOTED not in where(caught.value)


# --- libraries that repeat themselves -------------------------------------------------------------


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def line(message: object, *arguments: object, name: str = "aiokafka") -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "client.py", 1, message, arguments, None)


def repeated(record: logging.LogRecord) -> int:
    count: int = record.__dict__.get("repeated", 0)
    return count


def test_a_line_of_a_library_is_written_at_once_and_then_once_a_minute_with_its_count() -> None:
    clock = Clock()
    repeat_filter = RepeatFilter(clock)
    assert repeat_filter.filter(line("no node %s", 0))
    assert not any(repeat_filter.filter(line("no node %s", node)) for node in range(150))
    clock.now_s = 61.0
    again = line("no node %s", 7)
    assert repeat_filter.filter(again)
    assert repeated(again) == 150
    assert not repeat_filter.filter(line("no node %s", 7))
    clock.now_s = 3_600.0
    last = line("no node %s", 7)
    assert repeat_filter.filter(last), (
        "the count of suppressed lines comes with the next written line"
    )
    assert repeated(last) == 1


def test_each_kind_of_line_is_counted_separately() -> None:
    repeat_filter = RepeatFilter(Clock())
    kinds = [line("a"), line("b"), line("a", name="aiokafka.conn"), line(ValueError("c"))]
    assert all(map(repeat_filter.filter, kinds))
    assert all(repeated(kind) == 0 for kind in kinds)


def test_messages_that_all_differ_do_not_accumulate() -> None:
    repeat_filter = RepeatFilter(Clock())
    for number in range(5_000):
        assert repeat_filter.filter(line(f"connection {number} broke"))
    assert len(repeat_filter._repeats._kinds) <= log._KINDS


@pytest.fixture
def standard_logging() -> Iterator[None]:
    """Restore the loggers of pytest."""
    with own_log():
        yield


@pytest.mark.usefixtures("standard_logging")
def test_repeated_lines_of_a_library_are_one_line_in_our_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure(LogSettings(), worker_id="w1")
    client = logging.getLogger("aiokafka.consumer.fetcher")
    for node in range(1_000):
        client.error("Unable connect to node with id %s", node)
    client.error("another")
    lines = [json.loads(text) for text in capsys.readouterr().err.splitlines()]
    assert [each["event"] for each in lines] == ["Unable connect to node with id 0", "another"]
    assert {each["worker"] for each in lines} == {"w1"}


def test_a_thousand_rejected_records_are_one_line_per_code_and_a_count() -> None:
    clock = Clock()
    limit = RepeatProcessor(clock)

    def passed(code: str, number: int) -> dict[str, Any] | None:
        event = {"event": "rejected", "code": code, "place": f"jobs/0/{number}"}
        try:
            return dict(limit(None, "warning", event))
        except DropEvent:
            return None

    lines = [passed(code, number) for number in range(500) for code in ("invalid_job", "conflict")]
    assert len([line for line in lines if line]) == 2
    clock.now_s = 61.0
    last = passed("conflict", 500)
    assert last is not None
    assert last["repeated"] == 499


def test_events_that_no_record_causes_are_never_suppressed() -> None:
    limit = RepeatProcessor(Clock())
    assert all(limit(None, "error", {"event": "replica_failed"}) for _ in range(10))


# --- logs that cannot be written ------------------------------------------------------------------


class Unspeakable:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError(QUOTED)


def full_pipe() -> int:
    """Return the end of a pipe that nobody reads and that takes no more."""
    _, end = os.pipe()
    os.set_blocking(end, False)
    with suppress(BlockingIOError):
        while True:
            os.write(end, bytes(4096))
    os.set_blocking(end, True)
    return end


def pipe_without_reader() -> int:
    reading, end = os.pipe()
    os.close(reading)
    return end


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def closed() -> int:
    reading, end = os.pipe()
    os.close(reading)
    os.close(end)
    return end


@pytest.mark.usefixtures("standard_logging")
@pytest.mark.parametrize("made", [full_pipe, pipe_without_reader, full_disk, closed])
@pytest.mark.parametrize("form", ["json", "text"])
def test_lines_that_cannot_be_written_are_dropped_and_counted(
    made: Callable[[], int], form: Literal["json", "text"], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream(io.StringIO):
        def fileno(self) -> int:
            return descriptor

    descriptor = made()
    monkeypatch.setattr(sys, "stderr", Stream())
    log.configure(LogSettings(format=form), worker_id="w1")
    log.take_dropped()
    log.logger().error("halting", reason="x" * 100_000)
    logging.getLogger("aiokafka").error("no node %s", 1)
    assert log.take_dropped() == 2
    assert log.take_dropped() == 0


@pytest.mark.usefixtures("standard_logging")
def test_an_event_that_cannot_be_shown_is_dropped_and_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure(LogSettings(), worker_id="w1")
    log.take_dropped()
    log.logger().error("halting", reason=Unspeakable())
    logging.getLogger("aiokafka").error("%d", "no number")
    log.logger().error("next")
    assert log.take_dropped() == 2
    assert [json.loads(text)["event"] for text in capsys.readouterr().err.splitlines()] == ["next"]


# --- everything on stderr is a log line -----------------------------------------------------------


def lines_of(program: str) -> list[dict[str, Any]]:
    """Run a program and return the lines of its stderr, each of which must be JSON."""
    done = subprocess.run(
        [sys.executable, "-c", _CONFIGURED + program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return [json.loads(line) for line in done.stderr.splitlines()]


_CONFIGURED = """
import threading, warnings
from dragoman_worker import log
from dragoman_worker.settings import LogSettings
log.configure(LogSettings(), worker_id="w")
log.adopt_interpreter()
def quoting(): raise ValueError("the text of a document")
"""


def test_what_python_prints_goes_through_the_log_without_document_text() -> None:
    program = """
thread = threading.Thread(target=quoting, name="beside")
thread.start()
thread.join()
warnings.warn("be warned")
class Odd:
    def __del__(self): quoting()
Odd()
quoting()
"""
    lines = lines_of(program)
    assert lines[0]["event"] == "crashed"
    assert len(lines) == 4
    assert QUOTED not in json.dumps(lines)
    assert any("quoting" in place for place in lines[-1]["stack"])


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_last_line_is_in_the_log_s_format(
    form: Literal["json", "text"], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = WorkerSettings(
        engine=EngineSettings(kind="echo"), log=LogSettings(format=form), worker_id="w"
    )
    report_failure(settings, 1, "nobody at 127.0.0.1:1")
    written = capsys.readouterr().err
    if form == "text":
        assert written == "dragoman-worker: nobody at 127.0.0.1:1\n"
    else:
        line = json.loads(written)
        assert (line["status"], line["reason"]) == (1, "nobody at 127.0.0.1:1")
        assert (line["level"], line["worker"]) == ("critical", "w")
