"""Slot table of a Redis Cluster: which node owns which of the 16,384 slots."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman_connections.redis_access.address import Host

SLOTS: Final = 16_384
_KEY_AT: Final = {"EVAL": 3, "EVALSHA": 3, "MEMORY": 2, "XREAD": -2}
"""Position of the key in commands that do not start with it. XREAD ends with key and id."""
_UNKNOWN_HOST: Final = frozenset({"", "?"})


class NoSlots(Exception):
    """The node reports no slots: it is not part of a Cluster, or knows no slot owner."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """MOVED: the slot has another owner. ASK (`asking`): only this command has another target."""

    slot: int
    host: Host
    asking: bool


def slot_of(key: str | bytes) -> int:
    """Return the slot of a key: hashed by its first non-empty {tag}, otherwise as a whole."""
    raw = key.encode() if isinstance(key, str) else key
    start = raw.find(b"{")
    if start >= 0 and (end := raw.find(b"}", start + 1)) > start + 1:
        raw = raw[start + 1 : end]
    return crc_hqx(raw, 0) % SLOTS


def key_of(command: Sequence[Any]) -> str | bytes:
    """Return the key of a command; every command of this project has exactly one."""
    key: str | bytes = command[_KEY_AT.get(command[0], 1)]
    return key


class SlotTable:
    """Owner of each slot; empty until the first `read`."""

    def __init__(self) -> None:
        self._owners: list[Host | None] = [None] * SLOTS
        self._replicas: tuple[Host, ...] = ()
        self._reads = 0

    @property
    def primaries(self) -> tuple[Host, ...]:
        """Every node that owns slots."""
        return tuple(dict.fromkeys(owner for owner in self._owners if owner is not None))

    @property
    def replicas(self) -> tuple[Host, ...]:
        """The replicas of the primaries, as of the last `read`."""
        return self._replicas

    def host_of(self, command: Sequence[Any]) -> Host | None:
        """Return the owner of the command's key; None if no node is known to serve its slot."""
        return self._owners[slot_of(key_of(command))]

    def move(self, redirection: Redirection) -> None:
        """Record the new owner that a MOVED reports."""
        self._owners[redirection.slot] = redirection.host

    def hosts_to_ask(self, seeds: Sequence[Host]) -> list[Host]:
        """Return nodes that may report the slots, each time another first: one may be outdated."""
        hosts = list(dict.fromkeys([*self.primaries, *self._replicas, *seeds]))
        first = self._reads % len(hosts)
        self._reads += 1
        return hosts[first:] + hosts[:first]

    def read(self, reply: Any, *, source: Host) -> None:
        """Replace the table by a reply to CLUSTER SLOTS. Raises NoSlots for an unusable reply."""
        if isinstance(reply, Exception):
            raise NoSlots(str(reply)) from None
        owners: list[Host | None] = [None] * SLOTS
        replicas: dict[Host, None] = {}
        for start, end, primary, *others in reply:
            owners[start : end + 1] = [_host(primary, source)] * (end - start + 1)
            replicas.update(dict.fromkeys(_host(other, source) for other in others))
        if not any(owners):
            raise NoSlots("it knows no owner of any slot")
        self._owners = owners
        self._replicas = tuple(replicas)


def _host(node: Sequence[Any], source: Host) -> Host:
    """Return a node's address; a node that reports none has the address of the reply's source."""
    name = node[0].decode() if isinstance(node[0], bytes) else node[0] or ""
    return (source[0] if name in _UNKNOWN_HOST else name), int(node[1])
