"""What other programs wrote never controls a terminal; to a pipe or a file it is exact."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dragoman_connections.consoles import SafeConsole
from dragoman_connections.terminal import escaped, json_line, print_to
from dragoman_producer.cli import showing
from dragoman_producer.cli.commands import dragoman
from dragoman_producer.errors import Unreadable
from dragoman_schemas.results import ErrorInfo, ItemResult, TranslationResult
from dragoman_worker import log

ROOT = Path(__file__).parents[3]
BIDI = "\u202a\u202e\u2066\u2069"
CURSOR_AND_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
HOSTILE = f"a\x1b]0;title\x07b\x9b31mc\x7fd\r{BIDI}e\x85\x00f"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    @property
    def controls(self) -> set[str]:
        """Characters that would control it, but for those of a line and of Rich's displays."""
        rest = CURSOR_AND_STYLE.sub("", self.getvalue())
        return {sign for sign in rest if is_control(sign)}


def is_control(sign: str) -> bool:
    other = unicodedata.category(sign) == "Cc" and sign not in "\n\t"
    return other or sign in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@contextmanager
def terminals() -> Iterator[tuple[Terminal, Terminal]]:
    """Give stdout and stderr as terminals."""
    with redirect_stdout(Terminal()) as out, redirect_stderr(Terminal()) as err:
        yield out, err


def test_every_control_character_is_escaped_and_every_other_one_stays() -> None:
    for sign in map(chr, [*range(0xD800), *range(0xE000, 0x3000 + 0xE000)]):
        assert (escaped(sign) != sign) == is_control(sign)
        assert not any(map(is_control, escaped(sign)))
    assert escaped("\x1b[m \x9b \u202e\r\n\tü") == "\\x1b[m \\x9b \\u202e\\r\n\tü"


def test_a_pipe_gets_the_exact_text_and_a_closed_stream_nothing() -> None:
    pipe = io.StringIO()
    print_to(pipe, HOSTILE)
    print_to(None, HOSTILE)
    assert pipe.getvalue() == f"{HOSTILE}\n"


def test_json_is_the_same_value_without_control_characters_even_for_a_pipe() -> None:
    line = json_line({HOSTILE: [HOSTILE, "ü 漢 \u200d"]})
    assert json.loads(line) == {HOSTILE: [HOSTILE, "ü 漢 \u200d"]}
    assert not any(map(is_control, line))
    assert "ü 漢" in line


def test_a_console_styles_its_texts_but_they_do_not_control_it() -> None:
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE, style="bold")
    out = Terminal()
    console = SafeConsole(file=out, force_terminal=True, color_system="standard", width=200)
    with Live(Text(HOSTILE, style="red"), console=console):
        console.print(table)
        console.print(HOSTILE, style="green", markup=False)
    assert out.controls == set()
    assert "\x1b[31ma\\x1b]0;title" in out.getvalue()


def test_a_console_writes_the_exact_text_to_a_pipe() -> None:
    pipe = io.StringIO()
    SafeConsole(file=pipe, width=200).print(f"x{BIDI}\x9b", markup=False, soft_wrap=True)
    assert pipe.getvalue() == f"x{BIDI}\x9b\n"


RESULTS = {
    "completed": TranslationResult(
        job_id="a",
        status="completed",
        translations=[ItemResult(text=HOSTILE, quality="warn", warnings=[f"glossary: {HOSTILE}"])],
    ),
    "failed": TranslationResult(
        job_id="a", status="failed", error=ErrorInfo(code=HOSTILE, message=HOSTILE, retryable=False)
    ),
}


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("status", RESULTS)
def test_a_shown_result_does_not_control_the_terminal(
    status: str, as_json: bool, check: bool
) -> None:
    with terminals() as (out, err):
        showing.show(RESULTS[status], as_json=as_json, check=check)
        showing.show_error("a", Unreadable("a", HOSTILE), as_json=as_json)
    assert (out.controls, err.controls) == (set(), set())
    assert err.getvalue()


