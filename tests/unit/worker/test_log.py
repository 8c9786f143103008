"""Can a document's text reach the log by way of an error, and can a library flood it?"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from dragoman_worker import log
from dragoman_worker.cli.options import report_end
from dragoman_worker.log import Seldom, where
from dragoman_worker.settings import EngineSettings, LogSettings, WorkerSettings
from support.plugins.own_log import own_log

QUOTED = "the text of a document"


def test_where_tells_kind_and_place_of_an_error_but_not_its_message() -> None:
    def inner() -> None:
        raise ValueError(QUOTED)

    with pytest.raises(ValueError, match=QUOTED) as caught:
        inner()
    told = where(caught.value)
    assert "ValueError" in told
    assert "inner" in told
    assert QUOTED not in told


def test_where_tells_the_kind_of_an_error_that_was_never_raised() -> None:
    assert where(ValueError(QUOTED)) == "ValueError"


def test_where_says_nothing_of_a_group_s_messages() -> None:
    def together() -> None:
        raise ExceptionGroup(QUOTED, [ValueError(QUOTED)])

    with pytest.raises(ExceptionGroup) as caught:
        together()
    assert QUOTED not in where(caught.value)


# --- libraries that repeat themselves -------------------------------------------------------------


class Clock:
    """Seconds that pass when a test says so."""

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
    seldom = Seldom(clock)
    assert seldom.filter(line("no node %s", 0))
    assert not any(seldom.filter(line("no node %s", node)) for node in range(150))
    clock.now_s = 61.0
    again = line("no node %s", 7)
    assert seldom.filter(again)
    assert repeated(again) == 150
    assert not seldom.filter(line("no node %s", 7))
    clock.now_s = 3_600.0
    last = line("no node %s", 7)
    assert seldom.filter(last), "what was held back is told whenever the line comes again"
    assert repeated(last) == 1


def test_each_kind_of_line_counts_for_itself() -> None:
    seldom = Seldom(Clock())
    kinds = [line("a"), line("b"), line("a", name="aiokafka.conn"), line(ValueError("c"))]
    assert all(map(seldom.filter, kinds))
    assert all(repeated(kind) == 0 for kind in kinds)


def test_messages_that_all_differ_do_not_pile_up() -> None:
    seldom = Seldom(Clock())
    for number in range(5_000):
        assert seldom.filter(line(f"connection {number} broke"))
    assert len(seldom._kinds) <= log._KINDS


@pytest.fixture
def standard_logging() -> Iterator[None]:
    """Puts the loggers back as pytest had them."""
    with own_log():
        yield


@pytest.mark.usefixtures("standard_logging")
def test_a_flood_of_a_library_is_one_line_in_our_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure(LogSettings(), worker_id="w1")
    client = logging.getLogger("aiokafka.consumer.fetcher")
    for node in range(1_000):
        client.error("Unable connect to node with id %s", node)
    client.error("another")
    told = [json.loads(text) for text in capsys.readouterr().err.splitlines()]
    assert [each["event"] for each in told] == ["Unable connect to node with id 0", "another"]
    assert {each["worker"] for each in told} == {"w1"}


# --- all of stderr is the log ---------------------------------------------------------------------


def lines_of(program: str) -> list[dict[str, Any]]:
    """What a program writes to stderr, each line of which must be JSON."""
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


def test_what_python_itself_prints_goes_through_the_log_without_a_text() -> None:
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
    told = lines_of(program)
    assert told[0]["event"] == "crashed"
    assert len(told) == 4
    assert QUOTED not in json.dumps(told)
    assert any("quoting" in place for place in told[-1]["stack"])


@pytest.mark.parametrize("form", ["json", "text"])
def test_the_last_line_is_in_the_log_s_format(
    form: Literal["json", "text"], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = WorkerSettings(
        engine=EngineSettings(kind="echo"), log=LogSettings(format=form), worker_id="w"
    )
    report_end(settings, 1, "nobody at 127.0.0.1:1")
    said = capsys.readouterr().err
    if form == "text":
        assert said == "dragoman-worker: nobody at 127.0.0.1:1\n"
    else:
        line = json.loads(said)
        assert (line["status"], line["reason"]) == (1, "nobody at 127.0.0.1:1")
        assert (line["level"], line["worker"]) == ("critical", "w")
