"""How safe must a result be before its offset is committed? `redis.durability`, checked and asked.

`none` trusts the server's memory; `aof` wants a server with an append-only file; `wait:N` waits for
N replicas and `waitaof:N` for the server's disk and those of N replicas, after each end of a job.
"""

from __future__ import annotations

from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from dragoman_schemas.connections import SettingsError
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


async def check_durability(redis: Redis, durability: str, address: str) -> None:
    """Raises SettingsError if this server cannot give what is asked for."""
    if durability == "aof" and await configured(redis, "appendonly", otherwise="yes") != "yes":
        raise SettingsError(
            f"redis.durability: Redis at {address} has `appendonly no`; "
            "set `appendonly yes` there, or redis.durability = 'none'"
        )
    if durability.startswith("waitaof") and await _version(redis) < WAITAOF_SINCE:
        raise SettingsError(
            f"redis.durability: Redis at {address} has no WAITAOF (it came with 7.2); "
            "give aof or wait:N"
        )


async def configured(redis: Redis, name: str, *, otherwise: str) -> str:
    """A setting of the server; `otherwise` where it forbids CONFIG, as many hosts do."""
    try:
        reply: dict[Any, Any] = await redis.config_get(name)
    except (RedisError, OSError):
        return otherwise
    values = [value.decode() if isinstance(value, bytes) else value for value in reply.values()]
    return str(values[0]) if values else otherwise


async def _version(redis: Redis) -> tuple[int, ...]:
    told: dict[Any, Any] = await redis.info(section="server")
    return tuple(int(part) for part in str(told["redis_version"]).split(".")[:2])
