"""The `Engine` port implemented by servers that speak OpenAI's API."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import aiohttp

from dragoman_connections.settings import SettingsError
from dragoman_schemas.results import EngineInfo
from dragoman_worker.engines.exact_lengths import completed, exact_length
from dragoman_worker.engines.openai import bodies, discovery
from dragoman_worker.engines.openai.concurrency import AnswerPace
from dragoman_worker.engines.openai.discovery import ServerFacts
from dragoman_worker.engines.openai.prompt_tokens import JOINER, TextPrompt, load_tokenizer
from dragoman_worker.engines.openai.replies import (
    Away,
    Busy,
    Locked,
    ServerError,
    generation_of,
    verdict,
    wrong_setting,
)
from dragoman_worker.engines.openai.server import Server
from dragoman_worker.engines.openai.servers import ServerPool
from dragoman_worker.engines.openai.watch import ServerWatch
from dragoman_worker.engines.sample import ask_sample
from dragoman_worker.errors import (
    EngineDead,
    Halt,
    PermanentEngineError,
    TooLong,
    TransientEngineError,
    Unavailable,
)
from dragoman_worker.ports import (
    EngineLimits,
    EngineStats,
    Generation,
    GenerationRequest,
    Prompt,
)
from dragoman_worker.prompts.table import profiles_of
from dragoman_worker.settings import EngineSettings

_WARM_UP_S: Final = 600.0
_BUSY_S: Final = 60.0
"""Longest that a request is offered to servers that ask for fewer, until that is an outage."""


class OpenAIEngine:
    """One or several servers of equal standing. Requests wait here until a server may get them."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._servers = ServerPool([])
        self._found: ServerFacts | None = None
        self._limits: EngineLimits | None = None
        self._watch: ServerWatch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._pace = AnswerPace()
        self._answers = 0
        self._callbacks: list[Callable[[EngineDead], None]] = []
        self._death: EngineDead | None = None

    @property
    def info(self) -> EngineInfo:
        """The server's name and version, known after `start`."""
        return EngineInfo(name="openai", version=self._found.version if self._found else "unknown")

    @property
    def model(self) -> str:
        """The model's name at the server."""
        return self._found.model if self._found else self._settings.model or "unknown"

    @property
    def identity(self) -> str:
        """Model, server and tokenizer by name: nobody here sees the files behind the name.

        Raises SettingsError where prompts have no token ids, by which answers are remembered.
        """
        found = self._known()
        if not found.sends_ids:
            raise SettingsError(
                "memory.enabled: answers are remembered by token ids; give engine.tokenizer, or "
                "set memory.enabled = false"
            )
        return f"openai/{found.model}/{found.version}/{self._settings.tokenizer}"

    @property
    def limits(self) -> EngineLimits:
        """What the servers can do together. Raises RuntimeError before `start`."""
        if self._limits is None:
            raise RuntimeError("the engine's limits are known only after start()")
        return self._limits

    @property
    def found(self) -> str:
        """What was found at the servers, in one line."""
        found = self._known()
        refused = f"; without {', '.join(found.refused)}" if found.refused else ""
        return f"{found.model}; prompts as {found.prompts}{refused}"

    async def start(self) -> None:
        """Find out what the servers can do, and translate a test sentence.

        Raises SettingsError or Halt, in one sentence. Servers that do not answer are left out as
        long as one does.
        """
        headers = {}
        if self._settings.api_key is not None:
            headers["Authorization"] = f"Bearer {self._settings.api_key.get_secret_value()}"
        tls = _tls(self._settings)
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._servers = ServerPool([Server(url, self._session, tls) for url in self._settings.url])
        await self._discover()
        await self._warm_up()

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """Return the prompt's ids, or the prompt with an estimate of their number."""
        return self._known().tokens.encode(prompt)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, or an estimate."""
        return self._known().tokens.count(text)

    async def generate(self, request: GenerationRequest) -> Generation:
        """Generate at the server with the most free capacity. Cancelling closes the connection.

        Raises Unavailable while no server answers, and for what is the job's own trouble TooLong,
        PermanentEngineError or TransientEngineError.
        """
        watch = self._alive()
        self._raise_if_too_long(request)
        self._raise_if_refused(request)
        trouble = (request.request_id, hash(request.source))
        offered = 0.0
        while True:
            server = await self._servers.acquire()
            answers = server.answers
            try:
                generation = await self._ask(server, request)
            except Busy as error:
                server.throttled(error)
                offered = offered or asyncio.get_running_loop().time()
                if asyncio.get_running_loop().time() - offered > _BUSY_S:
                    raise Unavailable(f"{server.url}: {error}") from None
                continue
            except Locked as error:
                raise watch.locked(server, error) from None
            except Away as error:
                await watch.broken(server, trouble, error)
                continue
            except ServerError as error:
                if await watch.is_the_servers(server, error, others=server.answers > answers):
                    continue
                raise verdict(server.url, error) from None
            finally:
                self._servers.release(server)
            watch.answered(trouble)
            return generation

    def stats(self) -> EngineStats:
        """Return the requests at the servers and those that wait here or there."""
        return self._servers.stats()

    def signs_of_life(self) -> int:
        """Return a count that rises with every answer and every look at the servers.

        A server that hangs is an outage, and found as one; this engine dies only of wrong keys,
        addresses and names.
        """
        return self._answers + (self._watch.looks if self._watch else 0)

    def declare_dead(self, reason: str) -> None:
        """Fail all requests from now on."""
        self._mark_dead(reason)

    def on_death(self, callback: Callable[[EngineDead], None]) -> None:
        """Call back once when no request can succeed any more; at once if that is so already."""
        if self._death is not None:
            callback(self._death)
        else:
            self._callbacks.append(callback)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        self._callbacks.clear()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        for server in self._servers.all:
            server.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # --- one request ------------------------------------------------------------------------------

    async def _ask(self, server: Server, request: GenerationRequest) -> Generation:
        found = self._known()
        exact = exact_length(self._settings.exact_lengths, request)
        path, body = bodies.call(
            request, model=found.model, context=found.context, without=found.refused, exact=exact
        )
        prompt_tokens = len(request.prompt_ids)
        within_s = self._pace.limit_s(prompt_tokens, request.decoding.max_tokens)
        began = asyncio.get_running_loop().time()
        reply = await server.generate(path, body, within_s=within_s)
        model = request.decoding.adapter or found.model
        generation = generation_of(reply, model=model, prompt_tokens=prompt_tokens)
        if isinstance(request.prompt_ids, TextPrompt) and JOINER not in request.source:
            generation = generation._replace(text=generation.text.replace(JOINER, ""))
        tokens = generation.completion_tokens or self.count_tokens(generation.text)
        self._pace.took(asyncio.get_running_loop().time() - began, tokens)
        server.answered(tokens)
        self._answers += 1
        return generation if exact is None else completed(generation)

    def _mark_dead(self, reason: str) -> EngineDead:
        if self._death is None:
            self._death = EngineDead(reason)
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self._death)
        return self._death

    def _alive(self) -> ServerWatch:
        if self._death is not None:
            raise EngineDead(str(self._death))
        if self._watch is None:
            raise EngineDead("the engine is not running")
        return self._watch

    def _raise_if_too_long(self, request: GenerationRequest) -> None:
        length, context = len(request.prompt_ids), self.limits.max_model_len
        output = exact_length(self._settings.exact_lengths, request) or 1
        if length + output > context:
            raise TooLong(
                f"the prompt has {length} tokens and the output needs at least {output}; "
                f"the server's context is {context}"
            )

    def _raise_if_refused(self, request: GenerationRequest) -> None:
        """Raise PermanentEngineError for a parameter that the server refuses and that matters."""
        if not self._known().refused:
            return
        asked = bodies.sampling(request.decoding)
        for name in self._known().refused:
            if name not in asked or name in {"seed", "skip_special_tokens"}:
                continue
            if getattr(request.decoding, name) != getattr(self._known().profile.sampling, name):
                raise PermanentEngineError(f"sampling.{name}: the engine's server refuses it")

    # --- start and watch --------------------------------------------------------------------------

    async def _discover(self) -> None:
        own = None
        if self._settings.tokenizer is not None:
            own = await asyncio.to_thread(load_tokenizer, self._settings.tokenizer)
        profile = profiles_of(self._settings)[self._settings.profile]
        server, model, listed = await self._first()
        try:
            self._found = await discovery.facts_of(
                server,
                model,
                listed,
                own,
                profile=profile,
                context=self._settings.options.get("max_model_len"),
            )
        except ServerError as error:
            raise self._unfit(server, error) from None
        options = self._settings.options
        most = _bound(options, "max_num_seqs")
        watch = ServerWatch(self._servers, self._found, most=most, died=self._mark_dead)
        for each in self._servers.all:
            if not each.away:
                await watch.measure(each)
        self._watch = watch
        self._watching = asyncio.create_task(watch.forever(), name="openai-watch")
        self._limits = self._real_limits()

    async def _first(self) -> tuple[Server, str, Mapping[str, Any]]:
        """Return the first server that answers, and its model. Raises Halt."""
        first, errors = None, []
        for server in self._servers.all:
            try:
                model, listed = await discovery.model_at(server, self._settings.model)
                first = first or (server, model, listed)
            except Locked as error:
                raise self._unfit(server, error) from None
            except ServerError as error:
                errors.append(error)
                server.leave_out(str(error))
        if first is None:
            raise discovery.unreachable(self._servers.all, errors)
        return first

    def _unfit(self, server: Server, error: ServerError) -> Halt:
        return Halt(wrong_setting(server.url, error, self._settings.model or "the model"))

    def _real_limits(self) -> EngineLimits:
        most = cache = 0
        for server in self._servers.all:
            at_once = server.concurrency.most
            most += at_once
            known = server.gauges.kv_cache_tokens if server.gauges else None
            cache += known or at_once * min(self._known().context, 2_048)
        context = self._known().context
        return EngineLimits(
            max_num_seqs=most,
            max_num_batched_tokens=_bound(self._settings.options, "max_num_batched_tokens")
            or max(8_192, context),
            max_model_len=context,
            kv_cache_tokens=cache,
        )

    async def _warm_up(self) -> None:
        try:
            async with asyncio.timeout(_WARM_UP_S):
                fault = await ask_sample(
                    self, self._known().profile, judged=not self._settings.exact_lengths
                )
        except (Unavailable, PermanentEngineError, TransientEngineError, TimeoutError) as error:
            reason = str(error) or "no answer"
            raise Halt(f"the engine failed its first request: {reason}") from None
        if fault is not None:
            raise Halt(
                f"engine.model: {self.model} answers a test sentence {fault}; perhaps "
                f"engine.profile ({self._settings.profile}) is not made for this model"
            )

    def _known(self) -> ServerFacts:
        if self._found is None:
            raise EngineDead("the engine is not running")
        return self._found


def _tls(settings: EngineSettings) -> ssl.SSLContext | bool:
    if settings.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(settings.ca_file))
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"engine.ca_file: {settings.ca_file}: {error}") from None


def _bound(options: Mapping[str, Any], name: str) -> int | None:
    """Return a bound of the server that the settings give, because no server says it."""
    given = options.get(name)
    return given if type(given) is int and given > 0 else None
