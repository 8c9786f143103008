"""Access to Redis: one server, the primary behind Sentinels, or the nodes of a Cluster."""

from __future__ import annotations

from dragoman_connections.redis_access.address import RedisAddress
from dragoman_connections.redis_access.calls import Connect, Errors, OneServer, Servers
from dragoman_connections.redis_access.cluster import ClusterServers
from dragoman_connections.redis_access.sentinel import SentinelServers


def open_servers(address: RedisAddress, connect: Connect, errors: Errors) -> Servers:
    """Return the servers of an address; nothing connects yet."""
    if address.kind == "cluster":
        return ClusterServers(address, connect, errors)
    if address.kind == "sentinel":
        return SentinelServers(address, connect, errors)
    url = address.url_of(address.hosts[0] if address.hosts else None)
    return OneServer(connect(url), errors)
