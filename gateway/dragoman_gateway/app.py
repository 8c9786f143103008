"""The gateway's parts put together, from start to drain."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import secrets
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from aiohttp import web

from dragoman_connections.settings import SettingsError
from dragoman_connections.tls import signature
from dragoman_gateway.backlog import TopicBacklog
from dragoman_gateway.calls import Endpoint
from dragoman_gateway.connections import HEADERS_S, Connections
from dragoman_gateway.deepl import DeepL
from dragoman_gateway.documents.api import DocumentApi
from dragoman_gateway.documents.folder import DocumentFolder
from dragoman_gateway.documents.records import DocumentRecords
from dragoman_gateway.documents.running import DocumentRuns
from dragoman_gateway.errors import BUSY, ApiError
from dragoman_gateway.front import Front
from dragoman_gateway.glossaries.endpoints import GlossaryEndpoints
from dragoman_gateway.glossaries.library import KeyGlossaries
from dragoman_gateway.glossaries.records import GlossaryRecords
from dragoman_gateway.jobs import Asked, ContentJobs
from dragoman_gateway.keys import KeyRing
from dragoman_gateway.languages import OfferedLanguages, offered
from dragoman_gateway.libretranslate import LibreTranslate
from dragoman_gateway.log import Log
from dragoman_gateway.metrics import GatewayMetrics, admin_pages
from dragoman_gateway.rooms import Rooms
from dragoman_gateway.settings import GatewaySettings, ServeSettings
from dragoman_gateway.translating import TextTranslator
from dragoman_gateway.usage import KeyUsage
from dragoman_producer.client import TranslationClient
from dragoman_producer.operations.glossaries import GlossaryStore
from dragoman_producer.operations.topics import show_topics
from dragoman_producer.operations.workers import live_workers
from dragoman_producer.redis_link import RedisLink
from dragoman_schemas.names import FIELD_QUEUED_AT, Keys
from dragoman_text.detection import LanguageDetector

_EVERY_S: Final = 5.0
_BACKLOG: Final = 4096
"""Connections that the kernel holds: with asyncio's 100, callers wait 15 s for a repeated SYN."""


