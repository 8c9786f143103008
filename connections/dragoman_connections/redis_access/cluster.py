"""Batches of commands to the nodes of a Redis Cluster, through resharding and failover."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman_connections.redis_access.address import Host, RedisAddress
from dragoman_connections.redis_access.calls import (
    Answer,
    Call,
    Command,
    Connect,
    Connection,
    Errors,
    OneServer,
    lasting,
    replies_of_reachable,
)
from dragoman_connections.redis_access.slots import NoSlots, Redirection, SlotTable

_REDIRECTIONS: Final = 5
"""How many MOVED and ASK redirections one call follows before its error is returned."""


@dataclass(slots=True)
class _Progress:
    """A call under way in a Cluster: its answer so far and its last redirection."""

    call: Call
    answer: Answer
    redirection: Redirection | None = None
    followed: int = 0

    @property
    def next(self) -> int:
        return len(self.answer.replies)

    @property
    def under_way(self) -> bool:
        return self.next < len(self.call.commands)

    def fail(self, error: Exception, host: Host | None = None) -> None:
        self.answer.replies += [error] * (len(self.call.commands) - self.next)
        self.answered_by(host)

    def answered_by(self, host: Host | None) -> None:
        if host is not None:
            self.answer.server = f"{host[0]}:{host[1]}"


class ClusterServers:
    """The primaries of a Cluster. A batch takes as many rounds as its longest call has nodes.

    In a round each call sends its next commands that belong to one node; the commands of a node are
    sent together. A MOVED or ASK is followed in the next round, starting with that command.
    """

    def __init__(self, address: RedisAddress, connect: Connect, errors: Errors) -> None:
        self._address = address
        self._connect = connect
        self._errors = errors
        self._known: dict[Host, Connection] = {}
        self._slots = SlotTable()
        self._stale = True
        self._looking = asyncio.Lock()

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        """See Servers."""
        await self._refresh()
        under_way = [_Progress(call, Answer([])) for call in calls]
        answers = [progress.answer for progress in under_way]
        while under_way := [progress for progress in under_way if progress.under_way]:
            groups: dict[Host, list[tuple[_Progress, int, bool]]] = {}
            for progress in under_way:
                self._assign(progress, groups)
            await asyncio.gather(
                *(self._send_to(host, group, confirmation) for host, group in groups.items())
            )
        return answers

    async def load_scripts(self) -> None:
        """See Servers."""
        await self._refresh()
        for host in self._slots.primaries:
            await OneServer(self._at(host), self._errors).load_scripts()

    async def each(self, *commands: Command) -> list[list[Any]]:
        """See Servers."""
        await self._refresh()
        primaries = [await self._at(host).send(commands) for host in self._slots.primaries]
        replicas = map(self._at, self._slots.replicas)
        return primaries + await replies_of_reachable(replicas, commands, self._errors)

    async def keys(self, prefix: str) -> set[bytes]:
        """See Servers."""
        await self._refresh()
        found: set[bytes] = set()
        for host in self._slots.primaries:
            found |= await OneServer(self._at(host), self._errors).keys(prefix)
        return found

    async def close(self) -> None:
        """See Servers."""
        for connection in self._known.values():
            await connection.close()

    def _assign(
        self, progress: _Progress, groups: dict[Host, list[tuple[_Progress, int, bool]]]
    ) -> None:
        """Add the call's next commands that share a node to the node's group."""
        commands, first = progress.call.commands, progress.next
        redirection, progress.redirection = progress.redirection, None
        if redirection is not None and redirection.asking:
            groups.setdefault(redirection.host, []).append((progress, 1, True))
            return
        host = self._slots.host_of(commands[first])
        if host is None:
            self._stale = True
            progress.fail(self._errors.not_found("no node serves the slot of the key"))
            return
        count = 1
        for command in commands[first + 1 :]:
            if self._slots.host_of(command) != host:
                break
            count += 1
        groups.setdefault(host, []).append((progress, count, False))

    async def _send_to(
        self,
        host: Host,
        group: Sequence[tuple[_Progress, int, bool]],
        confirmation: Command | None,
    ) -> None:
        commands: list[Command] = []
        confirmed = [one for one, _, _ in group if one.next == 0 and one.call.confirmed]
        for progress, count, asking in group:
            first = progress.next
            commands += [("ASKING",)] if asking else []
            commands += progress.call.commands[first : first + count]
        if confirmed and confirmation is not None:
            commands.append(confirmation)
        try:
            replies = await OneServer(self._at(host), self._errors).send([Call(commands)])
        except Exception as error:  # noqa: BLE001  each of these calls gets it, the others continue
            self._stale = True
            for progress, _, _ in group:
                progress.fail(error, host)
            return
        self._hand_out(host, replies[0].replies, group)
        for progress in confirmed:
            progress.answer.confirmation = replies[0].replies[-1] if confirmation else None

    def _hand_out(
        self, host: Host, replies: Sequence[Any], group: Sequence[tuple[_Progress, int, bool]]
    ) -> None:
        position = 0
        for progress, count, asking in group:
            position += asking
            for reply in replies[position : position + count]:
                if not self._record(progress, reply, host):
                    break
            position += count

    def _record(self, progress: _Progress, reply: Any, host: Host) -> bool:
        """Record one reply; return False if the commands after it have to be sent again."""
        if not isinstance(reply, Exception):
            if progress.next == 0:
                progress.answered_by(host)
            progress.answer.replies.append(reply)
            return True
        redirection = self._errors.redirection(reply)
        if redirection is not None and progress.followed < _REDIRECTIONS:
            progress.followed += 1
            progress.redirection = redirection
            if not redirection.asking:
                self._slots.move(redirection)
                self._stale = True  # other slots may have moved too
            return False
        if isinstance(reply, self._errors.cluster_down + self._errors.read_only):
            self._stale = True
        if redirection is not None:
            reply = self._errors.not_found(
                "more than 5 redirections for one call: a slot keeps moving"
            )
        progress.fail(reply, host)
        return False

    async def _refresh(self) -> None:
        """Read the slot table again if an error has shown that it is stale."""
        async with self._looking:
            if not self._stale:
                return
            problems: list[str] = []
            lasts, errors = True, self._errors
            skipped: tuple[type[Exception], ...] = (NoSlots, *errors.unreachable, *errors.refused)
            for host in self._slots.hosts_to_ask(self._address.hosts):
                try:
                    (reply,) = await self._at(host).send([("CLUSTER", "SLOTS")])
                    if isinstance(reply, errors.refused):
                        raise reply
                    self._slots.read(reply, source=host)
                except skipped as error:
                    problems.append(f"{host[0]}:{host[1]} {str(error)[:60]}")
                    lasts = lasts and lasting(error, errors)
                    continue
                self._stale = False
                await self._close_removed_nodes()
                return
        problem = errors.misfit if lasts else errors.not_found
        raise problem(f"no node reports the Cluster's slots: {', '.join(problems)}")

    async def _close_removed_nodes(self) -> None:
        wanted = {*self._slots.primaries, *self._slots.replicas, *self._address.hosts}
        for host in self._known.keys() - wanted:
            await self._known.pop(host).close()

    def _at(self, host: Host) -> Connection:
        if host not in self._known:
            self._known[host] = self._connect(self._address.url_of(host))
        return self._known[host]
