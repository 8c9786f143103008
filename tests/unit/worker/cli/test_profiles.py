"""Tests of `dragoman-worker profiles` with a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman_worker.__main__ import app

OWN = "name='mine'\nuser='Into {{ target }}: {{ text }}'\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(OWN, encoding="utf-8")
    return path


def test_the_profile_of_a_file_is_shown(file: Path) -> None:
    shown = CliRunner().invoke(app, ["profiles", "--file", str(file), "--to", "ja", "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout) == {
        "profile": "mine",
        "sampling": {"temperature": 0.0},
        "limits": {},
        "takes": [],
        "needs_source": False,
        "languages": [],
        "prompt": "--- user, enable_thinking=False\nInto Japanese: Good morning!",
    }


def test_sampling_limits_and_terms_are_shown(file: Path) -> None:
    terms = "{% for term, other in terms %}{{ term }} is {{ other }}. {% endfor %}"
    file.write_text(
        f"name='mine'\nuser='{terms}{{{{ text }}}}'\n[sampling]\ntemperature=0.2\n"
        'stop=["\\n\\n"]\n[limits]\nmax_source_tokens=800\n',
        encoding="utf-8",
    )
    given = ["--text", "The gate", "--term", "gate=Tor", "--term", "sun=Sonne"]
    shown = CliRunner().invoke(app, ["profiles", "--file", str(file), *given])
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "--- settings",
        "sampling.temperature = 0.2",
        'sampling.stop = ["\\n\\n"]',
        "limits.max_source_tokens = 800",
        'takes = ["glossary"]',
        "needs_source = false",
        "languages = []",
        "--- user, enable_thinking=False",
        "gate is Tor. The gate",
    ]
    assert shown.stderr == "dragoman-worker: --term sun: is not in --text\n"


@pytest.mark.parametrize("pair", ["gate", "gate=", "=Tor", ""])
def test_a_term_without_translation_is_a_usage_error(pair: str) -> None:
    refused = CliRunner().invoke(app, ["profiles", "chat", "--term", pair])
    assert refused.exit_code == 2
    assert "give TERM=TRANSLATION" in refused.stderr


def test_a_wrong_file_is_a_usage_error_of_one_line(file: Path) -> None:
    file.write_text(OWN.replace("text", "txt"), encoding="utf-8")
    refused = CliRunner().invoke(app, ["profiles", "--file", str(file)])
    assert refused.exit_code == 2
    assert refused.stderr.strip().count("\n") == 0
    assert f"{file}: user: there is no variable txt (did you mean text?)" in refused.stderr
