"""What a server is and can do, found out at the start: model, context, prompts, parameters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dragoman_worker.engines.one_line import one_line
from dragoman_worker.engines.openai import llama_cpp
from dragoman_worker.engines.openai.bodies import CHAT, COMPLETIONS, EXTENSIONS
from dragoman_worker.engines.openai.prompt_tokens import (
    EstimatedTokens,
    OwnTokens,
    PromptTokens,
)
from dragoman_worker.engines.openai.replies import (
    Faulty,
    Locked,
    RequestRejected,
    ServerError,
    choice_of,
)
from dragoman_worker.engines.openai.server import Server
from dragoman_worker.engines.sample import sample_of
from dragoman_worker.errors import Halt
from dragoman_worker.log import logger
from dragoman_worker.prompts import parallel_text
from dragoman_worker.prompts.base import Profile

_START_S: Final = 120.0
"""Longest wait for the first answer: a server may load the model for it."""
_COUNTS_AT_ONCE: Final = 16
_UNKNOWN_CONTEXT: Final = 4_096
_HELLO: Final = "Hello."


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the servers have in common."""

    model: str
    version: str
    context: int
    tokens: PromptTokens
    profile: Profile
    refused: tuple[str, ...]
    """Names of parameters that a server refuses or ignores."""
    llama_cpp: bool = False
    """Whether it is llama.cpp's server, which has other names for parameters."""

    @property
    def sends_ids(self) -> bool:
        """Whether prompts are sent as token ids."""
        return isinstance(self.tokens, OwnTokens)

    @property
    def chats(self) -> bool:
        """Whether the profile's prompts are chats."""
        return _chats(self.profile)

    @property
    def prompts(self) -> str:
        """How prompts are sent and counted, in words."""
        if isinstance(self.tokens, EstimatedTokens):
            return f"text, tokens {'counted by the server' if self.tokens.counts else 'estimated'}"
        return "token ids"


async def model_at(server: Server, wanted: str | None) -> tuple[str, Mapping[str, Any]]:
    """Return the model's name at the server and what the server says of it.

    Raises ServerError, and Halt if the server has no model of that name or several without a name.
    """
    try:
        reply = json.loads(await server.get("/v1/models"))
        listed = [each for each in reply["data"] if isinstance(each["id"], str)]
    except Locked as error:
        if "status 404" not in str(error) or wanted is None:
            raise
        return wanted, {}  # a server without a list: its first answer decides
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Faulty("its list of models (/v1/models) does not follow OpenAI's API") from None
    by_name = {each["id"]: each for each in listed}
    if wanted is None and len(by_name) == 1:
        return next(iter(by_name.items()))
    if wanted is not None and wanted in by_name:
        return wanted, by_name[wanted]
    if wanted is not None and f"{wanted}:latest" in by_name:  # Ollama's names
        return wanted, by_name[f"{wanted}:latest"]
    names = one_line(", ".join(sorted(by_name)[:10]), max_chars=300) or "none"
    if wanted is None:
        raise Halt(f"engine.model: name one of the models at {server.url}: {names}")
    raise Halt(f"engine.model: no model is called {wanted!r} at {server.url}; models: {names}")


async def facts_of(
    server: Server, model: str, own: OwnTokens | None, *, profile: Profile, context: int
) -> ServerFacts:
    """Return what the server can do with the model. Raises ServerError, and Halt.

    `own` is the tokenizer here.
    """
    tokens = await prompt_tokens(server, model, own)
    path, sample = hello(model, tokens, chat=_chats(profile))
    props = await llama_cpp.props_of(server)
    refused = await refused_parameters(server, sample, path)
    refused = tuple(dict.fromkeys((*refused, *(llama_cpp.IGNORED if props else ()))))
    if refused:
        logger().warning("engine_parameters_refused", server=server.url, names=refused)
    return ServerFacts(
        model=model,
        version=f"llama.cpp {props.version}" if props else await version_of(server),
        context=context,
        tokens=tokens,
        profile=profile,
        refused=refused,
        llama_cpp=props is not None,
    )


def _chats(profile: Profile) -> bool:
    return bool(profile.render(sample_of(profile)).prompt.messages)


async def context_of(server: Server, model: Mapping[str, Any], given: object) -> int:
    """Return the tokens of a prompt and its answer together; `given` is that of the settings."""
    if type(given) is int and given > 0:
        return given
    meta = model.get("meta")
    props = await llama_cpp.props_of(server)
    for value in (
        model.get("max_model_len"),
        props and props.context,
        await _ollama_context(server, model.get("id")),
        model.get("context_length"),
    ):
        if type(value) is int and value > 0:
            return value
    trained = meta.get("n_ctx_train") if isinstance(meta, Mapping) else None
    if type(trained) is int and trained > 0:
        return trained
    logger().warning("engine_context_unknown", server=server.url, assumed=_UNKNOWN_CONTEXT)
    return _UNKNOWN_CONTEXT


async def _ollama_context(server: Server, model: object) -> object:
    """Return the context with which Ollama has loaded the model: it cuts longer prompts silently.

    A model may be trained for more.
    """
    try:
        loaded = json.loads(await server.get("/api/ps"))["models"]
        return next(each["context_length"] for each in loaded if each["name"] == model)
    except (ServerError, ValueError, KeyError, TypeError, StopIteration):
        return None


