"""Durability of a terminal state before its offset is committed: `redis.durability`.

`none` relies on the server's memory; `aof` requires an append-only file; `wait:N` waits for N
replicas and `waitaof:N` for the disks of the server and N replicas, after each finish.
"""

from __future__ import annotations

from typing import Final

from dragoman_connections.redis_access.address import RedisAddress
from dragoman_connections.redis_access.calls import Servers
from dragoman_connections.settings import SettingsError
from dragoman_worker.stores.pipeline import Confirmation

CONFIRM_MS: Final = 1_000
WAITAOF_SINCE: Final = (7, 2)


def confirmation_for(durability: str) -> Confirmation | None:
    """Return the confirmation that follows a finish, None if the setting asks for none."""
    kind, _, number = durability.partition(":")
    count = int(number or 0)
    if kind == "wait":
        return Confirmation(("WAIT", count, CONFIRM_MS), lambda reply: int(reply) >= count)
    if kind == "waitaof":
        return Confirmation(
            ("WAITAOF", 1, count, CONFIRM_MS),
            lambda reply: int(reply[0]) >= 1 and int(reply[1]) >= count,
        )
    return None


async def check_durability(servers: Servers, durability: str, address: str) -> None:
    """Check that all servers support the durability, replicas too. Raises SettingsError."""
    if durability == "aof" and "no" in await configured(servers, "appendonly"):
        raise SettingsError(
            f"redis.durability: Redis at {address} has `appendonly no`; "
            "set `appendonly yes` on every server, or redis.durability = 'none'"
        )
    if durability.startswith("waitaof") and await _oldest(servers) < WAITAOF_SINCE:
        raise SettingsError(
            f"redis.durability: Redis at {address} has no WAITAOF (it came with 7.2); "
            "give aof or wait:N"
        )


async def missing_replicas(servers: Servers, durability: str) -> int:
    """Return how many replicas the worst primary lacks for `wait:N` or `waitaof:N`."""
    _, _, number = durability.partition(":")
    wanted, most = int(number or 0), 0
    for (info,) in await servers.each(("INFO", "replication")):
        if isinstance(info, dict) and info.get("role") == "master":
            most = max(most, wanted - int(info.get("connected_slaves", wanted)))
    return most


async def check_kind(servers: Servers, address: RedisAddress) -> None:
    """Check that a single server is no member of a Cluster. Raises SettingsError."""
    if address.kind == "cluster":
        return
    for (info,) in await servers.each(("INFO", "cluster")):
        if isinstance(info, dict) and info.get("cluster_enabled") == 1:
            raise SettingsError(
                f"redis.url: {address.shown} is a Redis Cluster; "
                "give redis+cluster://HOST:PORT,HOST:PORT"
            )


async def configured(servers: Servers, name: str) -> set[str]:
    """Return a setting's values over all servers; those that forbid CONFIG are left out."""
    found: set[str] = set()
    for (reply,) in await servers.each(("CONFIG", "GET", name)):
        if isinstance(reply, list) and len(reply) > 1:
            found.add(reply[1].decode() if isinstance(reply[1], bytes) else str(reply[1]))
    return found


async def _oldest(servers: Servers) -> tuple[int, ...]:
    """Return the lowest version of the servers that report one."""
    versions = [
        tuple(int(part) for part in str(info["redis_version"]).split(".")[:2])
        for (info,) in await servers.each(("INFO", "server"))
        if isinstance(info, dict)
    ]
    return min(versions, default=WAITAOF_SINCE)
