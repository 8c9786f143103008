"""A worker whose engine is a server of OpenAI's API in a process that storms kill and stop."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from support.chaos.sent import Kind
from support.chaos.system import Dragoman, DragomanWorker, GroupProcess, Place
from support.processes.waiting import wait_until
from support.services.openai_server import OpenAIServer, answer
from support.services.ports import free_port

_PROFILE: Final = """name = "tagged"
user = '''{{ target_lang }}
{{ text }}'''
takes = []
[clean]
general = false
"""
_START_S: Final = 60.0


class TaggingServer(OpenAIServer):
    """Answers `[de] TEXT`, as the echo engine does, and knows its fault lines sleep and hang."""

    def __init__(self, port: int, latency_s: float, *, counts: bool = False) -> None:
        super().__init__()
        self.port = port
        self._latency_s = latency_s
        self._counts = counts
        """Whether it has vLLM's counts, as one that runs all that it gets."""

    async def _metrics(self, request: web.Request) -> web.Response:
        if not self._counts:
            return await super()._metrics(request)
        return web.Response(
            text=f"vllm:num_requests_running {self.open}\nvllm:num_requests_waiting 0\n"
            f"vllm:generation_tokens_total {len(self.bodies)}\n"
        )

    async def _answered(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if (refusal := self._refusal(body)) is not None:
            return refusal
        lang, _, text = body["messages"][-1]["content"].partition("\n")
        if not text:  # harmless: a greeting without a language
            return web.json_response(answer(""))
        if text.startswith("#!"):
            fault, _, text = text.partition("\n")
            await asyncio.sleep(20 if fault.startswith("#!sleep") else 3_600)
        await asyncio.sleep(self._latency_s)
        return web.json_response(answer(f"[{lang}] {text}"))


class EngineServer:
    """The server's process; it keeps its port."""

    def __init__(self, place: Place) -> None:
        self.port = free_port()
        tests = Path(__file__).parents[2]
        argv = [sys.executable, "-m", __name__, str(self.port), str(place.latency_s)]
        environment = {**os.environ, "PYTHONPATH": f"{tests}:{os.environ.get('PYTHONPATH', '')}"}
        self._process = GroupProcess(argv, log=place.folder / "server.log", env=environment)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._process.start()
        wait_until(self._listens, timeout_s=_START_S, what="the engine's server listens")

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def again(self) -> None:
        """Start it after it was killed."""
        self._process.stop(grace_s=0.1)
        self.start()

    def pause(self) -> None:
        """Send SIGSTOP: connections are accepted, and nothing is answered."""
        self._process.pause()

    def resume(self) -> None:
        """Send SIGCONT."""
        self._process.resume()

    def mend(self) -> None:
        """Continue or start it, whichever it needs."""
        self._process.resume()
        if not self._process.running:
            self.again()

    def close(self) -> None:
        """End it."""
        self._process.resume()
        self._process.kill()
        self._process.stop(grace_s=0.1)

    def _listens(self) -> bool:
        with socket.socket() as looker:
            return looker.connect_ex(("127.0.0.1", self.port)) == 0


class ServedDragoman(Dragoman):
    """Workers with `engine.kind = openai`, all at one server."""

    name = "dragoman with a server"

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.server: EngineServer | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """Those for which no fault line of the echo engine is needed but sleep and hang."""
        echo_only = {Kind.TRANSIENT, Kind.FATAL, Kind.POISON, Kind.ODD}
        return frozenset(kind.value for kind in Kind if kind not in echo_only)

    @contextmanager
    def serving(self, place: Place) -> Iterator[None]:
        """Run the server for one storm."""
        self.server = EngineServer(place)
        (place.folder / "tagged.toml").write_text(_PROFILE)
        try:
            self.server.start()
            yield
        finally:
            self.server.close()
            self.server = None

    def worker(self, place: Place, name: str) -> DragomanWorker:
        """Return a worker that has not been started."""
        assert self.server is not None
        self._settings |= {
            "engine.kind": "openai",
            "engine.url": f"http://127.0.0.1:{self.server.port}",
            "engine.model": "m",
            "engine.profile_file": str(place.folder / "tagged.toml"),
            "engine.options.max_num_seqs": 256,
            "quality.level": "off",
        }
        return super().worker(place, name)


async def _serve(port: int, latency_s: float, *, counts: bool) -> None:
    async with TaggingServer(port, latency_s, counts=counts):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]), counts="counts" in sys.argv[3:]))
