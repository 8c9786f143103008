"""Pytest plugin: the fixture `client` of LibreTranslate's own tests, over HTTP.

The URL is `LIBRETRANSLATE_URL`. Theirs is a client in the process of their server.
"""

from __future__ import annotations

import os
import urllib.error
import urllib.parse
import urllib.request
from json import dumps, loads
from typing import Any, NamedTuple

import pytest


class Answer(NamedTuple):
    """What their tests read of an answer."""

    status_code: int
    data: bytes

    @property
    def json(self) -> Any:
        return loads(self.data)


class Client:
    """What their tests call."""

    def get(self, path: str) -> Answer:
        return _asked("GET", path, None, {})

    def post(self, path: str, data: Any = None, json: Any = None) -> Answer:
        if json is not None:
            return _asked("POST", path, dumps(json).encode(), {"Content-Type": "application/json"})
        return _asked("POST", path, urllib.parse.urlencode(data or {}).encode(), {})


def _asked(method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
    headers = {**headers, "Authorization": f"Bearer {os.environ['LIBRETRANSLATE_KEY']}"}
    url = f"{os.environ['LIBRETRANSLATE_URL']}{path}"
    request = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - of this machine
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return Answer(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.read())


@pytest.fixture
def client() -> Client:
    return Client()
