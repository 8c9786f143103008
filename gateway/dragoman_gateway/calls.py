"""A request of an API on its way to an answer: what it says, and what the answer needs."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from aiohttp import web

from dragoman_gateway.errors import ApiError
from dragoman_gateway.keys import Key
from dragoman_gateway.parameters import Parameters
from dragoman_gateway.settings import Api
from dragoman_gateway.translating import Caller, TranslatedText

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_SCHEMES: Final = ("deepl-auth-key ", "bearer ")
Shape = Literal["deepl", "libretranslate", "deeplx"]
NOT_FOUND: Final = (
    "There is no such path on this server. It translates texts (/v2/translate, /translate), keeps "
    "glossaries (/v2/glossaries, /v3/glossaries) and, where serve.documents.dir is set, translates "
    "documents (/v2/document)."
)


@dataclass(slots=True)
class ApiCall:
    """One request. `key` is set once it is known."""

    request: web.BaseRequest
    parameters: Parameters
    key: Key
    api: Api
    traceparent: str
    place: Mapping[str, str] = field(default_factory=dict)
    """What stands in the path for the names in its template, such as `id`."""
    headers: dict[str, str] = field(default_factory=dict)
    """Further headers of the answer."""
    characters: int = 0
    texts: int = 0
    key_of: Callable[[Parameters], Key] | None = None
    """Returns the key that a request with these parameters has. Raises ApiError (403)."""

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return Caller(self.key, self.api, self.traceparent)

    def note(self, answers: list[TranslatedText]) -> None:
        """Name the texts that are not as asked in a header."""
        warned = [f"{at}:{each.warning}" for at, each in enumerate(answers) if each.warning]
        if warned:
            self.headers["X-Dragoman-Warnings"] = ",".join(warned[:100])


Handler = Callable[[ApiCall], Awaitable[Any]]
"""Returns what is answered as JSON, or the response itself."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path of an API."""

    api: Api
    handler: Handler
    methods: frozenset[str] = frozenset({"GET", "POST"})
    needs_key: bool = True
    max_body_bytes: int | None = None
    """Largest body of a caller whose key is in a header, if it may be larger than others."""
    reads_body: bool = False
    """Whether the handler reads the body, and finds the key: `ApiCall.key_of`."""


class Route(NamedTuple):
    """An endpoint, its template, and what stands in the path for the template's names."""

    template: str
    endpoint: Endpoint
    place: Mapping[str, str]


class Routes:
    """Endpoints by path; a part of a path such as `{id}` stands for any text without a slash."""

    def __init__(self, endpoints: Mapping[str, Endpoint]) -> None:
        self._fixed = {
            path: Route(path, each, {}) for path, each in endpoints.items() if "{" not in path
        }
        self._templates = [(path, each) for path, each in endpoints.items() if "{" in path]

    def find(self, path: str) -> Route | None:
        """Return the route of a path."""
        if (fixed := self._fixed.get(path)) is not None:
            return fixed
        for template, endpoint in self._templates:
            if (place := _place(template, path)) is not None:
                return Route(template, endpoint, place)
        return None


def _place(template: str, path: str) -> dict[str, str] | None:
    wanted, given = template.split("/"), path.split("/")
    if len(wanted) != len(given):
        return None
    place: dict[str, str] = {}
    for want, have in zip(wanted, given, strict=True):
        if want.startswith("{"):
            place[want[1:-1]] = have
        elif want != have:
            return None
    return place


def traceparent_of(request: web.BaseRequest) -> str:
    """Return the trace that the caller names, or a new one, which is not sampled."""
    given = request.headers.get("traceparent", "")
    if _TRACEPARENT.fullmatch(given):
        return given
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"


def secret_of_header(request: web.BaseRequest) -> str | None:
    """Return the secret in the header, None if there is no such header."""
    header = request.headers.get("Authorization", "")
    for scheme in _SCHEMES:
        if header.lower().startswith(scheme):
            return header[len(scheme) :].strip()
    return None


def secret_of(request: web.BaseRequest, parameters: Parameters, *, in_query: bool) -> str | None:
    """Return the secret that is no header: `api_key` of a body, `auth_key` where allowed."""
    if "api_key" not in request.query and (secret := parameters.one("api_key")) is not None:
        return secret
    if "auth_key" in parameters and (in_query or "auth_key" not in request.query):
        return parameters.one("auth_key")
    return None


def security_headers(traceparent: str) -> Mapping[str, str]:
    """Return what every answer has."""
    return {
        "X-Trace-ID": traceparent.split("-")[1],
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Server": "dragoman",
    }


def shape_of(path: str, parameters: Parameters | None) -> Shape:
    """Return how errors look there; `/translate` with `text` is DeepLX's."""
    if path.startswith(("/v2", "/v3")):
        return "deepl"
    return "deeplx" if parameters is not None and "text" in parameters else "libretranslate"


def error_body(error: ApiError, shape: Shape) -> Mapping[str, object]:
    """Return what an API says of an error."""
    if shape == "deepl":
        return {"message": error.message}
    if shape == "deeplx":
        return {"code": error.status, "message": error.message}
    return {"error": error.message}


def json_response(body: object, status: int = 200) -> web.Response:
    """Return JSON as every answer is."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return web.Response(
        body=content, status=status, headers={"Content-Type": "application/json; charset=utf-8"}
    )
