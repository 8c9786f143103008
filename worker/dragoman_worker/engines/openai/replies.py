"""What a server's reply means: an answer, or whose trouble its failure is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import Any, Final

from dragoman_worker.errors import JobError, PermanentEngineError, TooLong, TransientEngineError
from dragoman_worker.ports import FinishReason, Generation

_MOST_CHARS: Final = 200
"""Length of a server's own words in a message."""
LONGEST_PAUSE_S: Final = 60.0
"""Longest pause that a server may ask for by Retry-After."""
_FINISH: Final[Mapping[object, FinishReason]] = {
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
_TOO_LONG: Final = re.compile(
    rb"context.{0,20}(?:length|size|window)|context_length", re.IGNORECASE
)
_NAME: Final = re.compile(r"[A-Za-z][\w.-]{0,39}")


class ServerError(Exception):
    """A request that got no answer. The message says why, without any text of a job."""


class Away(ServerError):
    """The server cannot be reached, broke the connection, or is restarting behind a proxy."""


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
    if status in {408, 502, 503, 504} or 300 <= status < 400:
        raise Away(reason)
    if status == 429:
        raise Busy(reason, _pause_s(headers.get("Retry-After")))
    if 400 <= status < 500:
        if _TOO_LONG.search(body[:_MOST_BYTES]):
            raise TooLongForServer(reason)
        raise RequestRejected(reason)
    raise Faulty(reason)


def parsed(body: bytes) -> dict[str, Any]:
    """Return the object in a body. Raises Faulty for one that is none, or that holds an error."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Faulty("its reply is not JSON") from None
    if not isinstance(value, dict):
        raise Faulty("its reply is not an object")
    if value.get("error"):
        raise Faulty("its reply has status 200 and an error inside")
    return value


def generation_of(reply: Mapping[str, Any], *, model: str, prompt_tokens: int) -> Generation:
    """Return the generation in a reply. Raises Faulty where the reply is not this request's.

    Where the server does not count, `prompt_tokens` and zero output tokens are reported.
    """
    answered = reply.get("model")
    if isinstance(answered, str) and answered and not _same_model(answered, model):
        raise Faulty(f"it answered as another model ({one_line(answered, max_chars=80)!r})")
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Faulty("its reply has not exactly one choice")
    choice = choices[0]
    text = choice.get("text")
    if text is None and isinstance(choice.get("message"), dict):
        text = choice["message"].get("content")
    finish: FinishReason = _FINISH.get(choice.get("finish_reason"), "error")
    if text is None and finish != "stop":
        text = ""
    if not isinstance(text, str):
        raise Faulty("its reply has no text")
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Generation(
        text,
        finish,
        _count(usage.get("prompt_tokens"), prompt_tokens),
        _count(usage.get("completion_tokens"), 0),
    )


def verdict(url: str, error: ServerError) -> JobError:
    """Return the job's failure for a request that a working server did not answer."""
    message = f"{url}: {error}"
    if isinstance(error, TooLongForServer):
        return TooLong(f"{message}: the prompt and its translation do not fit the context")
    if isinstance(error, RequestRejected):
        return PermanentEngineError(message)
    return TransientEngineError(message)


def wrong_setting(url: str, error: ServerError, model: str) -> str:
    """Return what is wrong with the settings, and which one to change."""
    reason = str(error)
    if "status 401" in reason or "status 403" in reason:
        return f"engine.api_key: {url} refuses the key ({reason})"
    if "status 404" in reason:
        return (
            f"engine.url: {url} has no such address or no model {model!r} ({reason}); give "
            "the URL without /v1, and engine.model as the server's /v1/models names it"
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


def one_line(text: str, *, max_chars: int) -> str:
    """Return a text without line breaks, cut to `max_chars` characters."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 3]}..."


def _count(value: object, otherwise: int) -> int:
    return value if type(value) is int and value >= 0 else otherwise


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
