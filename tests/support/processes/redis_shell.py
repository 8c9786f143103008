"""Shell that runs commands of `dragoman` on a real Redis, in a folder with files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from support.processes.forked_command import run_forked


class RedisShell:
    """Runs the commands of one group, such as `dragoman memory`; paths in errors lose the folder.

    Each call asserts that the command printed neither a traceback nor an internal error. Commands
    wait for Redis for `timeout_s`: short only where they are to fail.
    """

    def __init__(self, group: str, redis_url: str, folder: Path, *, timeout_s: float = 60) -> None:
        self._group = group
        self._folder = folder
        self.env = {
            **os.environ,
            "DRAGOMAN_REDIS__URL": redis_url,
            "DRAGOMAN_CONNECT_TIMEOUT_S": str(timeout_s),
        }

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        done = run_forked("dragoman", self._group, *arguments, env=self.env)
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        return done.returncode, done.stdout, done.stderr.replace(f"{self._folder}/", "")

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command with --json that must succeed, and return what it printed."""
        status, out, err = self(*arguments, "--json")
        assert (status, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]

    def file(self, name: str, content: str | bytes) -> str:
        """Write a file into the folder and return its path."""
        encoded = content.encode() if isinstance(content, str) else content
        (self._folder / name).write_bytes(encoded)
        return str(self._folder / name)
