"""redis-py's own clients for a Redis of any kind, independent of the product's."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
from redis.asyncio.cluster import ClusterNode as AsyncNode
from redis.cluster import ClusterNode

from dragoman_connections.redis_access.address import parse_redis_url

# redis-py does not type these
_Node: Any = ClusterNode
_Sentinel: Any = redis.sentinel.Sentinel
_AsyncSentinel: Any = redis.asyncio.sentinel.Sentinel


def client_of(url: str, **options: Any) -> Any:
    """Return a client for a `redis.url`: one server, the Sentinels' primary or a Cluster."""
    address = parse_redis_url(url)
    if address.kind == "cluster":
        nodes = [_Node(*host) for host in address.hosts]
        return redis.RedisCluster(startup_nodes=nodes, **options)
    if address.kind == "sentinel":
        return _Sentinel(list(address.hosts)).master_for(address.service, **options)
    return redis.Redis.from_url(url, **options)


def async_client_of(url: str, **options: Any) -> Any:
    """Return the same client for the event loop."""
    address = parse_redis_url(url)
    if address.kind == "cluster":
        nodes = [AsyncNode(*host) for host in address.hosts]
        return redis.asyncio.RedisCluster(startup_nodes=nodes, **options)
    if address.kind == "sentinel":
        sentinel = _AsyncSentinel(list(address.hosts))
        return sentinel.master_for(address.service, **options)
    return redis.asyncio.Redis.from_url(url, **options)
