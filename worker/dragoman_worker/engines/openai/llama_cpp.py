"""What llama.cpp's server says of itself at /props, and which parameters it has other names for.

It answers 200 whatever a request asks for: a name that it does not know is ignored without a word.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from dragoman_worker.engines.one_line import one_line
from dragoman_worker.engines.openai.replies import ServerError
from dragoman_worker.engines.openai.server import Server

IGNORED: Final = ("stop_token_ids", "skip_special_tokens")
"""Parameters that others know and it ignores."""


@dataclass(frozen=True, slots=True)
class Props:
    """What the server says, as far as it is to be believed."""

    context: int | None
    """Tokens of one slot."""
    slots: int | None
    """Requests at once; others wait at the server, and a wait may keep its threads busy."""
    version: str


async def props_of(server: Server) -> Props | None:
    """Return what llama.cpp's server says of itself; None from any other server."""
    try:
        said = json.loads(await server.get("/props"))
        build, settings = said["build_info"], said["default_generation_settings"]
        context, slots = settings["n_ctx"], said.get("total_slots")
    except (ServerError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return Props(_positive(context), _positive(slots), one_line(str(build), max_chars=40))


def renamed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return sampling parameters by the names that it knows."""
    given = dict(parameters)
    if "repetition_penalty" in given:
        given["repeat_penalty"] = given.pop("repetition_penalty")
    return given


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
