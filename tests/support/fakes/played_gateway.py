"""The gateway's HTTP side over a client in memory, on a free port of this process."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from dragoman_connections.settings import load_settings
from dragoman_gateway.app import endpoints_of
from dragoman_gateway.connections import Connections
from dragoman_gateway.front import Front
from dragoman_gateway.glossaries.library import KeyGlossaries
from dragoman_gateway.glossaries.records import GlossaryRecords
from dragoman_gateway.jobs import Asked, ContentJobs
from dragoman_gateway.keys import KeyRing
from dragoman_gateway.languages import OfferedLanguages
from dragoman_gateway.log import Log
from dragoman_gateway.metrics import GatewayMetrics
from dragoman_gateway.rooms import Rooms
from dragoman_gateway.settings import GatewaySettings
from dragoman_gateway.translating import TextTranslator
from dragoman_gateway.usage import KeyUsage
from dragoman_producer.testing import InMemoryClient
from dragoman_schemas.names import JOBS_TOPIC, Keys
from dragoman_text.detection import LanguageDetector
from support.fakes.glossaries_in_memory import GlossariesInMemory, HashesInMemory


@cache
def detector() -> LanguageDetector:
    """Return the detector that all tests of a process share."""
    return LanguageDetector()


class CountsInMemory:
    """The hashes of the usage, without Redis."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}

    async def ask(self, *command: Any) -> Any:
        """Answer HGET."""
        found = self.counts.get((command[1], command[2]))
        return None if found is None else str(found).encode()

    async def send(self, *calls: Any) -> list[list[Any]]:
        """Answer HINCRBY and EXPIRE."""
        ((_, key, field, more), _) = calls[0]
        self.counts[key, field] = self.counts.get((key, field), 0) + more
        return [[self.counts[key, field], 1]]

    def checked(self, reply: Any) -> Any:
        """Return the reply."""
        return reply


class PlayedGateway:
    """A gateway without Kafka, Redis and workers; `client` holds what it submitted."""

    def __init__(
        self,
        client: InMemoryClient | None = None,
        *,
        keys_file: Path | None = None,
        languages: OfferedLanguages | None = None,
        patience_s: float = 0.2,
        glossaries: GlossariesInMemory | None = None,
        records: HashesInMemory | None = None,
        admit: Callable[[Asked, str], None] | None = None,
        queued_at: datetime | None = None,
        **serve: Any,
    ) -> None:
        self.client = client or InMemoryClient()
        options = {f"serve.{name}": value for name, value in serve.items()}
        options["serve.keys_file"] = None if keys_file is None else str(keys_file)
        self.settings = load_settings(GatewaySettings, options=options).serve
        self.counts, self.metrics, self.log = (
            CountsInMemory(),
            GatewayMetrics(),
            Log(requests=False),
        )
        self.usage = KeyUsage(self.counts, Keys())
        self.keys = KeyRing(keys_file, (JOBS_TOPIC,))
        self._languages = languages or OfferedLanguages(formality=frozenset({"de"}))
        self.glossaries = glossaries or GlossariesInMemory()
        self.records = records or HashesInMemory()
        self._admit = admit
        self._queued_at = queued_at
        self.jobs = ContentJobs(
            {JOBS_TOPIC: self.client},
            self.settings,
            Rooms(patience_s),
            queued_at=self._queued,
            admit=self._admitted,
        )
        translator = TextTranslator(
            jobs=self.jobs,
            usage=self.usage,
            detector=detector(),
            languages=lambda: self._languages,
            default_source=self.settings.default_source_lang,
        )
        kept = KeyGlossaries(
            GlossaryRecords(self.records, Keys()),
            self.glossaries,
            refresh_s=self.settings.glossary_refresh_s,
        )
        endpoints = endpoints_of(
            self.settings, translator, lambda: self._languages, self.usage, kept
        )
        self.front = Front(endpoints, self.keys, self.settings, self.metrics, self.log)
        self.url = ""

    async def __aenter__(self) -> Self:
        self.server = Connections(self.front, limit=self.settings.max_connections)
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self.server, "127.0.0.1", 0)
        self.port: int = self._listening.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = aiohttp.ClientSession(self.url)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.http.close()
        self._listening.close()
        await self.jobs.close()
        await self.server.shutdown(1.0)
        self.log.close()

    async def post(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Return status and JSON of the answer to a body of JSON."""
        given = {"json": body} if body is not None else {}
        async with self.http.post(path, **given, **more) as response:
            return response.status, await response.json()

    async def get(self, path: str, **more: Any) -> tuple[int, Any]:
        """Return status and JSON of the answer to a GET."""
        async with self.http.get(path, **more) as response:
            return response.status, await response.json()

    async def raw(self, sent: bytes) -> bytes:
        """Return all that the gateway answers to these bytes on a connection, until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.write(sent)
        try:
            return await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()

    async def _queued(self, _: str) -> datetime | None:
        return self._queued_at

    def _admitted(self, asked: Asked, topic: str) -> None:
        if self._admit is not None:
            self._admit(asked, topic)
        self.usage.add(asked.key, asked.characters)


def write_keys(folder: Path, *entries: str) -> Path:
    """Write a file of keys: each entry is the secret, then further lines of TOML."""
    parts = []
    for number, entry in enumerate(entries):
        secret, _, more = entry.partition("\n")
        digest = hashlib.sha256(secret.encode()).hexdigest()
        name = "" if "id =" in more else f'id = "key{number}"\n'
        parts.append(f'[[key]]\n{name}sha256 = "{digest}"\n{more}\n')
    path = folder / "keys.toml"
    path.write_text("".join(parts), encoding="utf-8")
    path.chmod(0o600)
    return path
