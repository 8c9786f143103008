"""Half-open connections: a worker in a network namespace whose links can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import redis

from support.chaos.brokers import Brokers
from support.chaos.system import Dragoman, DragomanWorker, Place
from support.services.ports import free_port

_NET: Final = "10.211"


def why_not() -> str:
    """Return why this machine cannot use namespaces; empty if it can."""
    if shutil.which("ip") is None:
        return "network namespaces need ip (Debian: iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"storm-{uuid.uuid4().hex[:6]}"
    tried = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        return f"network namespaces are not allowed here: {tried.stderr.strip()}"
    _ip("netns", "del", name)
    return ""


class Links:
    """A namespace with a link (a veth pair) to each of the named services of this machine.

    `cut` takes this end down: packets are lost silently, connections stay half open. What was
    on its way arrives after `join`.
    """

    def __init__(self, *names: str) -> None:
        token = uuid.uuid4().hex[:5]
        self.namespace = f"storm-{token}"
        self._ends = {
            name: (f"v{token}{number}a", f"v{token}{number}b", number)
            for number, name in enumerate(names)
        }
        self._net = f"{_NET}.{int(token[:2], 16)}"

    def host(self, name: str) -> str:
        """Return this machine's address on a link."""
        return f"{self._net}.{4 * self._ends[name][2] + 1}"

    def guest(self, name: str) -> str:
        """Return the namespace's address on a link."""
        return f"{self._net}.{4 * self._ends[name][2] + 2}"

    def __enter__(self) -> Self:
        _ip("netns", "add", self.namespace)
        try:
            self._lay()
        except BaseException:
            _ip("netns", "del", self.namespace)
            raise
        return self

    def _lay(self) -> None:
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        for name, (ours, theirs, _) in self._ends.items():
            _ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
            _ip("link", "set", theirs, "netns", self.namespace)
            _ip("addr", "add", f"{self.host(name)}/30", "dev", ours)
            _ip("link", "set", ours, "up")
            _ip("-n", self.namespace, "addr", "add", f"{self.guest(name)}/30", "dev", theirs)
            _ip("-n", self.namespace, "link", "set", theirs, "up")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for ours, _, _ in self._ends.values():
            with suppress(RuntimeError):
                _ip("link", "del", ours)
        _ip("netns", "del", self.namespace)

    def cut(self, name: str) -> None:
        """Drop every packet from now on."""
        _ip("link", "set", self._ends[name][0], "down")

    def join(self, name: str) -> None:
        """Let packets pass again."""
        _ip("link", "set", self._ends[name][0], "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


# --- services and workers on links --------------------------------------------------------------


class LinkedBrokers(Brokers):
    """One broker with a second listener on a link, advertised to clients of that link."""

    def __init__(self, address: str) -> None:
        super().__init__(nodes=1)
        self.linked = f"{address}:{free_port()}"

    def _properties(
        self, number: int, port: int, controller_port: int, voters: str, folder: Path
    ) -> str:
        kept = super()._properties(number, port, controller_port, voters, folder)
        plain = "PLAINTEXT:PLAINTEXT,"
        both = kept.replace("listeners=PLAINTEXT", f"listeners=LINK://{self.linked},PLAINTEXT")
        mapped = both.replace(plain, f"{plain}LINK:PLAINTEXT,")
        return mapped + "inter.broker.listener.name=PLAINTEXT\n"


class LinkedWorker(DragomanWorker):
    """A worker inside the namespace; its links can be cut one by one."""

    def __init__(self, links: Links, place: Place, name: str, settings: dict[str, Any]) -> None:
        super().__init__(place, name, settings, {})
        self.argv = ["ip", "netns", "exec", links.namespace, *self.argv]
        self.host = links.guest("watch")
        self.links = links


class LinkedDragoman(Dragoman):
    """Our worker in a namespace with the links `kafka`, `redis` and `watch` (its HTTP pages)."""

    def __init__(self, links: Links, brokers: LinkedBrokers) -> None:
        super().__init__()
        self._links = links
        self._brokers = brokers

    def worker(self, place: Place, name: str) -> LinkedWorker:
        """Return a worker that has not been started."""
        address = self._links.host("redis")
        with redis.Redis.from_url(place.redis) as client:
            client.config_set("protected-mode", "no")
            client.config_set("bind", f"127.0.0.1 {address}")
        there = replace(
            place,
            kafka=self._brokers.linked,
            redis=place.redis.replace("127.0.0.1", address),
        )
        return LinkedWorker(self._links, there, name, {"http.host": "0.0.0.0"})  # noqa: S104
