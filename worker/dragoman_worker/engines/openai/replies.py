"""What a server's reply means: an answer, or whose trouble its failure is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import Any, Final

from dragoman_worker.engines.one_line import one_line
from dragoman_worker.errors import JobError, PermanentEngineError, TooLong, TransientEngineError
from dragoman_worker.ports import FinishReason, Generation

_MOST_CHARS: Final = 200
"""Length of a server's own words in a message."""
LONGEST_PAUSE_S: Final = 60.0
"""Longest pause that a server may ask for by Retry-After."""
_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "abort": "abort",
    "cancelled": "abort",
    "repetition": "repetition",
}
"""Everything else, also a missing reason and ``content_filter``, is an error: never a success."""
_MOST_BYTES: Final = 2_000
_OF_LENGTH: Final = frozenset({400, 422, 500})
"""Statuses of a prompt that is too long; 500 from servers that do not expect one."""
_TOO_LONG: Final = re.compile(
    rb"context.{0,20}(?:length|size|window)|context_length"  # vLLM, SGLang, llama.cpp, LiteLLM
    rb"|max\w*.{0,3}(?:model|input|prompt|sequence).{0,3}len"  # vLLM, TensorRT-LLM
    rb"|inputs. (?:tokens|must have less)"  # Text Generation Inference
    rb"|max_num_tokens"  # TensorRT-LLM
    rb"|(?:prompt|inputs?|request) (?:is|are) too (?:long|large)",
    re.IGNORECASE,
)
_AWAY: Final = frozenset({408, 425, 502, 503, 504, *range(520, 531)})
"""HTTP statuses of a server that starts or is overloaded, or of a proxy in front of one that is
away; 520 to 530 are Cloudflare's."""
_NAME: Final = re.compile(r"[A-Za-z][\w.-]{0,39}")


class ServerError(Exception):
    """A request that got no answer. The message says why, without any text of a job."""


class Away(ServerError):
    """The server cannot be reached, broke the connection, or is restarting behind a proxy."""


class Starting(Away):
    """The server answers, and says that it cannot serve yet: it may load a model."""


class Busy(ServerError):
    """The server asks for fewer requests; `pause_s` is how long it wants to be left alone."""

    def __init__(self, message: str, pause_s: float | None) -> None:
        super().__init__(message)
        self.pause_s = pause_s


class Locked(ServerError):
    """The key, the address or the model's name is wrong: no request can succeed."""


class RequestRejected(ServerError):
    """The server understood the request and refuses it."""


class TooLongForServer(RequestRejected):
    """The prompt and the answer do not fit the context that the server allows."""


class CacheFull(TooLongForServer):
    """They do not fit what is left: slots of llama.cpp may share one context, and fail together."""


class SharedOut(Busy):
    """They did not fit beside other requests; with fewer of those they may."""


class Faulty(ServerError):
    """The server failed at this request, or its reply is not an answer."""


class TimedOut(Faulty):
    """The server accepted the request and said nothing for too long."""


def check_status(status: int, headers: Mapping[str, str], body: bytes, *, quote: bool) -> None:
    """Raise the ServerError of a reply that is not a success.

    With `quote` the message has the server's own words. They may repeat the request, so they are
    left out where that has the text of a job.
    """
    if status == 200:
        return
    said = _said(body) if quote else _code(body)
    reason = f"status {status}{f': {said}' if said else ''}"
    if status in {401, 403, 404, 405, 407}:
        raise Locked(reason)
    if 300 <= status < 400:
        raise Away(f"{reason}: it redirects, which is not followed")
    if status == 503:
        raise Starting(reason)
    if status in _AWAY:
        raise Away(reason)
    if status == 429:
        raise Busy(reason, _pause_s(headers.get("Retry-After")))
    if status == 413 or (status in _OF_LENGTH and _TOO_LONG.search(body[:_MOST_BYTES])):
        raise (CacheFull if status == 500 else TooLongForServer)(reason)
    raise (RequestRejected if 400 <= status < 500 else Faulty)(reason)