async def version_of(server: Server) -> str:
    """Return the server's name and version, where it says them."""
    for path, name in (("/version", "vllm"), ("/api/version", "ollama")):
        try:
            value = json.loads(await server.get(path)).get("version")
        except (ServerError, ValueError, AttributeError):
            continue
        if isinstance(value, str):
            return f"{name} {value[:40]}"
    return "unknown"


async def prompt_tokens(server: Server, model: str, own: OwnTokens | None) -> PromptTokens:
    """Return how prompts are sent: as ids where there is a tokenizer and the server takes them.

    Raises Halt if the tokenizer is not the server's.
    """
    if own is not None:
        await _check_tokenizer(server, model, own)
        if await _takes_ids(server, model, own):
            return own
        logger().warning("engine_takes_no_ids", server=server.url)
        texts = parallel_text.by_tag().values()
        return EstimatedTokens(await asyncio.to_thread(_counted, own, texts))
    return EstimatedTokens(await _counts(server, model))


def _counted(own: OwnTokens, texts: Iterable[str]) -> dict[str, int]:
    return {text: own.count(text) for text in texts}


async def _takes_ids(server: Server, model: str, own: OwnTokens) -> bool:
    ids = own.plain_ids(_HELLO)
    try:
        return await _counted_by(server, model, ids) in {None, len(ids), len(ids) + 1}
    except (RequestRejected, Locked, Faulty):
        return False


async def _counted_by(server: Server, model: str, prompt: str | list[int]) -> int | None:
    """Return how many tokens the server counts in a prompt; None if it does not say.

    Raises ServerError; Faulty also where it takes a list of ids for a list of prompts.
    """
    body = {"model": model, "prompt": prompt, "max_tokens": 1}
    reply = await server.post(COMPLETIONS, body, within_s=_START_S, quote=True)
    choice_of(reply, model)
    usage = reply.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    return counted if type(counted) is int else None


async def _check_tokenizer(server: Server, model: str, own: OwnTokens) -> None:
    """Raise Halt if the server's tokenizer is another: by its ids, or by how many it counts."""
    ours, theirs = own.plain_ids(_PROBE_TEXT), await _ids(server, model, _PROBE_TEXT)
    # Rules by which a text is split may differ where the vocabulary is the same.
    alike = theirs is not None and own.spelled(theirs) == own.spelled(ours)
    if theirs is None:
        counted = None
        with suppress(RequestRejected, Locked, Faulty):
            counted = await _counted_by(server, model, _PROBE_TEXT)
        alike = counted is None or 0 <= counted - len(ours) <= _MOST_MARKS
    if not alike:
        raise Halt(
            f"engine.tokenizer: its token ids don't match {model} at {server.url}; give the "
            "tokenizer of that model"
        )


_MOST_MARKS: Final = 2
"""Tokens that a server may put around a text, such as the one that begins every prompt."""
_PROBE_TEXT: Final = "Grüße, 你好, привет: 3 × 7 = 21."


async def _ids(server: Server, model: str, text: str) -> list[int] | None:
    # llama.cpp's name for the text is content.
    body = {"model": model, "prompt": text, "content": text, "add_special_tokens": False}
    try:
        reply = await server.post("/tokenize", body, within_s=_START_S, quote=False)
    except ServerError:
        return None
    ids = reply.get("tokens")
    return ids if isinstance(ids, list) and ids and all(type(each) is int for each in ids) else None


async def _counts(server: Server, model: str) -> dict[str, int]:
    """Return the server's counts of the texts by which languages are compared, if it counts."""
    if await _ids(server, model, _HELLO) is None:
        return {}
    texts = list(dict.fromkeys(parallel_text.by_tag().values()))
    turns = asyncio.Semaphore(_COUNTS_AT_ONCE)

    async def count(text: str) -> tuple[str, int]:
        async with turns:
            return text, len(await _ids(server, model, text) or ())

    counted = await asyncio.gather(*map(count, texts))
    return {text: tokens for text, tokens in counted if tokens}


async def refused_parameters(
    server: Server, sample: Mapping[str, Any], path: str
) -> tuple[str, ...]:
    """Return the parameters beyond OpenAI's that the server refuses. Raises ServerError."""
    try:
        await server.post(path, {**sample, **EXTENSIONS}, within_s=_START_S, quote=True)
    except RequestRejected:
        pass
    else:
        return ()
    refused = []
    for name, value in EXTENSIONS.items():
        try:
            await server.post(path, {**sample, name: value}, within_s=_START_S, quote=True)
        except RequestRejected:
            refused.append(name)
    return tuple(refused)


async def say_hello(server: Server, facts: ServerFacts, *, within_s: float) -> None:
    """Ask the server something harmless. Raises the ServerError of what is no answer."""
    path, body = hello(facts.model, facts.tokens, chat=facts.chats)
    choice_of(await server.post(path, body, within_s=within_s, quote=True), facts.model)


def hello(model: str, tokens: PromptTokens | None, *, chat: bool) -> tuple[str, dict[str, Any]]:
    """Return a harmless request: a path and its body."""
    body: dict[str, Any] = {"model": model, "max_tokens": 1, "temperature": 0}
    if isinstance(tokens, OwnTokens):
        return COMPLETIONS, {**body, "prompt": tokens.plain_ids(_HELLO)}
    if chat:
        return CHAT, {**body, "messages": [{"role": "user", "content": _HELLO}]}
    return COMPLETIONS, {**body, "prompt": _HELLO}