COMMANDS = [
    ["dragoman", "--", HOSTILE],
    ["dragoman", f"--{HOSTILE}"],
    ["dragoman", "result", HOSTILE],
    ["dragoman", "status", "a", "--config", HOSTILE],
    ["dragoman", "cancel", "--document", HOSTILE],
    ["dragoman", "submit", "--to", HOSTILE, "text"],
    ["dragoman", "submit", "--to", "de", f"{HOSTILE}.jsonl"],
    ["dragoman", "translate", HOSTILE, "--to", "de", "--out", "out"],
    ["dragoman", "translate", ".", "--to", HOSTILE, "--out", "out"],
    ["dragoman", "review", HOSTILE],
    ["dragoman", "glossary", "add", "x", HOSTILE],
    ["dragoman", "memory", "import", HOSTILE],
    ["dragoman", "dead-letters", "replay", HOSTILE],
    ["dragoman-worker", HOSTILE],
    ["dragoman-worker", "profiles", HOSTILE],
    ["dragoman-worker", "profiles", "--text", HOSTILE, "plain"],
    ["dragoman-worker", "check", "--config", HOSTILE],
    ["dragoman-worker", "check", "--set", HOSTILE],
    ["dragoman-worker", "why", "--set", f"http.host={HOSTILE}"],
    ["dragoman-worker", "bench", "--jobs", HOSTILE],
    ["dragoman-demo", HOSTILE],
]
"""With what a shell's `*` may put there."""


def _worker() -> Callable[[], object]:
    from dragoman_worker.__main__ import main

    return main


def _demo() -> Callable[[], object]:
    from dragoman_demo.__main__ import main

    return main


MAINS: dict[str, Callable[[], Callable[[], object]]] = {
    "dragoman": lambda: dragoman,
    "dragoman-worker": _worker,
    "dragoman-demo": _demo,
}


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore what a program sets for its process: the handler of SIGINT, and no log lines."""
    monkeypatch.setattr(logging.root.manager, "disable", logging.root.manager.disable)
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(ascii, command)))
def test_a_command_does_not_send_control_characters_of_its_arguments(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = MAINS[command[0]]
    given = [word.replace("\x00", "") for word in command]  # no argument can hold a NUL
    monkeypatch.setattr(sys, "argv", given)
    monkeypatch.chdir(tmp_path)
    with terminals() as (out, err), suppress(SystemExit):
        program()()
    assert (out.controls, err.controls) == (set(), set())
    assert out.getvalue() + err.getvalue()


def test_a_log_line_does_not_control_the_terminal() -> None:
    with terminals():
        render = log._text_renderer()
    line = str(render(None, "warning", {"event": HOSTILE, "level": "warning", "error": HOSTILE}))
    assert not any(map(is_control, CURSOR_AND_STYLE.sub("", line)))
    assert "]0;title" in line


PRINTS = re.compile(
    r"(?<![\w.])print\(|\becho\(|(?<!Safe)(?<!\w)Console\(|\bstd(?:out|err)\.(?:write|buffer)"
)
ELSEWHERE = {
    "connections/dragoman_connections/terminal.py": 1,
    "producer/dragoman_producer/cli/review_export.py": 1,  # into a file
    "producer/dragoman_producer/cli/translate_stdin.py": 2,  # a document: escaped lines, or bytes
    "producer/dragoman_producer/client.py": 1,  # an example
    "producer/dragoman_producer/documents.py": 1,  # an example
}


def test_nothing_prints_but_the_functions_that_escape() -> None:
    packages = ["connections", "producer", "schemas", "text", "worker", "demo/dragoman_demo"]
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    found = {
        str(file.relative_to(ROOT)): count
        for file in files
        if (count := len(PRINTS.findall(file.read_text(encoding="utf-8"))))
    }
    assert found == ELSEWHERE