def parsed(body: bytes, *, quote: bool = False) -> dict[str, Any]:
    """Return the object in a body. Raises Faulty for one that is none.

    Raises the ServerError of an error inside, which proxies send with status 200.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Faulty("its reply is not JSON") from None
    if not isinstance(value, dict):
        raise Faulty("its reply is not an object")
    if error := value.get("error"):
        code = error.get("code") if isinstance(error, dict) else None
        if type(code) is int and 400 <= code < 600:
            check_status(code, {}, body, quote=quote)
        raise Faulty("its reply has status 200 and an error inside")
    return value


def generation_of(
    reply: Mapping[str, Any], *, model: str, prompt_tokens: int, context: int
) -> Generation:
    """Return the generation in a reply. Raises Faulty where there is none.

    Where the server does not count, or more than fit the context, `prompt_tokens` and zero output
    tokens are reported.
    """
    choice = choice_of(reply, model)
    reason = choice.get("finish_reason")
    finish: FinishReason = _FINISH.get(reason, "error") if isinstance(reason, str) else "error"
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Generation(
        _text(choice, finish),
        finish,
        _count(usage.get("prompt_tokens"), prompt_tokens, context),
        _count(usage.get("completion_tokens"), 0, context),
    )


def choice_of(reply: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """Return the one choice in a reply. Raises Faulty where the reply is not this request's."""
    answered = reply.get("model")
    if isinstance(answered, str) and answered and not _same_model(answered, model):
        raise Faulty(f"it answered as another model ({one_line(answered, max_chars=80)!r})")
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Faulty("its reply has not exactly one choice")
    choice: Mapping[str, Any] = choices[0]
    if choice.get("index") not in (0, None):
        raise Faulty("its reply has a choice that is not the first")
    return choice


def _text(choice: Mapping[str, Any], finish: FinishReason) -> str:
    """Return a choice's text, without thoughts that the server keeps apart."""
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = choice.get("text")
    text = message.get("content") if text is None else text
    if text is None and finish != "stop":
        return ""
    if isinstance(text, str):
        return text
    if message.get("reasoning_content") or message.get("reasoning"):
        raise Faulty("its reply has thoughts and no text; switch thinking off at the server")
    raise Faulty("its reply has no text")


def verdict(url: str, error: ServerError) -> JobError:
    """Return the job's failure for a request that a working server did not answer."""
    message = f"{url}: {error}"
    if isinstance(error, TooLongForServer):
        return TooLong(f"{message}: the prompt and its translation do not fit the context")
    if isinstance(error, RequestRejected | Locked):
        return PermanentEngineError(message)
    return TransientEngineError(message)


def wrong_setting(url: str, error: ServerError, model: str) -> str:
    """Return what is wrong with the settings, and which one to change."""
    reason = str(error)
    if "status 401" in reason or "status 403" in reason:
        return f"engine.api_key: {url} refuses the key ({reason})"
    if "status 404" in reason:
        return (
            f"engine.url: {url} has no such address or no model {model!r} ({reason}); give the "
            "server's URL, and engine.model as its /v1/models names it"
        )
    if "certificate" in reason:
        return f"engine.ca_file: {url}: {reason}"
    return f"engine.url: {url}: {reason}"


def _same_model(answered: str, asked: str) -> bool:
    """Return whether a reply's model is the one asked for: `qwen3` may come back as `qwen3:latest`.

    Routers answer with a path or a version of the name, so one may contain the other.
    """
    ours, theirs = asked.casefold(), answered.casefold()
    return ours in theirs or theirs in ours or ours.rpartition("/")[2] in theirs


def _count(value: object, otherwise: int, most: int) -> int:
    return value if type(value) is int and 0 <= value <= most else otherwise


def _code(body: bytes) -> str:
    """Return the error's type or code, if it is a plain name."""
    try:
        value = json.loads(body)
        value = value.get("error", value)
        found = [value.get(name) for name in ("code", "type")]
    except (ValueError, RecursionError, AttributeError):
        return ""
    return next((each for each in found if isinstance(each, str) and _NAME.fullmatch(each)), "")


def _said(body: bytes) -> str:
    """Return a server's own words, from an OpenAI error object or as they are."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = body[:1_000].decode("utf-8", "replace")
    if isinstance(value, dict):
        value = value.get("error", value.get("detail", value.get("message", "")))
    return one_line(_words(value), max_chars=_MOST_CHARS)


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        value = value.get("message", value.get("type", ""))
    return value if isinstance(value, str) else json.dumps(value)


def _pause_s(given: str | None) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date; None for nonsense."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - time()
        except (ValueError, OverflowError):
            return None
    return min(max(0.0, seconds), LONGEST_PAUSE_S) if isfinite(seconds) else None
