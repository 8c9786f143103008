"""How safe must a result be before its offset is committed? `redis.durability`, checked and asked.

`none` trusts the server's memory; `aof` wants a server with an append-only file; `wait:N` waits for
N replicas and `waitaof:N` for the server's disk and those of N replicas, after each end of a job.
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
    """What must be confirmed after a finish: `wait:N` replicas, `waitaof:N` and our own disk."""
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
    """Raises SettingsError if not every server, replicas too, can give what is asked for."""
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
    """How many replicas fewer than `wait:N` and `waitaof:N` wait for some primary has now."""
    _, _, number = durability.partition(":")
    wanted, most = int(number or 0), 0
    for (told,) in await servers.each(("INFO", "replication")):
        if isinstance(told, dict) and told.get("role") == "master":
            most = max(most, wanted - int(told.get("connected_slaves", wanted)))
    return most


async def check_kind(servers: Servers, address: RedisAddress) -> None:
    """Raises SettingsError if a member of a Cluster was named as a server of its own."""
    if address.kind == "cluster":
        return
    for (told,) in await servers.each(("INFO", "cluster")):
        if isinstance(told, dict) and told.get("cluster_enabled") == 1:
            raise SettingsError(
                f"redis.url: {address.shown} is a Redis Cluster; "
                "give redis+cluster://HOST:PORT,HOST:PORT"
            )


async def configured(servers: Servers, name: str) -> set[str]:
    """A setting of every server; nothing of those that forbid CONFIG, as many hosts do."""
    found: set[str] = set()
    for (reply,) in await servers.each(("CONFIG", "GET", name)):
        if isinstance(reply, list) and len(reply) > 1:
            found.add(reply[1].decode() if isinstance(reply[1], bytes) else str(reply[1]))
    return found


async def _oldest(servers: Servers) -> tuple[int, ...]:
    """The lowest version among the servers that tell theirs."""
    versions = [
        tuple(int(part) for part in str(told["redis_version"]).split(".")[:2])
        for (told,) in await servers.each(("INFO", "server"))
        if isinstance(told, dict)
    ]
    return min(versions, default=WAITAOF_SINCE)
