"""Parameters of a request: JSON, a form, or a query, as one mapping of lists of strings."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import HttpVersion11, web

from dragoman_gateway.errors import ApiError

_READ_S: Final = 60.0
"""For each MiB of a body."""
_MOST_PARTS: Final = 2_000
"""Fields of a form, names or values of a list of JSON: each of them costs time for all callers."""
_HEAD_BYTES: Final = 1_024
"""Of the headers of a part: a search in more would take time in its square."""
_NAME: Final = re.compile(
    rb'content-disposition:[^\r\n]*?[;\s]name="?([^";\r\n]+)"?', re.IGNORECASE
)
_BOUNDARY: Final = re.compile(r'boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
_IN_A_THREAD: Final = 256 * 1024
"""Bodies of more bytes than that are read in a thread: they would stop all other requests."""
_OF_OBJECT: Final = r"\[(\d{1,9})\]\.(.+)"
_TRUE: Final = frozenset({"1", "true"})
_FALSE: Final = frozenset({"0", "false"})


class Parameters:
    """What a request says, whatever its form. Unknown names are ignored."""

    def __init__(
        self,
        values: Mapping[str, list[str]],
        lists: frozenset[str] = frozenset(),
        body_bytes: int = 0,
    ) -> None:
        """Hold values; `lists` names those that JSON gives as a list."""
        self._values = values
        self._lists = lists
        self.body_bytes = body_bytes

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        """Return every value of a name, in order; those of `name[]` count too."""
        return [*self._values.get(name, ()), *self._values.get(f"{name}[]", ())]

    def is_list(self, name: str) -> bool:
        """Return whether a name has a list of values, if only of one."""
        return name in self._lists or len(self.all(name)) > 1

    def one(self, name: str) -> str | None:
        """Return the last value of a name; None if it is missing or empty."""
        found = self._values.get(name)
        return (found[-1] or None) if found else None

    def objects(self, name: str) -> list[Parameters]:
        """Return the objects of a list, in order: fields such as `name[0].field` in a form."""
        named = re.compile(re.escape(name) + _OF_OBJECT)
        found: dict[int, dict[str, list[str]]] = {}
        for each, values in self._values.items():
            if (match := named.fullmatch(each)) is not None:
                found.setdefault(int(match[1]), {})[match[2]] = values
        return [Parameters(found[at]) for at in sorted(found)]

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a yes or no. Raises ApiError for another value."""
        value = self.one(name)
        if value is None:
            return default
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise ApiError(400, f"Value for '{name}' not supported.")

    def chosen(self, name: str, choices: Mapping[str, str] | frozenset[str]) -> str | None:
        """Return a value among choices, in lower case. Raises ApiError for another one."""
        value = self.one(name)
        if value is not None and value.lower() not in choices:
            raise ApiError(400, f"Value for '{name}' not supported.")
        return value if value is None else value.lower()


