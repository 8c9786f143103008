"""A program of ours as a part of a box: its settings file, its log, its page and its end."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dragoman_connections.terminal import how_to_install
from dragoman_producer.box.failures import writing
from dragoman_producer.box.linked_child import ChildFailed, LinkedChild, own_environment

_POLL_S: Final = 0.1
USAGE_ERROR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """How a program runs: `python -m` with its arguments, a settings file and an environment."""

    name: str
    """Of its files in the data folder: NAME.toml, NAME.log, NAME.lock."""
    program: str
    """What its errors begin with."""
    arguments: tuple[str, ...]
    """The module, and what precedes --config."""
    settings: Mapping[str, Any]
    pairs: tuple[str, ...]
    """NAME=VALUE of further settings."""
    environment: Mapping[str, str]
    page_port: int
    """Of its page /readyz on 127.0.0.1."""
    exit_s: float
    """Seconds that it may take to exit after SIGTERM."""

    @property
    def url(self) -> str:
        """Address of its page: /readyz and /metrics."""
        return f"http://127.0.0.1:{self.page_port}"


class PartFailed(ChildFailed):
    """A part has exited by itself; the message is the reason that it gave."""

    def __init__(self, part: Part, status: int, reason: str | None, log: Path) -> None:
        said = f"the {part.name} exited with status {status}; its log: {log}"
        super().__init__(reason or said)
        self.status = status
        self.dropped = reason is not None and "records dropped" in reason
        """Whether the broker has dropped records: no restart brings them back."""


class PartChild:
    """A part as a child process; entering the context waits until it is ready.

    Its settings file and its log are written to `data`, its temporary files to `runtime`. Raises
    PartFailed where it exits before it is ready.
    """

    def __init__(self, part: Part, *, data: Path, runtime: Path) -> None:
        self._part = part
        self._data = data
        self._runtime = runtime
        self._resources = AsyncExitStack()
        self._child: LinkedChild | None = None

    async def __aenter__(self) -> Self:
        part = self._part
        config = self._data / f"{part.name}.toml"
        with writing(config):
            _write(config, to_toml(part.settings))
        command = [sys.executable, "-P", "-m", *part.arguments, "--config", str(config)]
        for text in part.pairs:
            command += ["--set", text]
        # vLLM leaves sockets in the temporary folder when it is terminated.
        env = {**part.environment, "TMPDIR": str(self._runtime)}
        # A part of a box that was killed still drains, and has the GPU: wait for its end.
        lock = self._data / f"{part.name}.lock"
        log = self._data / f"{part.name}.log"
        async with AsyncExitStack() as starting:
            self._child = await starting.enter_async_context(
                LinkedChild(command, log=log, grace_s=part.exit_s, lock=lock, env=env)
            )
            await self._until_ready(self._child)
            self._resources = starting.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    async def failure(self) -> PartFailed:
        """Wait until the part exits by itself, and return why."""
        if self._child is None:
            raise RuntimeError(f"the {self._part.name} is not started")
        return self._failed(self._child, await self._child.wait())

    async def event(self, name: str) -> dict[str, Any]:
        """Wait for an event in the log, and return its members. Raises PartFailed."""
        child = self._child
        if child is None:
            raise RuntimeError(f"the {self._part.name} is not started")
        while True:
            for event in _events(child.last_lines(100).splitlines()):
                if event.get("event") == name:
                    return event
            if child.exit_status is not None:
                raise self._failed(child, child.exit_status)
            await asyncio.sleep(_POLL_S)

    async def _until_ready(self, child: LinkedChild) -> None:
        while not await asyncio.to_thread(_is_ready, self._part.page_port):
            if child.exit_status is not None:
                raise self._failed(child, child.exit_status)
            await asyncio.sleep(_POLL_S)

    def _failed(self, child: LinkedChild, status: int) -> PartFailed:
        reason = _reason(self._part, child.last_lines(30).splitlines())
        return PartFailed(self._part, status, reason, child.log)


def _write(file: Path, text: str) -> None:
    """Write a file, unless it is so already: a restart needs no room on the disk."""
    file.touch(mode=0o600)
    if file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def _reason(part: Part, lines: Sequence[str]) -> str | None:
    """Return the reason in the last lines of a log; None if there is none."""
    for line in reversed(lines):
        if line.startswith(f"{part.program}: "):
            return line.removeprefix(f"{part.program}: ")
        for event in _events([line]):
            if event.get("event") == "run_failed":
                return str(event.get("reason"))
    if lines and f"No module named {part.arguments[0]}" in lines[-1]:
        return f"the {part.name} is not installed; {how_to_install('box')}"
    return None


def _events(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines that are objects of JSON, the last one first."""
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def environment_without(settings: Sequence[str]) -> dict[str, str]:
    """Return the environment of a part, without settings, and groups of them, that a box gives."""
    taken = tuple(f"DRAGOMAN_{name.replace('.', '__')}".upper() for name in settings)
    return {
        name: value
        for name, value in own_environment().items()
        if name not in taken and not name.startswith(tuple(f"{each}__" for each in taken))
    }


def to_toml(settings: Mapping[str, Any], prefix: str = "") -> str:
    """Return nested mappings as TOML tables; values are strings, numbers and booleans."""
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    lines = [f"[{prefix}]"] if prefix else []
    lines += [f"{name} = {_toml_value(value)}" for name, value in plain.items()]
    tables = [
        to_toml(value, f"{prefix}.{name}" if prefix else name)
        for name, value in settings.items()
        if isinstance(value, Mapping)
    ]
    return "\n".join([*lines, *tables]) + "\n"


def _toml_value(value: object) -> str:
    # JSON and TOML write these values alike, except that TOML must escape DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