class Gateway:
    """One process of the gateway."""

    def __init__(self, settings: GatewaySettings, log: Log) -> None:
        """Read the keys and certificates. Raises SettingsError."""
        serve = settings.serve
        self._settings = settings
        self._log = log
        self._keys = KeyRing(serve.keys_file, settings.kafka.topic_names)
        self._tls = _tls(serve)
        self._tls_seen = signature((serve.tls_cert, serve.tls_key))
        self._listens = False
        self._link = RedisLink(settings.redis, connect_timeout_s=settings.connect_timeout_s)
        self._names = Keys(settings.redis.key_prefix)
        self._metrics = GatewayMetrics(settings.kafka.topic_names)
        self._usage = KeyUsage(self._link, self._names)
        self._backlog = TopicBacklog(lambda: show_topics(settings), log.warning)
        self._terms = GlossaryStore(settings)
        glossaries = KeyGlossaries(
            GlossaryRecords(self._link, self._names),
            self._terms,
            refresh_s=serve.glossary_refresh_s,
        )
        self._languages = offered((), serve.languages, serve.formality)
        self._detector = LanguageDetector()
        clients = {topic: TranslationClient(settings=_of_topic(settings, topic))
                   for topic in settings.kafka.topic_names}  # fmt: skip
        self._jobs = ContentJobs(
            clients, serve, Rooms(), queued_at=self._queued_at, admit=self._admit,
        )  # fmt: skip
        translator = TextTranslator(
            jobs=self._jobs,
            usage=self._usage,
            detector=self._detector,
            languages=self.languages,
            default_source=serve.default_source_lang,
        )
        endpoints = endpoints_of(serve, translator, self.languages, self._usage, glossaries)
        self._documents: DocumentRuns | None = None
        if serve.documents.dir is not None:
            self._documents, api = self._documents_of(
                serve.documents.dir, clients, translator, glossaries
            )
            endpoints |= api.endpoints()
        self._front = Front(endpoints, self._keys, serve, self._metrics, log)

    def _documents_of(
        self,
        path: Path,
        clients: Mapping[str, TranslationClient],
        translator: TextTranslator,
        glossaries: KeyGlossaries,
    ) -> tuple[DocumentRuns, DocumentApi]:
        """Return what translates documents, and their endpoints. Raises SettingsError."""
        serve, kept = self._settings.serve, self._settings.serve.documents
        folder = DocumentFolder(path, kept.max_total_bytes)
        records = DocumentRecords(self._link, self._names, secrets.token_hex(8), kept.keep_s)
        runs = DocumentRuns(
            records, folder, clients, at_once=kept.at_once, usage=self._usage,
            detect=translator.detect, metrics=self._metrics, report=self._log.warning,
        )  # fmt: skip
        api = DocumentApi(
            folder, records, serve, topics=tuple(clients), languages=self.languages,
            glossary=glossaries.usable, usage=self._usage,
            metrics=self._metrics, uploaded=runs.look,
        )  # fmt: skip
        return runs, api

    def languages(self) -> OfferedLanguages:
        """Return the languages that are offered now."""
        return self._languages

    async def run(self, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Serve until `stop` is set, then drain. `ready` gets the URL. Raises SettingsError."""
        serve = self._settings.serve
        _allow_connections(serve.max_connections)
        await asyncio.to_thread(self._detector.load)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._link.close)
            stack.push_async_callback(self._terms.close)
            await self._look()
            await self._serve_admin(stack)
            await self._serve(stop, ready)

    async def _serve_admin(self, stack: AsyncExitStack) -> None:
        serve = self._settings.serve
        pages = admin_pages(self._metrics, lambda: self._listens and not self._front.draining)
        runner = web.AppRunner(pages, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        with _reported("serve.admin_port", serve.admin_host, serve.admin_port):
            await web.TCPSite(runner, serve.admin_host, serve.admin_port).start()

    async def _serve(self, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        serve = self._settings.serve
        server = Connections(self._front, limit=serve.max_connections)
        with _reported("serve.port", serve.host, serve.port):
            listening = await asyncio.get_running_loop().create_server(
                server,
                serve.host,
                serve.port,
                ssl=self._tls,
                ssl_handshake_timeout=HEADERS_S if self._tls else None,
                backlog=_BACKLOG,
            )
        port = listening.sockets[0].getsockname()[1]
        self._listens = True
        ready(f"{'https' if self._tls else 'http'}://{_shown(serve.host)}:{port}")
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(self._kept(name, work), name=name)
                for name, work in {
                    "usage": self._usage.forever,
                    "backlog": self._backlog.forever,
                    "look": self._look_forever,
                    **({"documents": self._documents.forever} if self._documents else {}),
                }.items()
            ]
            await stop.wait()
            self._front.draining = True
            listening.close()
            await self._drained(server)
            for task in beside:
                task.cancel()
        await self._usage.flush()

    async def _drained(self, server: Connections) -> None:
        """Let held requests end for a while, then tell the others to ask again."""
        await self._front.emptied(self._settings.serve.grace_s)
        if self._documents is not None:
            await self._documents.close()
        await self._jobs.close()
        await self._front.emptied(1.0)
        await server.shutdown(1.0)

    async def _kept(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do work beside the requests, and begin it again after a defect: callers do not see it."""
        while True:
            try:
                return await work()
            except Exception as error:  # noqa: BLE001  whatever it is, requests go on
                self._log.warning(f"{name}: {type(error).__name__}: {error}")
                await asyncio.sleep(_EVERY_S)

    # --- what changes while it runs -------------------------------------------------------------

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        """Read again what may have changed: keys, certificates, workers' languages, lag."""
        serve = self._settings.serve
        self._keys.refresh(self._log.warning)
        self._reload_tls(serve)
        if workers := await live_workers(self._settings):  # without one, what the last ones said
            said = [(each.languages, each.formality) for each in workers]
            self._languages = offered(said, serve.languages, serve.formality)
        for topic in self._settings.kafka.topic_names:
            self._metrics.wait.labels(topic).set(self._backlog.wait_s(topic))

    def _reload_tls(self, serve: ServeSettings) -> None:
        """Use a renewed certificate for new connections."""
        now = signature((serve.tls_cert, serve.tls_key))
        if self._tls is None or now == self._tls_seen or serve.tls_cert is None:
            return
        try:
            self._tls.load_cert_chain(serve.tls_cert, serve.tls_key)
            self._tls_seen = now
        except (OSError, ssl.SSLError) as error:
            self._log.warning(f"serve.tls_cert: the old certificate stays in use: {error}")

    # --- what the jobs need ---------------------------------------------------------------------

    def _admit(self, asked: Asked, topic: str) -> None:
        """Count a job that is submitted, unless it would wait for too long."""
        if self._front.draining:
            raise ApiError(503, BUSY, 1)
        wait_s = self._backlog.wait_s(topic)
        if wait_s > self._settings.serve.shed_after_s:
            self._metrics.shed.labels(topic).inc()
            raise ApiError(503, f"{round(wait_s)} s of work are waiting. Ask later.", 30)
        self._usage.add(asked.key, asked.characters)
        self._metrics.characters.labels(asked.key.id).inc(asked.characters)

    async def _queued_at(self, job_id: str) -> datetime | None:
        found = await self._link.ask("HGET", self._names.job(job_id), FIELD_QUEUED_AT)
        try:
            return datetime.fromisoformat(found.decode())
        except (ValueError, AttributeError):
            return None


def endpoints_of(
    serve: ServeSettings,
    translator: TextTranslator,
    languages: Callable[[], OfferedLanguages],
    usage: KeyUsage,
    glossaries: KeyGlossaries,
) -> dict[str, Endpoint]:
    """Return the endpoints of the APIs that the settings name."""
    deepl = DeepL(translator, languages, usage, glossaries.usable)
    kept = GlossaryEndpoints(glossaries, languages)
    libretranslate = LibreTranslate(
        translator, languages, keys=serve.keys_file is not None, limit=serve.max_body_bytes
    )
    return {
        **(deepl.endpoints() if "deepl" in serve.apis else {}),
        **(kept.endpoints() if "deepl" in serve.apis else {}),
        **(libretranslate.endpoints() if "libretranslate" in serve.apis else {}),
    }


def _of_topic(settings: GatewaySettings, topic: str) -> GatewaySettings:
    kafka = settings.kafka.model_copy(update={"topics": (topic,)})
    return settings.model_copy(update={"kafka": kafka})


def _tls(serve: ServeSettings) -> ssl.SSLContext | None:
    if serve.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(serve.tls_cert, serve.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"serve.tls_cert, serve.tls_key: {error}") from None
    return context


@contextmanager
def _reported(setting: str, host: str, port: int) -> Iterator[None]:
    """Raise SettingsError where an address cannot be listened on."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            why = "another program listens there; set another port"
        raise SettingsError(f"{setting}: cannot listen on {host}:{port}: {why}") from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _allow_connections(count: int) -> None:
    """Allow so many connections and some files, as far as this user may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 1024
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
