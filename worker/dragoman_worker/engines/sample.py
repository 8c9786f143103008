"""A test sentence that every working engine translates: asked at the start and by the breaker."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Final

from dragoman_worker.errors import EngineDead, TooLong, Unavailable, WorkerError
from dragoman_worker.ports import Decoding, Engine, Generation, GenerationRequest
from dragoman_worker.prompts.base import Profile, PromptInput
from dragoman_worker.settings import EngineSettings

_TEXT: Final = "Good morning!"
_MOST_TOKENS: Final = 1_024
"""Room for a model that thinks before it answers; two words need ten."""
_LEAST_TOKENS: Final = 128
"""An answer that was cut off earlier, by a tiny context, is not judged."""
_TRIES: Final = 3
_FINISHES: Final = {
    "length": "without an end",
    "repetition": "with a loop",
    "abort": "with nothing: it aborted the request",
    "error": "with an error",
}


def sample_of(profile: Profile) -> PromptInput:
    """Return the test sentence in languages that the profile translates."""
    known = sorted(profile.languages or ("de", "en"))
    target, source = ("de", "en") if {"de", "en"} <= set(known) else (known[0], known[-1])
    return PromptInput(_TEXT, target, source)


def is_judged(settings: EngineSettings) -> bool:
    """Return whether the answer must be a text: not from random weights or without a model."""
    dummy = settings.options.get("load_format") == "dummy"
    return settings.kind != "echo" and not settings.exact_lengths and not dummy


async def ask_sample(engine: Engine, profile: Profile, *, judged: bool) -> str | None:
    """Ask for the test sentence; return what is wrong with the answer, as "with a loop", or None.

    It is asked up to three times, the later ones as jobs are: otherwise than before. The answer is
    not returned, only why it ended and how long it was. Raises WorkerError, but not TooLong: a
    context that does not hold the sentence holds no job either.
    """
    fault = None
    for attempt in range(1, _TRIES + 1):
        try:
            request = _request(engine, profile, attempt)
            generation = await engine.generate(request)
        except TooLong:
            return None
        cut = generation.finish_reason == "length" and request.decoding.max_tokens < _LEAST_TOKENS
        fault = _fault(profile, generation) if judged and not cut else None
        if fault is None:
            return None
    return fault


async def ask_sample_in_time(
    engine: Engine, profile: Profile, *, judged: bool, timeout_s: float
) -> str | None:
    """Ask for the test sentence; errors and a time-out are wrong answers too. Raises EngineDead.

    An engine whose server cannot be reached has given no wrong answer.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await ask_sample(engine, profile, judged=judged)
    except TimeoutError:
        return f"with nothing for {timeout_s:g} s"
    except EngineDead:
        raise
    except Unavailable:
        return None
    except WorkerError as error:
        return f"with an error: {error}"


def _request(engine: Engine, profile: Profile, attempt: int) -> GenerationRequest:
    segment = sample_of(profile)
    ids = engine.encode(profile.render(segment).prompt)
    room = max(1, min(_MOST_TOKENS, engine.limits.max_model_len - len(ids)))
    decoding = Decoding(max_tokens=room, **asdict(profile.sampling))
    if attempt > 1:
        warmer = max(0.3, decoding.temperature)
        decoding = replace(decoding, temperature=warmer, frequency_penalty=0.3 * attempt)
    return GenerationRequest("sample", ids, decoding, segment.text, segment.target_lang, attempt)


def _fault(profile: Profile, generation: Generation) -> str | None:
    finish, tokens = generation.finish_reason, generation.completion_tokens
    facts = f"(finish reason {finish}, {tokens} token{'' if tokens == 1 else 's'})"
    if finish in _FINISHES:
        return f"{_FINISHES[finish]} {facts}"
    text = profile.clean(generation.text, _TEXT)
    if not text.strip():
        return f"with an empty text {facts}"
    if not any(map(str.isalpha, text)):
        return f"without a letter {facts}"
    return None
