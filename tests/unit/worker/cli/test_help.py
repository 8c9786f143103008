"""Help pages of `dragoman-worker`: complete at any width, and fast."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from dragoman_worker.__main__ import app, main

COMMANDS = ["run", "check", "profiles", "tune", "bench", "why"]
SLOW = ["vllm", "torch", "aiokafka", "redis", "prometheus_client", "structlog"]


def help_page(*arguments: str, columns: int = 80) -> str:
    result = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("columns", [40, 80])
def test_the_list_of_commands_cuts_no_sentence(columns: int) -> None:
    page = help_page(columns=columns)
    assert "..." not in page.replace("[ARGS]...", "")
    assert all(f"  {name} " in page for name in COMMANDS)
    assert "fork-server" not in page, "internal commands are hidden"


@pytest.mark.parametrize(("command", "out"), [("tune", "tuned"), ("bench", "bench")])
def test_tune_and_bench_share_their_options_but_for_the_default_folder(
    command: str, out: str
) -> None:
    page = " ".join(help_page(command).split())
    assert f"Folder for all results. [default: {out}]" in page
    for option in ("--config", "--jobs", "--sample", "--seconds-per-point", "--budget-s"):
        assert page.count(f" {option} ") >= 1


def test_the_command_line_is_parsed_before_anything_slow_is_imported() -> None:
    code = (
        "import json, sys, dragoman_worker.__main__; "
        f"print(json.dumps([name for name in {SLOW!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["foo"], "dragoman-worker: No such command: foo. See `dragoman-worker --help`.\n"),
        (
            ["run", "--foo"],
            "dragoman-worker run: No such option: --foo. See `dragoman-worker run --help`.\n",
        ),
    ],
)
def test_a_usage_error_is_one_line_that_names_the_help_page(
    arguments: list[str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["dragoman-worker", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", line)
