"""Worker of a box: a real `dragoman-worker run` as a child process."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dragoman_connections.terminal import how_to_install
from dragoman_producer.box.engine_choice import EngineChoice, worker_environment, worker_settings
from dragoman_producer.box.linked_child import ChildFailed, LinkedChild

_POLL_S: Final = 0.1
_GRACE_S: Final = 25.0
# The drain's grace, and the time that vLLM takes to exit on a busy machine.
_EXIT_S: Final = _GRACE_S + 20.0
USAGE_ERROR: Final = 2


class WorkerFailed(ChildFailed):
    """The worker has exited by itself; the message is the reason that it gave."""

    def __init__(self, status: int, reason: str | None, log: Path) -> None:
        super().__init__(reason or f"the worker exited with status {status}; its log: {log}")
        self.status = status
        self.dropped = reason is not None and "records dropped" in reason
        """Whether the broker has dropped records: no restart brings them back."""


class WorkerChild:
    """`dragoman-worker run` as a child process; entering the context waits until it is ready.

    Its settings file and its log are written to `data`, its temporary files to `runtime`. Raises
    WorkerFailed where the worker exits before it is ready.
    """

    def __init__(
        self,
        choice: EngineChoice,
        *,
        bootstrap: str,
        redis_url: str,
        data: Path,
        runtime: Path,
        port: int,
    ) -> None:
        self._choice = choice
        self._port = port
        self.settings = {
            "kafka": {"bootstrap_servers": bootstrap},
            "redis": {"url": redis_url},
            "http": {"port": port},
            "shutdown": {"grace_s": _GRACE_S},
            **worker_settings(choice),
        }
        self._data = data
        self._runtime = runtime
        self._resources = AsyncExitStack()
        self._child: LinkedChild | None = None
        self.log = data / "worker.log"

    @property
    def url(self) -> str:
        """Address of the worker's HTTP server: /readyz, /metrics and the data of `why`."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        config = self._data / "worker.toml"
        config.touch(mode=0o600)
        config.write_text(to_toml(self.settings), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "dragoman_worker", "run", "--config", str(config)]
        for text in self._choice.settings:
            command += ["--set", text]
        async with AsyncExitStack() as starting:
            # vLLM leaves sockets in the temporary folder when it is terminated.
            env = {**worker_environment(self._choice), "TMPDIR": str(self._runtime)}
            # The worker of a box that was killed still drains, and has the GPU: wait for its end.
            lock = self._data / "worker.lock"
            self._child = await starting.enter_async_context(
                LinkedChild(command, log=self.log, grace_s=_EXIT_S, lock=lock, env=env)
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

    async def failure(self) -> WorkerFailed:
        """Wait until the worker exits by itself, and return why."""
        if self._child is None:
            raise RuntimeError("the worker is not started")
        return self._failed(await self._child.wait())

    async def _until_ready(self, child: LinkedChild) -> None:
        while not await asyncio.to_thread(_is_ready, self._port):
            if child.exit_status is not None:
                raise self._failed(child.exit_status)
            await asyncio.sleep(_POLL_S)

    def _failed(self, status: int) -> WorkerFailed:
        return WorkerFailed(status, _reason(self._child), self.log)


def _reason(child: LinkedChild | None) -> str | None:
    """Return the reason in the last lines of a worker's log; None if it gave none."""
    lines = child.last_lines(30).splitlines() if child is not None else []
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            if line.startswith("dragoman-worker: "):
                return line.removeprefix("dragoman-worker: ")
            continue
        if isinstance(event, dict) and event.get("event") == "run_failed":
            return str(event.get("reason"))
    if lines and "No module named dragoman_worker" in lines[-1]:
        return f"the worker is not installed; {how_to_install('box')}"
    return None


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2.0)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


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