def check_length(request: web.BaseRequest, limit: int) -> None:
    """Refuse a body that is too large before it is read, or that is compressed."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ApiError(415, "Send the body without Content-Encoding.")
    if (request.content_length or 0) > limit:
        raise too_large(request.content_length or 0, limit)


def too_large(size: int, limit: int) -> ApiError:
    """Return the answer to a body above the limit."""
    return ApiError(413, f"The request has {size} bytes; the limit is {limit}. Send less at once.")


async def ask_for_body(request: web.BaseRequest, limit: int) -> None:
    """Ask for a body that its sender holds back. Raises ApiError if it is too large."""
    check_length(request, limit)
    expects = request.headers.get("Expect", "").lower() == "100-continue"
    if expects and request.version >= HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def query_values(request: web.BaseRequest) -> dict[str, list[str]]:
    """Return the values of the query. Raises ValueError."""
    values: dict[str, list[str]] = {}
    for name, value in _pairs(request.rel_url.raw_query_string.encode("ascii"), keep="replace"):
        values.setdefault(name, []).append(value)
    return values


async def read_parameters(
    request: web.BaseRequest, limit: int, grown: Callable[[int], None]
) -> Parameters:
    """Return the parameters of the body, also of a GET, before those of the query.

    `grown` gets the bytes of the body so far, and may raise ApiError.
    """
    check_length(request, limit)
    body = await _body(request, limit, grown)
    try:
        values = query_values(request)
        found, lists = await _fields(request.headers.get("Content-Type", ""), body)
    except UnicodeError:
        raise ApiError(400, "The request is not valid UTF-8.") from None
    except RecursionError:
        raise ApiError(400, "The request's JSON is nested too deeply.") from None
    except ValueError as error:
        raise ApiError(400, f"The request cannot be read: {str(error)[:200]}") from None
    return Parameters({**values, **found}, lists, len(body))


async def _body(request: web.BaseRequest, limit: int, grown: Callable[[int], None]) -> bytes:
    """Return the body, read no further than the limit."""
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_S * max(1, limit >> 20)):
            while chunk := await request.content.readany():
                body += chunk
                if len(body) > limit:
                    raise too_large(len(body), limit)
                grown(len(body))
    except TimeoutError:
        raise ApiError(408, "The body did not arrive in time.") from None
    except web.RequestPayloadError:
        raise ApiError(400, "The body does not fit its headers.") from None
    return bytes(body)


async def _fields(kind: str, body: bytes) -> tuple[dict[str, list[str]], frozenset[str]]:
    if len(body) > _IN_A_THREAD:
        return await asyncio.to_thread(_read, kind, body)
    return _read(kind, body)


def _read(content_type: str, body: bytes) -> tuple[dict[str, list[str]], frozenset[str]]:
    """Return the values of a body, and which of them are lists in JSON."""
    kind = content_type.lower()
    if "json" in kind or body.lstrip()[:1] == b"{":
        return _of_json(body)
    found: dict[str, list[str]] = {}
    pairs = _of_parts(content_type, body) if "multipart/" in kind else _pairs(body)
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found, frozenset()


def _pairs(body: bytes, keep: str = "strict") -> Iterator[tuple[str, str]]:
    """Yield the fields of a form in which nothing but UTF-8 is escaped."""
    text = body.decode("utf-8", keep)
    yield from parse_qsl(text, keep_blank_values=True, errors=keep, max_num_fields=_MOST_PARTS)


def _of_json(body: bytes) -> tuple[dict[str, list[str]], frozenset[str]]:
    try:
        given = json.loads(body.decode()) if body.strip() else {}
    except json.JSONDecodeError as error:
        raise ValueError(f"not valid JSON at character {error.pos + 1}") from None
    if not isinstance(given, dict):
        raise ValueError("its JSON is not an object")  # noqa: TRY004  one kind for all problems
    if len(given) > _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS} names")
    found: dict[str, list[str]] = {}
    for name, value in given.items():
        name.encode()  # half of a character is refused here
        found.update(_of_value(name, value))
        if len(found) > _MOST_PARTS:
            raise ValueError(f"it has more than {_MOST_PARTS} fields")
    return found, frozenset(name for name in found if isinstance(given.get(name), list))


def _of_value(name: str, value: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield what one name of an object holds: nothing, strings, or objects."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    if len(values) > _MOST_PARTS:
        raise ValueError(f"'{name[:40]}' has more than {_MOST_PARTS} values")
    if isinstance(value, list) and any(isinstance(each, dict) for each in values):
        yield from _of_objects(name, values)
    elif values:
        yield name, [_string(name, each) for each in values]


def _of_objects(name: str, values: list[Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of a list of objects, named as a form names them."""
    for at, each in enumerate(values):
        if not isinstance(each, dict):
            raise ValueError(f"'{name[:40]}' must be a list of objects")  # noqa: TRY004
        for inner, value in each.items():
            if value is not None:
                yield f"{name}[{at}].{inner}", [_string(inner, value)]


def _string(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str | int | float):
        text = str(value)
        text.encode()
        return text
    raise ValueError(f"'{name[:40]}' must be a string or a list of strings")


def _of_parts(content_type: str, body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the fields of a multipart body; a file is none."""
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise ValueError("multipart without a boundary")
    parts = body.split(b"--" + match[1].encode("ascii"), _MOST_PARTS + 1)
    if len(parts) > _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS} parts")
    for part in parts[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        if len(head) > _HEAD_BYTES:
            raise ValueError(f"a part has more than {_HEAD_BYTES} bytes of headers")
        if b"filename=" in head.lower():
            raise ValueError("files are not accepted here")
        if (name := _NAME.search(head)) is not None:
            yield name[1].decode(), content.removesuffix(b"\r\n").decode()
