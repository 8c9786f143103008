"""A Redis Cluster for tests: real servers on free ports, joined by CLUSTER commands."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import redis

from support.processes.waiting import wait_until
from support.services.ports import free_port
from support.services.redis_server import KEPT_THROUGH_A_KILL, RedisServer

_SLOTS = 16_384
_BUS_OFFSET = 10_000
_HIGHEST = 22_000
"""So that the bus is below the kernel's ephemeral ports too."""
_JOIN_TIMEOUT_S = 30.0


class RedisCluster:
    """`primaries` servers that share the slots, each with `replicas` replicas.

    `servers` holds the primaries first, then the replicas in the same order. They keep their data
    (`KEPT_THROUGH_A_KILL`). Only tests of a fail-over ask for a time-out below Redis' own: a slow
    machine exceeds a second now and then.
    """

    def __init__(
        self,
        *,
        primaries: int = 3,
        replicas: int = 0,
        node_timeout_ms: int = 15_000,
        **options: str,
    ) -> None:
        self._primaries = primaries
        self._options = {
            "cluster_enabled": "yes",
            "cluster_node_timeout": str(node_timeout_ms),
            "cluster_replica_validity_factor": "0",
            "repl_diskless_sync_delay": "0",
            **KEPT_THROUGH_A_KILL,
        } | options
        self.servers: list[RedisServer] = []
        self._count = primaries * (1 + replicas)
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """The `redis.url` of the Cluster."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{one.port}' for one in self.servers)}"

    @property
    def primaries(self) -> list[RedisServer]:
        """The servers that started as primaries."""
        return self.servers[: self._primaries]

    def owner(self, key: str) -> RedisServer:
        """Return the primary that owns the key now."""
        with self.client() as client:
            node = client.get_node_from_key(key)
            assert node is not None
            return next(one for one in self.servers if one.port == node.port)

    def client(self) -> redis.RedisCluster:
        """Return redis-py's own client of the Cluster."""
        alive = next(one for one in self.servers if one.running)
        return redis.RedisCluster(host="127.0.0.1", port=alive.port)

    def flush(self) -> None:
        """Empty every primary."""
        with self.client() as client:
            client.flushall(target_nodes=redis.RedisCluster.PRIMARIES)

    def __enter__(self) -> Self:
        for _ in range(self._count):
            server = RedisServer(port=_port_with_a_bus(), **self._options)
            self.servers.append(self._stack.enter_context(server))
        self._join()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _join(self) -> None:
        ports = [server.port for server in self.servers]
        for number, port in enumerate(ports[: self._primaries]):
            first = _SLOTS * number // self._primaries
            last = _SLOTS * (number + 1) // self._primaries - 1
            _command(port, "CLUSTER", "ADDSLOTSRANGE", first, last)
            _command(port, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for port in ports[1:]:
            _command(port, "CLUSTER", "MEET", "127.0.0.1", ports[0])
        self._wait("every node knows every other", self._all_met)
        for number, port in enumerate(ports[self._primaries :]):
            primary = _command(ports[number % self._primaries], "CLUSTER", "MYID").decode()
            _command(port, "CLUSTER", "REPLICATE", primary)
        self._wait("a complete Cluster", self._is_whole)

    def _all_met(self) -> bool:
        return all(
            _info(one.port)["cluster_known_nodes"] == len(self.servers) for one in self.servers
        )

    def _is_whole(self) -> bool:
        """Return whether every node serves every slot and each replica follows its primary."""
        if any(_info(one.port)["cluster_state"] != "ok" for one in self.servers):
            return False
        replicas = self.servers[self._primaries :]
        links = [_command(one.port, "INFO", "replication") for one in replicas]
        return all(link.get("master_link_status") == "up" for link in links)

    @staticmethod
    def _wait(what: str, condition: Any) -> None:
        wait_until(condition, timeout_s=_JOIN_TIMEOUT_S, what=what)


def _command(port: int, *command: Any) -> Any:
    with redis.Redis(port=port, socket_timeout=5) as client:
        return client.execute_command(*command)


def _info(port: int) -> dict[str, Any]:
    lines = _command(port, "CLUSTER", "INFO")
    if isinstance(lines, dict):
        pairs = {_text(name): _text(value) for name, value in lines.items()}
    else:
        pairs = dict(line.split(":", 1) for line in _text(lines).split("\r\n") if line)
    return {name: int(value) if value.isdigit() else value for name, value in pairs.items()}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _port_with_a_bus() -> int:
    """Return a free port whose Cluster bus port is free too."""
    while True:
        port = free_port(highest=_HIGHEST)
        with socket.socket() as bus:
            try:
                bus.bind(("127.0.0.1", port + _BUS_OFFSET))
            except OSError:
                continue
        return port
