"""A Redis with failover for tests: a real primary, replicas and Sentinels."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from support.processes.waiting import wait_until
from support.services.ports import free_ports
from support.services.redis_server import KEPT_THROUGH_A_KILL, RedisServer

SERVICE = "dragoman-test"
_START_TIMEOUT_S = 30.0


class RedisSentinel:
    """`replicas` follow `servers[0]`; the Sentinels replace it `down_after_s` after it fails.

    A slow machine misses a heartbeat of a second now and then, so only tests of a fail-over ask for
    so little. The servers keep their data (`KEPT_THROUGH_A_KILL`).
    """

    def __init__(
        self, *, replicas: int = 1, sentinels: int = 3, down_after_s: float = 60, **options: str
    ) -> None:
        ports = free_ports(1 + replicas + sentinels)
        self._down_after_ms = round(down_after_s * 1000)
        self._options = {"repl_diskless_sync_delay": "0"} | KEPT_THROUGH_A_KILL | options
        self.servers = [RedisServer(port=ports[0], **self._options)]
        self.servers += [
            RedisServer(port=port, replicaof=f"127.0.0.1 {ports[0]}", **self._options)
            for port in ports[1 : 1 + replicas]
        ]
        self.sentinel_ports = ports[1 + replicas :]
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """The `redis.url` of the service."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinel_ports)
        return f"redis+sentinel://{hosts}/{SERVICE}/0"

    @property
    def primary(self) -> RedisServer:
        """The server that the first Sentinel names now."""
        with redis.Redis(port=self.sentinel_ports[0]) as sentinel:
            found: Any = sentinel.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(server for server in self.servers if server.port == int(found[1]))

    def tolerate(self, down_after_s: float) -> None:
        """Let the Sentinels replace a primary only after so long without an answer."""
        for port in self.sentinel_ports:
            with redis.Redis(port=port) as sentinel:
                sentinel.sentinel_set(
                    SERVICE, "down-after-milliseconds", str(round(down_after_s * 1000))
                )

    def __enter__(self) -> Self:
        for server in self.servers:
            self._stack.enter_context(server)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sentinel-")))
        for port in self.sentinel_ports:
            self._start_sentinel(port, folder / str(port))
        wait_until(
            self._is_ready, timeout_s=_START_TIMEOUT_S, what="Sentinels that know every server"
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start_sentinel(self, port: int, folder: Path) -> None:
        binary = shutil.which("redis-server")
        assert binary is not None, "redis-server is not installed"
        folder.mkdir()
        quorum = len(self.sentinel_ports) // 2 + 1
        settings = [
            f"port {port}",
            "bind 127.0.0.1",
            f"dir {folder}",
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.servers[0].port} {quorum}",
            f"sentinel down-after-milliseconds {SERVICE} {self._down_after_ms}",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        (folder / "sentinel.conf").write_text("\n".join(settings) + "\n")
        log = self._stack.enter_context((folder / "log").open("wb"))
        command = [binary, str(folder / "sentinel.conf"), "--sentinel"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self._stack.callback(_stop, process)

    def _is_ready(self) -> bool:
        return all(self._knows_all(port) for port in self.sentinel_ports)

    def _knows_all(self, port: int) -> bool:
        try:
            with redis.Redis(port=port, socket_timeout=1) as sentinel:
                found: Any = sentinel.execute_command("SENTINEL MASTERS")
        except redis.RedisError:
            return False
        state = found[SERVICE] if isinstance(found, dict) else found[0]
        return (
            int(state["num-slaves"]) == len(self.servers) - 1
            and int(state["num-other-sentinels"]) == len(self.sentinel_ports) - 1
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
