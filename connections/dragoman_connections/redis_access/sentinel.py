"""Redis behind Sentinels: the primary that they report."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from dragoman_connections.redis_access.address import Host, RedisAddress
from dragoman_connections.redis_access.calls import (
    Answer,
    Call,
    Command,
    Connect,
    Connection,
    Errors,
    OneServer,
    is_read_only,
    lasting,
    replies_of_reachable,
)


class SentinelServers:
    """The primary that the Sentinels report; looked up again after it is lost or demoted."""

    def __init__(self, address: RedisAddress, connect: Connect, errors: Errors) -> None:
        self._address = address
        self._connect = connect
        self._errors = errors
        self._sentinels = {host: connect(address.sentinel_url_of(host)) for host in address.hosts}
        self._known: dict[Host, Connection] = {}
        self._primary: Host | None = None
        self._looking = asyncio.Lock()

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """See Servers."""
        primary = await self._find()
        try:
            answers = await OneServer(self._at(primary), self._errors).send(calls, confirmation)
        except self._errors.unreachable:
            self._forget(primary)
            raise
        if any(is_read_only(answer.replies, self._errors) for answer in answers):
            self._forget(primary)
        for answer in answers:
            answer.server = f"{primary[0]}:{primary[1]}"
        return answers

    async def load_scripts(self) -> None:
        """See Servers."""
        primary = await self._find()
        try:
            await OneServer(self._at(primary), self._errors).load_scripts()
        except self._errors.unreachable:
            self._forget(primary)
            raise

    async def each(self, *commands: Command) -> list[list[Any]]:
        """See Servers."""
        primary = await self._find()
        replicas = await self._ask("SENTINEL", "REPLICAS", self._address.service)
        hosts = [_host_in(_pairs(found)) for found in replicas or ()]
        replies = [await self._at(primary).send(commands)]
        return replies + await replies_of_reachable(map(self._at, hosts), commands, self._errors)

    async def keys(self, prefix: str) -> set[bytes]:
        """See Servers."""
        primary = await self._find()
        try:
            return await OneServer(self._at(primary), self._errors).keys(prefix)
        except self._errors.unreachable:
            self._forget(primary)
            raise

    async def close(self) -> None:
        """See Servers."""
        for connection in [*self._known.values(), *self._sentinels.values()]:
            await connection.close()

    async def _find(self) -> Host:
        async with self._looking:
            if self._primary is None:
                self._primary = await self._discover()
            return self._primary

    async def _discover(self) -> Host:
        service = self._address.service
        found = await self._ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", service)
        if found is None:
            raise self._errors.misfit(f"no Sentinel knows a primary of {service!r}")
        host = (_text(found[0]), int(found[1]))
        (role,) = await self._at(host).send([("ROLE",)])
        # a user without permission for ROLE learns it from READONLY instead
        if isinstance(role, list) and _text(role[0]) != "master":
            raise self._errors.not_found(
                f"{host[0]}:{host[1]} is not yet the primary of {service!r}"
            )
        return host

    async def _ask(self, *command: Any) -> Any:
        """Return the first usable answer of a Sentinel; None if no Sentinel knows the service."""
        problems: list[str] = []
        lasts = True
        for host, sentinel in self._sentinels.items():
            try:
                (reply,) = await sentinel.send([command])
            except (*self._errors.unreachable, *self._errors.refused) as error:
                reply = error
            if isinstance(reply, Exception):
                problems.append(f"{host[0]}:{host[1]} {str(reply)[:60] or type(reply).__name__}")
                lasts = lasts and lasting(reply, self._errors)
            elif reply is not None:
                return reply
        if problems:
            problem = self._errors.misfit if lasts else self._errors.not_found
            raise problem(f"no Sentinel answered: {', '.join(problems)}")
        return None

    def _at(self, host: Host) -> Connection:
        if host not in self._known:
            self._known[host] = self._connect(self._address.url_of(host))
        return self._known[host]

    def _forget(self, primary: Host) -> None:
        if self._primary == primary:
            self._primary = None


def _pairs(flat: Any) -> dict[str, str]:
    if isinstance(flat, dict):
        return {_text(name): _text(value) for name, value in flat.items()}
    return {_text(flat[at]): _text(flat[at + 1]) for at in range(0, len(flat) - 1, 2)}


def _host_in(fields: dict[str, str]) -> Host:
    return fields["ip"], int(fields["port"])


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
