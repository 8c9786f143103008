"""The examples of docs/reference/scripts.md still return what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import redis

from dragoman_schemas import scripts
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(scripts.__file__).parent
PAGE = (ROOT / "docs" / "reference" / "scripts.md").read_text(encoding="utf-8")


def examples() -> list[tuple[str, str]]:
    """Return command and reply of each example, in the order of the page."""
    shown = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    pairs = [example.split("\n", 1) for example in shown.split("$ ")[1:]]
    return [(command, answer) for command, answer in pairs]


def test_every_example_answers_what_the_page_says() -> None:
    redis_cli = shutil.which("redis-cli")
    assert redis_cli is not None, "redis-cli is not installed"
    with RedisServer() as server:
        for command, answer in examples():
            arguments = [redis_cli, "-p", str(server.port), *shlex.split(command)[1:]]
            done = subprocess.run(
                arguments, cwd=SCRIPTS, capture_output=True, text=True, check=True
            )
            assert done.stdout.rstrip() == answer.rstrip(), command
        with redis.Redis.from_url(server.url) as client:
            assert 0 < client.pttl("dragoman:job:a1") <= 86_400_000


def test_every_script_has_its_chapter_and_its_example() -> None:
    for script in scripts.SCRIPTS:
        assert f"\n## {script.name}: " in PAGE
        assert any(f"--eval {script.name}.lua " in command for command, _answer in examples())


@pytest.mark.parametrize("script", scripts.SCRIPTS, ids=lambda script: script.name)
def test_every_argument_is_documented_in_the_script_and_on_the_page(script: scripts.Script) -> None:
    """The header comment lists KEYS, every ARGV and the reply; the page has a row for each."""
    header = script.text[: script.text.index("\n\n")]
    used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", script.text)}
    documented = {int(number) for number in re.findall(r"-- ARGV\[(\d+)\]", header)}
    assert used == documented == set(range(1, max(used, default=0) + 1))
    assert "KEYS[1]" in header
    assert "Reply" in header
    chapter = PAGE.split(f"\n## {script.name}: ")[1].split("\n## ")[0]
    assert all(f"\n| {number} | " in chapter for number in documented)
