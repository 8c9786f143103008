"""Open the servers at the start: wait for one, compare them, set the limits, try a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dragoman_worker.backoff import backoff, pause_s
from dragoman_worker.deadline import Deadline
from dragoman_worker.engines.openai import discovery
from dragoman_worker.engines.openai.discovery import ServerFacts
from dragoman_worker.engines.openai.prompt_tokens import load_tokenizer
from dragoman_worker.engines.openai.replies import Locked, ServerError, Starting, wrong_setting
from dragoman_worker.engines.openai.server import Server
from dragoman_worker.engines.openai.servers import ServerPool
from dragoman_worker.engines.sample import ask_sample, sample_of
from dragoman_worker.errors import (
    Halt,
    PermanentEngineError,
    TransientEngineError,
    Unavailable,
    Unreachable,
)
from dragoman_worker.log import logger
from dragoman_worker.ports import Engine, EngineLimits
from dragoman_worker.prompts.table import profiles_of
from dragoman_worker.settings import EngineSettings

_PAUSES: Final = backoff(0.5, 5.0)
_WARM_UP_S: Final = 600.0
_GUESSED_TOKENS: Final = 2_048
"""KV cache of a request at a server that does not say how large its cache is."""


async def open_servers(
    servers: ServerPool, settings: EngineSettings, *, wait_s: float
) -> ServerFacts:
    """Return what the servers have in common; those that do not answer are left out.

    Waits for the first one for `wait_s`, and without a limit while it says that it is starting.
    Raises SettingsError, Halt and Unreachable.
    """
    own = None
    if settings.tokenizer is not None:
        own = await asyncio.to_thread(load_tokenizer, settings.tokenizer)
    model, listed = await _models(servers, settings.model, wait_s)
    server = next(iter(listed))
    given = settings.options.get("max_model_len")
    contexts = [await discovery.context_of(each, entry, given) for each, entry in listed.items()]
    profile = profiles_of(settings)[settings.profile]
    try:
        return await discovery.facts_of(server, model, own, profile=profile, context=min(contexts))
    except ServerError as error:
        raise Halt(wrong_setting(server.url, error, model)) from None


async def _models(
    servers: ServerPool, wanted: str | None, wait_s: float
) -> tuple[str, Mapping[Server, Mapping[str, Any]]]:
    """Return the model's name, and what each server that answers says of it."""
    within, failures = Deadline.after(wait_s), 0
    while True:
        model, listed, errors = await _asked(servers, wanted)
        if model is not None and listed:
            for server, error in errors.items():
                server.leave_out(str(error))
            return model, listed
        starting = any(isinstance(error, Starting) for error in errors.values())
        if not wait_s or (within.passed and not starting):
            raise _unreachable(errors)
        failures += 1
        if failures == 1:
            logger().warning("engine_server_awaited", error=str(_unreachable(errors)))
        await asyncio.sleep(pause_s(_PAUSES, failures))


async def _asked(
    servers: ServerPool, model: str | None
) -> tuple[str | None, dict[Server, Mapping[str, Any]], dict[Server, ServerError]]:
    """Ask each server for the model; those after the first must have its, named or not."""
    listed: dict[Server, Mapping[str, Any]] = {}
    errors: dict[Server, ServerError] = {}
    for server in servers.all:
        try:
            model, listed[server] = await discovery.model_at(server, model)
        except Locked as error:
            raise Halt(wrong_setting(server.url, error, model or "the model")) from None
        except ServerError as error:
            errors[server] = error
    return model, listed, errors


def _unreachable(errors: Mapping[Server, ServerError]) -> Unreachable:
    why = "; ".join(f"{server.url}: {error}" for server, error in errors.items())
    return Unreachable(f"engine.url: no server answers: {why}. Is it running?")


async def warm_up(engine: Engine, found: ServerFacts, settings: EngineSettings) -> None:
    """Have a test sentence translated. Raises Halt if that fails, or is no translation."""
    profile, context = found.profile, found.context
    if len(engine.encode(profile.render(sample_of(profile)).prompt)) >= context:
        raise Halt(
            f"engine.options.max_model_len: a context of {context} tokens holds no text; is "
            "that what the servers say of themselves?"
        )
    try:
        async with asyncio.timeout(_WARM_UP_S):
            fault = await ask_sample(engine, profile, judged=not settings.exact_lengths)
    except (Unavailable, PermanentEngineError, TransientEngineError, TimeoutError) as error:
        reason = str(error) or "no answer"
        raise Halt(f"the engine failed its first request: {reason}") from None
    if fault is not None:
        raise Halt(
            f"engine.model: {engine.model} answers a test sentence {fault}; perhaps "
            f"engine.profile ({settings.profile}) is not made for this model"
        )


def limits_of(
    servers: Sequence[Server], facts: ServerFacts, options: Mapping[str, Any]
) -> EngineLimits:
    """Return what the servers can do together, with the bounds that only the settings know."""
    most = cache = 0
    for server in servers:
        at_once = server.concurrency.most
        most += at_once
        known = server.gauges.kv_cache_tokens if server.gauges else None
        cache += known or at_once * min(facts.context, _GUESSED_TOKENS)
    return EngineLimits(
        max_num_seqs=most,
        max_num_batched_tokens=bound_of(options, "max_num_batched_tokens")
        or max(8_192, facts.context),
        max_model_len=facts.context,
        kv_cache_tokens=cache,
        servers=len(servers),
    )


def bound_of(options: Mapping[str, Any], name: str) -> int | None:
    """Return a bound of the server that the settings give, because no server says it."""
    given = options.get(name)
    return given if type(given) is int and given > 0 else None
