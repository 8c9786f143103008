"""Engines whose servers are those of a test, and requests to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from aiohttp import web

from dragoman_worker.engines.openai import OpenAIEngine
from dragoman_worker.ports import Decoding, GenerationRequest, Prompt
from dragoman_worker.settings import EngineSettings
from support.processes.waiting import eventually
from support.services.openai_server import Handler, answer


class Addressed(Protocol):
    """A server of tests."""

    @property
    def url(self) -> str:
        """Its address."""
        ...


def settings(*servers: Addressed, **more: Any) -> EngineSettings:
    """Return settings for these servers and their model m."""
    urls = tuple(server.url for server in servers)
    given: dict[str, Any] = {"url": urls, "model": "m", "profile": "chat", **more}
    return EngineSettings(kind="openai", **given)


@asynccontextmanager
async def started(*servers: Addressed, **more: Any) -> AsyncIterator[OpenAIEngine]:
    """Start an engine whose servers are these."""
    wait_s = more.pop("wait_s", 0.0)
    made = OpenAIEngine(settings(*servers, **more), wait_s=wait_s)
    try:
        await made.start()
        yield made
    finally:
        await made.close()


def request(made: OpenAIEngine, text: str = "TEXT", **decoding: Any) -> GenerationRequest:
    """Return a request, by default with a text that OpenAIServer gives to its handler."""
    ids = made.encode(Prompt(completion=text, user_spans=((0, len(text)),)))
    return GenerationRequest("job", ids, Decoding(**{"max_tokens": 20, **decoding}), text, "de", 1)


def replies(*given: web.StreamResponse | Callable[[], web.StreamResponse]) -> Handler:
    """Answer by these in turn, and then well."""
    left = list(given)

    async def handle(_: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if left:
            reply = left.pop(0)
            return reply() if callable(reply) else reply
        return web.json_response(answer("done"))

    return handle


async def back(made: OpenAIEngine) -> None:
    """Wait until one of the servers answers again."""
    await eventually(lambda: not made._servers.away, timeout_s=20, what="back")
