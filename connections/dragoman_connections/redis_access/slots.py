"""Which node of a Redis Cluster owns a key? The table of its 16,384 slots, as its nodes tell it."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman_connections.redis_access.address import Host

SLOTS: Final = 16_384
_KEY_AT: Final = {"EVAL": 3, "EVALSHA": 3, "XREAD": -2}
"""Where a command of ours has its key: else it comes first. XREAD ends with key and id."""
_UNKNOWN_HOST: Final = frozenset({"", "?"})


class NoSlots(Exception):
    """A node that should tell the slots cannot: it is no member of a Cluster, or knows none."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """MOVED: the slot has another owner. ASK (`asking`): this one command goes elsewhere."""

    slot: int
    host: Host
    asking: bool


def slot_of(key: str | bytes) -> int:
    """The slot of a key: by its first non-empty {tag}, else by the whole of it."""
    raw = key.encode() if isinstance(key, str) else key
    start = raw.find(b"{")
    if start >= 0 and (end := raw.find(b"}", start + 1)) > start + 1:
        raw = raw[start + 1 : end]
    return crc_hqx(raw, 0) % SLOTS


def key_of(command: Sequence[Any]) -> str | bytes:
    """The key of one of our commands, all of which have exactly one."""
    key: str | bytes = command[_KEY_AT.get(command[0], 1)]
    return key


class SlotTable:
    """Who owns which slot; empty until it has been read once."""

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
        """Their replicas, as told at the last reading."""
        return self._replicas

    def host_of(self, command: Sequence[Any]) -> Host | None:
        """The owner of the command's key; None if nobody is known to serve its slot."""
        return self._owners[slot_of(key_of(command))]

    def move(self, redirection: Redirection) -> None:
        """Believe a MOVED."""
        self._owners[redirection.slot] = redirection.host

    def hosts_to_ask(self, seeds: Sequence[Host]) -> list[Host]:
        """Nodes that may tell the slots, another one first each time: one may be behind."""
        hosts = list(dict.fromkeys([*self.primaries, *self._replicas, *seeds]))
        first = self._reads % len(hosts)
        self._reads += 1
        return hosts[first:] + hosts[:first]

    def read(self, reply: Any, *, asked: Host) -> None:
        """Take the reply of CLUSTER SLOTS over; raises NoSlots if it is none."""
        if isinstance(reply, Exception):
            raise NoSlots(str(reply)) from None
        owners: list[Host | None] = [None] * SLOTS
        replicas: dict[Host, None] = {}
        for start, end, primary, *others in reply:
            owners[start : end + 1] = [_host(primary, asked)] * (end - start + 1)
            replicas.update(dict.fromkeys(_host(other, asked) for other in others))
        if not any(owners):
            raise NoSlots("it knows no owner of any slot")
        self._owners = owners
        self._replicas = tuple(replicas)


def _host(node: Sequence[Any], asked: Host) -> Host:
    """A node's address; one that does not know its own has that at which it was asked."""
    name = node[0].decode() if isinstance(node[0], bytes) else node[0] or ""
    return (asked[0] if name in _UNKNOWN_HOST else name), int(node[1])
