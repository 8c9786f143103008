"""Worker of the demo: a real `dragoman-worker run` as a child process."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from dragoman_producer.box.linked_child import ChildFailed, LinkedChild, own_environment

MODEL: Final = Path(__file__).parents[1] / "model"
# Twice the time of the slowest machine seen; Ctrl-C stops the wait earlier.
_READY_S: Final = 600.0
_POLL_S: Final = 0.1
_GRACE_S: Final = 5.0
# The drain's grace, and the time that vLLM takes to exit on a busy machine.
_EXIT_S: Final = _GRACE_S + 20.0


class EngineKind(StrEnum):
    """Engine of the demo's worker."""

    VLLM = "vllm"
    ECHO = "echo"


class DemoWorker:
    """`dragoman-worker run` as a child process; entering the context waits until it is ready.

    Its settings file and its log are written to `folder`. Raises ChildFailed where the worker exits
    before it is ready.
    """

    def __init__(self, engine: EngineKind, *, bootstrap: str, redis_url: str, folder: Path) -> None:
        self._port = _free_port()
        self.settings = _settings(engine, bootstrap, redis_url, self._port)
        self._folder = folder
        self._resources = AsyncExitStack()
        self._child: LinkedChild | None = None
        self.log = folder / "worker.log"

    @property
    def url(self) -> str:
        """Address of the worker's HTTP server: /readyz, /metrics and the data of `why`."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        config = self._folder / "dragoman.toml"
        config.write_text(to_toml(self.settings), encoding="utf-8")
        command = [sys.executable, "-m", "dragoman_worker", "run", "--config", str(config)]
        async with AsyncExitStack() as starting:
            # vLLM leaves sockets in the temporary folder when it is terminated.
            env = {**own_environment(), **_ENVIRONMENT, "TMPDIR": str(self._folder)}
            child = await starting.enter_async_context(
                LinkedChild(command, log=self.log, grace_s=_EXIT_S, env=env)
            )
            await self._until_ready(child)
            self._child = child
            self._resources = starting.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    async def wait_for_failure(self) -> NoReturn:
        """Wait until the worker exits by itself, which is a failure; then raise ChildFailed."""
        if self._child is None:
            raise RuntimeError("the worker is not started")
        raise ChildFailed(f"the worker exited with status {await self._child.wait()}")

    async def _until_ready(self, child: LinkedChild) -> None:
        try:
            async with asyncio.timeout(_READY_S):
                while not await asyncio.to_thread(_is_ready, self._port):
                    if child.exited:
                        status = child.exit_status
                        raise ChildFailed(
                            f"the worker exited with status {status} before it was ready"
                        )
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise ChildFailed(f"the worker was not ready within {_READY_S:g} s") from None


# GiB: on two cores with a small model, 1 holds the KV cache of all items in flight.
_ENVIRONMENT: Final = {"VLLM_CPU_KVCACHE_SPACE": "1"}


def _settings(engine: EngineKind, bootstrap: str, redis_url: str, port: int) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "kafka": {"bootstrap_servers": bootstrap},
        "redis": {"url": redis_url},
        "http": {"port": port},
        "shutdown": {"grace_s": _GRACE_S},
        "engine": {"kind": engine.value},
    }
    if engine is EngineKind.VLLM:
        settings["engine"] |= {
            "model": str(MODEL),
            "profile": "demo",
            "options": {"max_model_len": 512, "max_num_seqs": 64, "enforce_eager": True},
        }
        # A small model keeps braces best (`check --tokens`), and a first look shows every text.
        settings["quality"] = {"token_style": "braces", "on_fail": "best_effort"}
    return settings


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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
