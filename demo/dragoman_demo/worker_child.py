"""How does the trial start a real worker and know that it is ready?"""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import socket
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from dragoman_demo.child import ChildFailed, LeashedChild

MODEL: Final = Path(__file__).parents[1] / "model"
# Twice what the slowest machine we know of took; a person may always press Ctrl-C before.
_READY_S: Final = 300.0
_POLL_S: Final = 0.1
_GRACE_S: Final = 5.0
# The drain's grace, and the time vLLM takes to end on a busy machine.
_END_S: Final = _GRACE_S + 20.0


class EngineKind(StrEnum):
    """What the trial's worker translates with."""

    VLLM = "vllm"
    ECHO = "echo"


class WorkerChild:
    """`dragoman-worker run` as a child process; entering the context returns once it is ready.

    Its settings file and its log are written to `folder`. Raises ChildFailed with its last lines
    where it ends before.
    """

    def __init__(self, engine: EngineKind, *, bootstrap: str, redis_url: str, folder: Path) -> None:
        self._engine = engine
        self._port = _free_port()
        self.settings = _settings(engine, bootstrap, redis_url, self._port)
        self._folder = folder
        self._resources = AsyncExitStack()
        self._child: LeashedChild | None = None
        self.log = folder / "worker.log"

    @property
    def url(self) -> str:
        """Address of the worker's page: /readyz, /metrics, and what `dragoman-worker why` reads."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        _check_installed(self._engine)
        config = self._folder / "dragoman.toml"
        config.write_text(to_toml(self.settings), encoding="utf-8")
        command = [sys.executable, "-m", "dragoman_worker", "run", "--config", str(config)]
        async with AsyncExitStack() as starting:
            # vLLM leaves sockets in the temporary folder when it is ended.
            env = {**_ENVIRONMENT, "TMPDIR": str(self._folder)}
            child = await starting.enter_async_context(
                LeashedChild(command, log=self.log, grace_s=_END_S, env=env)
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

    async def fails(self) -> NoReturn:
        """Wait until the worker ends by itself, which it should not; raises ChildFailed then."""
        if self._child is None:
            raise RuntimeError("the worker is not started")
        raise ChildFailed(f"the worker ended with {await self._child.wait()}")

    async def _until_ready(self, child: LeashedChild) -> None:
        try:
            async with asyncio.timeout(_READY_S):
                while not await asyncio.to_thread(_is_ready, self._port):
                    if child.ended:
                        status = child.exit_status
                        raise ChildFailed(f"the worker ended with {status} before it was ready")
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise ChildFailed(f"the worker was not ready within {_READY_S:g} s") from None


# Two cores and a small model: one GiB holds the keys and values of all that is in flight.
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
    return settings


def _check_installed(engine: EngineKind) -> None:
    if engine is EngineKind.ECHO:
        return
    if importlib.util.find_spec("vllm") is None:
        raise ChildFailed("vLLM is not installed here: run make install, or try --engine echo")
    if not (MODEL / "config.json").is_file():
        raise ChildFailed(f"the demonstration model is not in {MODEL}; try --engine echo")


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
    """Nested mappings as TOML tables; values are strings, numbers and booleans."""
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
    # JSON spells these values as TOML does, if no character but DEL is left to escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
