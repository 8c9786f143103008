"""A shell that runs the README's commands as printed, on the test's services."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

_ROOT = Path(__file__).parents[3]
README = _ROOT / "README.md"
PAGES = (README, _ROOT / "docs" / "tutorial.md")
"""Pages whose commands a newcomer runs."""

_KCAT = """#!{python}
# What `kcat -P -b BROKER -t TOPIC -k KEY` does with a line of stdin, where kcat is not installed.
import argparse, sys
from confluent_kafka import Producer

parser = argparse.ArgumentParser()
for option in "btk":
    parser.add_argument(f"-{{option}}", required=True)
parser.add_argument("-P", action="store_true", required=True)
given = parser.parse_args()
producer = Producer({{"bootstrap.servers": given.b}})
for line in sys.stdin.read().splitlines():
    producer.produce(given.t, line.encode(), key=given.k)
sys.exit(producer.flush(30))
"""


def text() -> str:
    """Return the text of the README and the tutorial."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", text(), re.DOTALL)


def console_commands() -> list[str]:
    """Return every command behind a `$`, with continued lines joined and without its remark."""
    shown = "\n".join(blocks("console")).replace("\\\n", " ")
    found = re.findall(r"^\$ (.*)$", shown, re.MULTILINE)
    return [re.sub(r"\s+", " ", command.partition("   #")[0]).strip() for command in found]


def inline_commands() -> list[str]:
    """Return every command in text and tables: code that begins with a program of the README."""
    prose = re.sub(r"```.*?```", "", text(), flags=re.DOTALL)
    code = re.findall(r"`([^`\n]+)`", prose)
    program = re.compile(r"(\.venv/bin/)?(dragoman(-\w+)? \w|dragoman-demo|make |pip |curl )")
    return [one for one in code if program.match(one)]


class ReadmeShell:
    """A shell with the client environment's `dragoman` and the test's addresses."""

    def __init__(self, folder: Path, light: Path, *, kafka: str, redis: str, worker: str) -> None:
        tools = folder / "tools"
        tools.mkdir()
        at = urlsplit(redis)
        where = f"-s {at.path}" if at.scheme == "unix" else f"-p {at.port}"
        _script(tools / "redis-cli", f'#!/bin/sh\nexec /usr/bin/redis-cli {where} "$@"\n')
        if shutil.which("kcat") is None:
            _script(tools / "kcat", _KCAT.format(python=sys.executable))
        self.folder = folder
        self._addresses = {
            "127.0.0.1:9092": kafka,
            "127.0.0.1:9464": worker.removeprefix("http://"),
        }
        tests_bin = Path(sys.executable).parent
        self.env = {
            "PATH": f"{tools}:{light}:/usr/bin:/bin",
            "HOME": os.environ.get("HOME", "/"),
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": kafka,
            "DRAGOMAN_REDIS__URL": redis,
            "WORKER": str(
                tests_bin / "dragoman-worker"
            ),  # the client's environment lacks its extra
        }

    def __call__(self, command: str, **more: str) -> str:
        """Return stdout of a command that must succeed."""
        done = self.attempt(command, more)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def attempt(
        self, command: str, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and return its outcome."""
        for printed, actual in self._addresses.items():
            command = command.replace(printed, actual)
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env={**self.env, **(more or {})},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )


def _script(place: Path, text: str) -> None:
    place.write_text(text, encoding="utf-8")
    place.chmod(0o755)
