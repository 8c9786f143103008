"""A server of OpenAI's API that answers by a script: for what real servers do only on bad days."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web

Handler = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]
SAMPLE = "Hello."


def answer(
    text: str = "Hallo.", *, model: str = "m", finish: str | None = "stop"
) -> dict[str, Any]:
    """Return a completion as vLLM gives it."""
    return {
        "model": model,
        "choices": [{"index": 0, "text": text, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


class OpenAIServer:
    """Completions by `on_text`, for requests with a job's text; others are answered well.

    As real servers do, it serves many at once, and notices when a client closes its connection.
    """

    def __init__(self, on_text: Handler | None = None, *, key: str | None = None) -> None:
        self.on_text = on_text
        self.key = key
        self.models: list[dict[str, Any]] = [{"id": "m", "max_model_len": 512}]
        self.metrics: str | None = None
        self.props: dict[str, Any] | None = None
        """What llama.cpp's server would say of itself."""
        self.refuses: frozenset[str] = frozenset()
        """Parameters that get a 400."""
        self.refuses_all: int | None = None
        """A status by which every completion is refused."""
        self.replies_all: dict[str, Any] | None = None
        """What every completion gets."""
        self.loading = False
        """Whether everything gets 503, as while a model is loaded."""
        self.models_body: bytes | None = None
        """What the list of models is instead of one."""
        self.asked = 0
        """Requests for the list of models."""
        self.takes_ids = True
        self.well = True
        """Whether harmless requests are answered; a Handler decides on the others."""
        self.bodies: list[dict[str, Any]] = []
        """Bodies of all completions."""
        self.open = 0
        self.most_open = 0
        self.closed = 0
        """Requests whose client went away."""
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The address, without /v1."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before."""
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/props", self._props)
        app.router.add_post("/v1/completions", self._complete)
        app.router.add_post("/v1/chat/completions", self._complete)
        # As vLLM does: a handler is cancelled when its client is gone.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close all connections, as a killed server does."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _refused(self, request: web.Request) -> web.Response | None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            return error(401, "invalid key")
        if self.loading:
            return error(503, "Loading model")
        return None

    async def _models(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.models_body is not None:
            return web.Response(body=self.models_body)
        return self._refused(request) or web.json_response({"data": self.models})

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(status=404) if self.metrics is None else web.Response(text=self.metrics)

    async def _props(self, _: web.Request) -> web.Response:
        return web.Response(status=404) if self.props is None else web.json_response(self.props)

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._refused(request)) is not None:
            return refused
        if self.refuses_all is not None:
            return error(self.refuses_all, "no")
        if self.replies_all is not None:
            return web.json_response(self.replies_all)
        body = await request.json()
        self.bodies.append(body)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            return await self._answered(request, body)
        except asyncio.CancelledError:
            self.closed += 1
            raise
        finally:
            self.open -= 1

    def _refusal(self, body: dict[str, Any]) -> web.Response | None:
        if named := self.refuses & body.keys():
            return error(400, f"unknown field {sorted(named)}")
        if isinstance(body.get("prompt"), list) and not self.takes_ids:
            return error(400, "prompt must be a string")
        if body["model"] not in {each["id"] for each in self.models}:
            return error(404, f"no model {body['model']}")
        return error(500, "unwell") if body["max_tokens"] == 1 and not self.well else None

    async def _answered(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if (refusal := self._refusal(body)) is not None:
            return refusal
        if body["max_tokens"] == 1:
            return web.json_response(answer("", model=body["model"], finish="length"))
        if self.on_text is None or "TEXT" not in json.dumps(body):
            return web.json_response(answer(model=body["model"]))
        return await self.on_text(request, body)


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an error as OpenAI's API words it."""
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


async def drop(request: web.Request) -> web.StreamResponse:
    """Close the connection without a word."""
    assert request.transport is not None
    request.transport.abort()
    await asyncio.Event().wait()
    raise AssertionError("cancelled before")


class ServerThread:
    """An `OpenAIServer` on a thread and an event loop of its own, for tests that block theirs."""

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-server")

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self) -> None:
        """Listen, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(20)

    def stop(self) -> None:
        """Close all connections, as a killed server does."""
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(20)
