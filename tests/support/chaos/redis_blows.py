"""Faults of a Redis and their repair, by its own commands and by signals."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.processes.waiting import wait_until
from support.services.ports import free_port
from support.services.redis_server import RedisServer
from support.services.refusing_proxy import RefusingProxy

_ASK_S: Final = 2.0
_MEND_S: Final = 60.0


class StruckRedis(RedisServer):
    """A Redis for storms, which keeps every acknowledged write.

    With ``everysec`` it may answer up to two seconds before it writes, whenever its disk is behind
    (aof.c, `aof_flush_postponed_start`): a SIGKILL then loses ends that were acknowledged, which is
    Redis's loss and not ours to be judged by.
    """

    def __init__(self) -> None:
        super().__init__(
            appendonly="yes",
            appendfsync="always",
            auto_aof_rewrite_percentage="0",
            maxmemory_policy="noeviction",
        )

        self._keeper: redis.Redis | None = None
        self._proxy: RefusingProxy | None = None

    def client(self, wait_s: float = _ASK_S) -> redis.Redis:
        """Return a client that waits up to two seconds, or up to `wait_s`."""
        return redis.Redis(
            port=self.port,
            socket_timeout=wait_s,
            socket_connect_timeout=wait_s,
            retry=Retry(NoBackoff(), 0),
        )

    def freeze(self) -> None:
        """Send SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Send SIGCONT."""
        with suppress(RuntimeError, ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def make_readonly(self) -> None:
        """Make it a replica without a primary: writes are refused (READONLY)."""
        self._ask("REPLICAOF", "127.0.0.1", free_port())

    def make_writable(self) -> None:
        """Make it a primary again."""
        self._ask_until_answered("REPLICAOF", "NO", "ONE")

    def squeeze(self) -> None:
        """Allow less memory than it uses: writes are refused (OOM)."""
        self._ask("CONFIG", "SET", "maxmemory", "1mb")

    def relax(self) -> None:
        """Remove the memory limit."""
        self._ask_until_answered("CONFIG", "SET", "maxmemory", "0")

    def forget_scripts(self) -> None:
        """Run SCRIPT FLUSH: every EVALSHA is answered NOSCRIPT."""
        self._ask("SCRIPT", "FLUSH")

    def change_password(self) -> None:
        """Require a password, which workers do not have, and cut one of two of their connections.

        Connections that stay keep their rights.
        """
        self._keeper = self.client()
        self._keeper.config_set("requirepass", "changed")
        others = [each for each in self._keeper.client_list() if each["cmd"] != "client|list"]
        for each in others[::2]:
            with suppress(redis.ResponseError):
                self._keeper.client_kill(each["addr"])

    def take_password_back(self) -> None:
        """Require no password any longer."""
        if self._keeper is not None:
            self._keeper.config_set("requirepass", "")
            self._keeper.close()
            self._keeper = None

    @property
    def proxied_url(self) -> str:
        """Database 0, through a proxy whose replies can be broken."""
        if self._proxy is None:
            self._proxy = RefusingProxy(self.port)
        return self._proxy.url

    def refuse_all(self, error: str) -> None:
        """Answer every command that comes through the proxy with an error."""
        assert self._proxy is not None, "its workers do not use the proxy"
        self._proxy.refuse(error)

    def accept_all(self) -> None:
        """Let commands pass the proxy again."""
        if self._proxy is not None:
            self._proxy.accept()

    def close_proxy(self) -> None:
        """Stop the proxy, if there is one."""
        if self._proxy is not None:
            self._proxy.close()

    def drop_clients(self) -> Any:
        """Run CLIENT KILL for all other clients and return their number."""
        return self._ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def hold_clients(self, seconds: float) -> None:
        """Run CLIENT PAUSE: connections stay open without answers."""
        self._ask("CLIENT", "PAUSE", int(seconds * 1000), "ALL")

    def _ask(self, *words: Any) -> Any:
        with self.client() as client:
            return client.execute_command(*words)

    def _ask_until_answered(self, *words: Any) -> None:
        """Repeat a command until it succeeds: on a slow disk Redis hangs for seconds."""

        def answered() -> bool:
            with suppress(redis.ConnectionError, redis.TimeoutError):
                self._ask(*words)
                return True
            return False

        wait_until(answered, timeout_s=_MEND_S, what=f"Redis answers {' '.join(words)}")

    def mend(self) -> None:
        """Repair it after any fault: running, writable and without a memory limit."""
        self.thaw()
        if self._process is None:
            self.start()
        self.take_password_back()
        self.accept_all()
        self.relax()
        self.make_writable()
