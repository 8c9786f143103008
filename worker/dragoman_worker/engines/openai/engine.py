"""The `Engine` port implemented by servers that speak OpenAI's API."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import aiohttp

from dragoman_connections.settings import SettingsError
from dragoman_schemas.results import EngineInfo
from dragoman_worker.engines.exact_lengths import completed, exact_length
from dragoman_worker.engines.openai import bodies, discovery
from dragoman_worker.engines.openai.concurrency import Concurrency
from dragoman_worker.engines.openai.discovery import ServerFacts
from dragoman_worker.engines.openai.pace import AnswerPace
from dragoman_worker.engines.openai.prompt_tokens import JOINER, load_tokenizer
from dragoman_worker.engines.openai.replies import (
    Away,
    Busy,
    Locked,
    RequestRejected,
    ServerError,
    TooLongForServer,
    generation_of,
)
from dragoman_worker.engines.openai.server import Server
from dragoman_worker.engines.openai.servers import ServerPool
from dragoman_worker.engines.sample import ask_sample, sample_of
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

_WATCH_S: Final = 1.0
_SAMPLE_S: Final = 60.0
"""For one token: as long as a full server may let a request wait."""
_COUNTED_MOST: Final = 1_024
"""Requests at once at a server whose counts are read: vLLM's own bound on one H100."""
_SEARCHED_MOST: Final = 256
"""Requests at once at any other."""
_MOST_BREAKS: Final = 8
"""Times that a request may break a server's connection that works for others: about 45 s."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 15.0
_BUSY_S: Final = 60.0
"""Longest that a request is offered to servers that ask for fewer, until that is an outage."""


class OpenAIEngine:
    """One or several servers of equal standing. Requests wait here until a server may get them."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._servers = ServerPool([])
        self._found: ServerFacts | None = None
        self._chat = True
        self._limits: EngineLimits | None = None
        self._breaks: Counter[tuple[str, int]] = Counter()
        self._pace = AnswerPace()
        self._signs = 0
        self._callbacks: list[Callable[[EngineDead], None]] = []
        self._death: EngineDead | None = None
        self._watch: asyncio.Task[None] | None = None

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

        Raises SettingsError or Halt, in one sentence. ServerPool that do not answer are left out as
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
        try:
            await self._discover()
        except ServerError as error:
            raise self._start_failure(error) from None
        self._watch = asyncio.create_task(self._watch_servers(), name="openai-watch")
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
        self._raise_if_dead()
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
                raise self._locked(server, error) from None
            except Away as error:
                await self._broken(server, trouble, error)
                continue
            except ServerError as error:
                if await self._is_the_servers(server, error, others=server.answers > answers):
                    continue
                raise _verdict(server, error) from None
            finally:
                self._servers.release(server)
            self._breaks.pop(trouble, None)
            return generation

    def stats(self) -> EngineStats:
        """Return the requests at the servers and those that wait here or there.

        Where a server counts itself, others' requests are left out as far as that can be told.
        """
        running = waiting = preemptions = 0
        usage: list[float | None] = []
        for server in self._servers.all:
            if server.away:
                waiting += server.in_flight
                continue
            gauges = server.gauges
            late = min(server.in_flight, gauges.waiting) if gauges else 0
            waiting += late
            running += server.in_flight - late
            preemptions += gauges.preemptions if gauges else 0
            known_usage = gauges.kv_cache_usage if gauges else None
            usage.append(known_usage if server.in_flight or known_usage is None else 0.0)
        known = [each for each in usage if each is not None]
        return EngineStats(
            running=running,
            waiting=waiting + self._servers.waiting,
            kv_cache_usage=sum(known) / len(known) if known and len(known) == len(usage) else None,
            preemptions=preemptions,
            away=self._servers.away,
        )

    def signs_of_life(self) -> int:
        """Return a count that rises with every answer and every look at the servers.

        A server that hangs is an outage, and found as one; this engine dies only of wrong keys,
        addresses and names.
        """
        return self._signs

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
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
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
        if JOINER not in request.source and JOINER in generation.text:
            generation = generation._replace(text=generation.text.replace(JOINER, ""))
        tokens = generation.completion_tokens or self.count_tokens(generation.text)
        self._pace.took(asyncio.get_running_loop().time() - began, tokens)
        server.answered(tokens)
        self._signs += 1
        return generation if exact is None else completed(generation)

    async def _broken(self, server: Server, trouble: tuple[str, int], error: Away) -> None:
        """Return when the request may be sent again, after its connection broke.

        Raises TransientEngineError if it has broken connections of a server that answers others.
        """
        if server.away:
            return
        self._breaks[trouble] += 1
        breaks = self._breaks[trouble]
        if (fault := await server.confirm(self._say_hello)) is not None:
            if isinstance(fault, Locked):
                raise self._locked(server, fault)
            if not isinstance(fault, Busy):
                self._leave_out(server, error)
                return
        if breaks >= _MOST_BREAKS:
            del self._breaks[trouble]
            raise TransientEngineError(
                f"{error}, {breaks} times at this request, while the server answered others"
            )
        await asyncio.sleep(min(_FIRST_PAUSE_S * 2 ** (breaks - 1), _LONGEST_PAUSE_S))

    async def _is_the_servers(self, server: Server, error: ServerError, *, others: bool) -> bool:
        """Return whether a failed request may be sent again, because the server itself is at fault.

        It is the request's own trouble if the server answered others meanwhile, or answers a
        harmless one. Raises EngineDead if the server refuses that as it refused the request.
        """
        if others:
            return False
        fault = await server.confirm(self._say_hello)
        if fault is None or isinstance(fault, Busy):
            return False
        if isinstance(fault, Locked) or (
            isinstance(fault, RequestRejected) and isinstance(error, RequestRejected)
        ):
            raise self._locked(server, fault)
        self._leave_out(server, fault)
        return True

    async def _say_hello(self, server: Server) -> None:
        found = self._known()
        path, body = discovery.hello(found.model, found.tokens, chat=self._chat)
        await server.post(path, body, within_s=_SAMPLE_S, quote=True)

    def _leave_out(self, server: Server, error: ServerError) -> None:
        server.leave_out(str(error))
        self._servers.wake()

    def _locked(self, server: Server, error: ServerError) -> EngineDead:
        return self._mark_dead(_sentence(server, error, self.model))

    def _mark_dead(self, reason: str) -> EngineDead:
        if self._death is None:
            self._death = EngineDead(reason)
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self._death)
        return self._death

    def _raise_if_dead(self) -> None:
        if self._death is not None:
            raise EngineDead(str(self._death))

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
        plain = bodies.call(request, model="", context=self.limits.max_model_len)
        profile = profiles_of(self._settings)[self._settings.profile]
        for name in self._known().refused:
            if name not in plain.body or name in {"seed", "skip_special_tokens"}:
                continue
            if plain.body[name] != getattr(profile.sampling, name, None):
                raise PermanentEngineError(f"sampling.{name}: the engine's server refuses it")

    # --- start and watch --------------------------------------------------------------------------

    async def _discover(self) -> None:
        settings, servers = self._settings, self._servers.all
        own = None
        if settings.tokenizer is not None:
            own = await asyncio.to_thread(load_tokenizer, settings.tokenizer)
        profile = profiles_of(settings)[settings.profile]
        self._chat = bool(profile.render(sample_of(profile)).prompt.messages)
        first, errors = None, []
        for server in servers:
            try:
                model, facts = await discovery.model_at(server, settings.model)
                first = first or (server, model, facts)
            except Locked:
                raise
            except ServerError as error:
                errors.append(error)
                server.leave_out(str(error))
        if first is None:
            raise discovery.unreachable(servers, errors)
        server, model, facts = first
        tokens = await discovery.prompt_tokens(server, model, own)
        path, sample = discovery.hello(model, tokens, chat=self._chat)
        self._found = ServerFacts(
            model=model,
            version=await discovery.version_of(server),
            context=await discovery.context_of(
                server, facts, settings.options.get("max_model_len")
            ),
            tokens=tokens,
            refused=await discovery.refused_parameters(server, sample, path),
        )
        for each in servers:
            await self._look_at(each)
        self._limits = self._real_limits()

    def _real_limits(self) -> EngineLimits:
        most = cache = 0
        for server in self._servers.all:
            counted = server.gauges is not None
            at_once = self._option("max_num_seqs", _COUNTED_MOST if counted else _SEARCHED_MOST)
            server.concurrency = Concurrency(at_once, searches=not counted)
            most += at_once
            known = server.gauges.kv_cache_tokens if server.gauges else None
            cache += known or at_once * min(self._known().context, 2_048)
        context = self._known().context
        return EngineLimits(
            max_num_seqs=most,
            max_num_batched_tokens=self._option("max_num_batched_tokens", max(8_192, context)),
            max_model_len=context,
            kv_cache_tokens=cache,
        )

    def _option(self, name: str, otherwise: int) -> int:
        """Return a bound of the server that the settings give, because no server says it."""
        given = self._settings.options.get(name)
        return given if type(given) is int and given > 0 else otherwise

    async def _warm_up(self) -> None:
        profile = profiles_of(self._settings)[self._settings.profile]
        try:
            async with asyncio.timeout(600):
                fault = await ask_sample(self, profile, judged=not self._settings.exact_lengths)
        except (Unavailable, PermanentEngineError, TransientEngineError, TimeoutError) as error:
            reason = str(error) or "no answer"
            raise Halt(f"the engine failed its first request: {reason}") from None
        if fault is not None:
            raise Halt(
                f"engine.model: {self.model} answers a test sentence {fault}; perhaps "
                f"engine.profile ({self._settings.profile}) is not made for this model"
            )

    async def _watch_servers(self) -> None:
        """Read the servers' counts, and try those again that were left out."""
        pauses: Counter[Server] = Counter()
        while True:
            await asyncio.sleep(_WATCH_S)
            self._signs += 1
            await asyncio.gather(*(self._watch_one(server, pauses) for server in self._servers.all))
            self._servers.wake()

    async def _watch_one(self, server: Server, pauses: Counter[Server]) -> None:
        if not server.away:
            pauses.pop(server, None)
            if server.in_flight:
                await self._look_at(server)
            return
        pauses[server] += 1
        if pauses[server].bit_count() != 1 and pauses[server] % 15:
            return  # after 1, 2, 4, 8, 15, 16, 30, 32, 45, ... seconds
        with suppress(ServerError):
            try:
                await self._say_hello(server)
            except Locked as error:
                self._locked(server, error)
                return
            server.is_back()

    async def _look_at(self, server: Server) -> None:
        try:
            if server.gauges is not None or self._limits is None:
                await server.read_gauges()
        except Away as error:
            fault = await server.confirm(self._say_hello)
            if fault is not None and not isinstance(fault, Busy):
                self._leave_out(server, error)

    def _known(self) -> ServerFacts:
        if self._found is None:
            raise EngineDead("the engine is not running")
        return self._found

    def _start_failure(self, error: ServerError) -> Halt:
        server = self._servers.all[0]
        return Halt(_sentence(server, error, self._settings.model or "the model"))


def _verdict(server: Server, error: ServerError) -> Exception:
    """Return the job's failure for a request that a working server did not answer."""
    message = f"{server.url}: {error}"
    if isinstance(error, TooLongForServer):
        return TooLong(f"{message}: the prompt and its translation do not fit the context")
    if isinstance(error, RequestRejected):
        return PermanentEngineError(message)
    return TransientEngineError(message)


def _sentence(server: Server, error: ServerError, model: str) -> str:
    """Return what is wrong with the settings, and which one to change."""
    reason = str(error)
    if "status 401" in reason or "status 403" in reason:
        return f"engine.api_key: {server.url} refuses the key ({reason})"
    if "status 404" in reason:
        return (
            f"engine.url: {server.url} has no such address or no model {model!r} ({reason}); give "
            "the URL without /v1, and engine.model as the server's /v1/models names it"
        )
    if "certificate" in reason:
        return f"engine.ca_file: {server.url}: {reason}"
    return f"engine.url: {server.url}: {reason}"


def _tls(settings: EngineSettings) -> ssl.SSLContext | bool:
    if settings.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(settings.ca_file))
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"engine.ca_file: {settings.ca_file}: {error}") from None
