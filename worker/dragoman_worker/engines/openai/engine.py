"""The `Engine` port implemented by servers that speak OpenAI's API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import aiohttp

from dragoman_connections.settings import SettingsError
from dragoman_schemas.results import EngineInfo
from dragoman_worker.engines.exact_lengths import completed, exact_length
from dragoman_worker.engines.openai import bodies
from dragoman_worker.engines.openai.concurrency import AnswerPace
from dragoman_worker.engines.openai.connections import open_session
from dragoman_worker.engines.openai.discovery import ServerFacts
from dragoman_worker.engines.openai.opening import limits_of, open_servers, warm_up
from dragoman_worker.engines.openai.prompt_tokens import JOINER, TextPrompt
from dragoman_worker.engines.openai.replies import (
    Away,
    Busy,
    Faulty,
    ServerError,
    TooLongForServer,
    generation_of,
    verdict,
)
from dragoman_worker.engines.openai.server import Server
from dragoman_worker.engines.openai.servers import PutOffs, ServerPool
from dragoman_worker.engines.openai.trust import Trust
from dragoman_worker.engines.openai.watch import ServerWatch
from dragoman_worker.errors import (
    EngineDead,
    PermanentEngineError,
    ServersRefuse,
    TooLong,
)
from dragoman_worker.ports import (
    EngineLimits,
    EngineStats,
    Generation,
    GenerationRequest,
    Prompt,
)
from dragoman_worker.settings import EngineSettings

_LEAST_ROOM: Final = 32
"""Tokens of an answer below which a prompt that the server refuses as too long is too long."""


class OpenAIEngine:
    """One or several servers of equal standing. Requests wait here until a server may get them."""

    def __init__(self, settings: EngineSettings, *, wait_s: float = 0.0) -> None:
        """Stand on the settings; `start` waits for a server for `wait_s`."""
        self._settings = settings
        self._wait_s = wait_s
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
        at = ", ".join(server.url for server in self._servers.all)
        refused = f"; without {', '.join(found.refused)}" if found.refused else ""
        away = "; away: " + ", ".join(each.url for each in self._servers.all if each.away)
        left = away if any(each.away for each in self._servers.all) else ""
        return f"{found.model} at {at}; prompts as {found.prompts}{refused}{left}"

    async def start(self) -> None:
        """Find out what the servers can do, and translate a test sentence.

        Raises SettingsError or Halt, in one sentence. Servers that do not answer are left out as
        long as one does.
        """
        trust, settings = Trust(self._settings.ca_file), self._settings
        session = self._session = open_session(settings)
        self._servers = ServerPool([Server(url, session, trust) for url in settings.url])
        self._found = await open_servers(self._servers, settings, wait_s=self._wait_s)
        watch = ServerWatch(
            self._servers,
            self._found,
            settings=settings,
            trust=trust,
            died=lambda reason: self._die(ServersRefuse(reason)),
        )
        for each in self._servers.all:
            if not each.away:
                await watch.measure(each)
        self._watch = watch
        self._watching = asyncio.create_task(watch.forever(), name="openai-watch")
        self._limits = limits_of(self._servers.all, self._found, settings.options)
        await warm_up(self, self._found, settings)

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
        self._raise_if_too_long(request)
        self._raise_if_refused(request)
        trouble = (request.request_id, hash(request.source))
        put_offs, room = PutOffs(), self._room(request)
        while True:
            watch = self._alive()
            server = await self._servers.acquire()
            answers = server.answers
            try:
                generation = await self._ask(server, request, room)
            except Busy as error:
                put_offs.add(server, error)
                continue
            except Away as error:
                await watch.broken(server, trouble, error)
                continue
            except ServerError as error:
                if isinstance(error, TooLongForServer) and room > _LEAST_ROOM and self._may_cut:
                    room //= 2
                    continue
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
        self._die(EngineDead(reason))

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

    @property
    def _may_cut(self) -> bool:
        """Whether fewer tokens may be asked for, where an estimated prompt is longer than that."""
        return self._settings.exact_lengths is False

    def _room(self, request: GenerationRequest) -> int:
        """Return the tokens to ask for: servers refuse a request for more than their context."""
        exact = exact_length(self._settings.exact_lengths, request)
        room = self._known().context - len(request.prompt_ids)
        return exact or max(1, min(request.decoding.max_tokens, room))

    async def _ask(self, server: Server, request: GenerationRequest, room: int) -> Generation:
        found = self._known()
        exact = not self._may_cut
        path, body = bodies.call(
            request,
            model=found.model,
            max_tokens=room,
            without=found.refused,
            llama_cpp=found.llama_cpp,
            exact=exact,
        )
        prompt_tokens = len(request.prompt_ids)
        within_s = self._pace.limit_s(prompt_tokens, room)
        began = asyncio.get_running_loop().time()
        reply = await server.generate(path, body, within_s=within_s)
        model = request.decoding.adapter or found.model
        generation = generation_of(
            reply, model=model, prompt_tokens=prompt_tokens, context=found.context
        )
        if not isinstance(request.prompt_ids, TextPrompt):
            if generation.prompt_tokens < prompt_tokens:
                read = generation.prompt_tokens
                raise Faulty(f"it read {read} of the prompt's {prompt_tokens} tokens")
        elif JOINER not in request.source:
            generation = generation._replace(text=generation.text.replace(JOINER, ""))
        tokens = generation.completion_tokens or self.count_tokens(generation.text)
        self._pace.took(asyncio.get_running_loop().time() - began, tokens)
        server.answered(tokens)
        self._answers += 1
        return completed(generation) if exact else generation

    def _die(self, death: EngineDead) -> EngineDead:
        if self._death is None:
            self._death = death
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback(self._death)
        return self._death

    def _alive(self) -> ServerWatch:
        if self._death is not None:
            raise type(self._death)(str(self._death))
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
        asked = bodies.sampling(request.decoding) if self._known().refused else {}
        for name in self._known().refused:
            if name not in asked or name in {"seed", "min_p", "skip_special_tokens"}:
                continue
            if getattr(request.decoding, name) != getattr(self._known().profile.sampling, name):
                raise PermanentEngineError(f"sampling.{name}: the engine's server refuses it")

    def _known(self) -> ServerFacts:
        if self._found is None:
            raise EngineDead("the engine is not running")
        return self._found
