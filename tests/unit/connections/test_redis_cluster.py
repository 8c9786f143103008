"""The calls of a batch reach the nodes of a Cluster in order, whatever moves or fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from redis.crc import key_slot

from dragoman_connections.redis_access.address import Host, parse_redis_url
from dragoman_connections.redis_access.calls import Answer, Call, Command, Errors
from dragoman_connections.redis_access.cluster import ClusterServers
from dragoman_connections.redis_access.slots import Redirection, key_of, slot_of

A, B, C = ("a", 1), ("b", 1), ("c", 1)
WAIT = ("WAIT", 1, 1000)


class Moved(Exception):
    """MOVED, or ASK if `asking`."""

    def __init__(self, slot: int, host: Host, *, asking: bool = False) -> None:
        super().__init__()
        self.redirection = Redirection(slot, host, asking)


class Gone(Exception):
    """No connection."""


class Misfit(Gone):
    """The servers are no Cluster, or refuse this user."""


class Refused(Exception):
    """NOAUTH."""


class NoScript(Exception):
    """NOSCRIPT."""


class Down(Exception):
    """CLUSTERDOWN."""


ERRORS = Errors(
    unreachable=(Gone,),
    refused=(Refused,),
    read_only=(),
    no_script=(NoScript,),
    cluster_down=(Down,),
    redirection=lambda error: error.redirection if isinstance(error, Moved) else None,
    not_found=Gone,
    misfit=Misfit,
)
Reply = Callable[[Host, Command], Any]


class FakeCluster:
    """Nodes that answer each command with their name, unless a test replaces `reply`."""

    def __init__(self) -> None:
        self.sent: list[tuple[Host, list[Command]]] = []
        self.owners = [A, B, C]
        self.slots: Callable[[], Any] = self._slots
        self.reply: Reply = lambda host, command: (host[0], command[0])
        self.servers = ClusterServers(
            parse_redis_url("redis+cluster://a:1,b:1,c:1"),
            lambda url: FakeNode(self, _host(url)),
            ERRORS,
        )

    def _slots(self) -> list[Any]:
        third = 16_384 // 3 + 1
        return [
            [at * third, min((at + 1) * third, 16_384) - 1, [host[0].encode(), host[1]]]
            for at, host in enumerate(self.owners)
        ]

    async def send(self, *calls: Call, confirmation: Command | None = None) -> list[Answer]:
        return await self.servers.send(calls, confirmation)

    def traffic(self) -> list[tuple[str, list[str]]]:
        """Return which host was sent which commands, without CLUSTER SLOTS."""
        return [
            (host[0], [command[0] for command in commands])
            for host, commands in self.sent
            if commands[0][0] != "CLUSTER"
        ]

    def questions(self) -> int:
        return sum(commands[0][0] == "CLUSTER" for _, commands in self.sent)


class FakeNode:
    """Connection to one node."""

    def __init__(self, cluster: FakeCluster, host: Host) -> None:
        self._cluster, self._host = cluster, host

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        self._cluster.sent.append((self._host, list(commands)))
        return [self._reply(command) for command in commands]

    def _reply(self, command: Command) -> Any:
        reply = self._cluster.reply(self._host, command)
        return self._cluster.slots() if command == ("CLUSTER", "SLOTS") else reply

    async def disconnect(self) -> None:
        """Nothing is connected."""

    async def close(self) -> None:
        """Nothing is connected."""


def _host(url: str) -> Host:
    name, _, port = url.removeprefix("redis://").removesuffix("/0").partition(":")
    return name, int(port)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def key_at(host: Host, number: int = 0) -> str:
    """Return the `number`-th key that `host` owns at first."""
    third = 16_384 // 3 + 1
    of_host = (f"k{n}" for n in range(1000) if slot_of(f"k{n}") // third == [A, B, C].index(host))
    return [next(of_host) for _ in range(number + 1)][number]


@pytest.mark.parametrize(
    "key", ["", "a", "dragoman:job:x", "{a}b", "x{ab}y{cd}", "{}x", "a{b", "{dragoman}:é", "}{a}"]
)
def test_the_slot_of_a_key_is_the_one_redis_computes(key: str) -> None:
    assert slot_of(key) == slot_of(key.encode()) == key_slot(key.encode())


@pytest.mark.parametrize(
    "command",
    [
        ("EVALSHA", "sha", 1, "key", "argument"),
        ("HMGET", "key", "field"),
        ("XREAD", "COUNT", 1, "BLOCK", 5, "STREAMS", "key", "0-0"),
        ("XADD", "key", "*", "field", "value"),
    ],
)
def test_the_key_of_a_command_is_found(command: Command) -> None:
    assert key_of(command) == "key"


async def test_the_calls_of_one_node_are_sent_together(cluster: FakeCluster) -> None:
    calls = [Call([("GET", key_at(host, number))]) for number in range(5) for host in (A, B)]
    answers = await cluster.send(*calls)
    assert [answer.replies for answer in answers] == [[("a", "GET")], [("b", "GET")]] * 5
    assert sorted(cluster.traffic()) == [("a", ["GET"] * 5), ("b", ["GET"] * 5)]


async def test_a_call_s_commands_take_effect_in_order_over_several_nodes(
    cluster: FakeCluster,
) -> None:
    a, b = key_at(A), key_at(B)
    first = Call([("FINISH", a), ("HSET", b), ("PEXPIRE", b), ("XADD", a)])
    (answer,) = await cluster.send(first)
    assert cluster.traffic() == [("a", ["FINISH"]), ("b", ["HSET", "PEXPIRE"]), ("a", ["XADD"])]
    assert [name for _, name in answer.replies] == ["FINISH", "HSET", "PEXPIRE", "XADD"]


async def test_commands_after_a_refused_one_are_not_sent(cluster: FakeCluster) -> None:
    wrong = ValueError("OOM")
    cluster.reply = lambda host, command: wrong if command[0] == "FINISH" else command[0]
    refused, other = await cluster.send(
        Call([("FINISH", key_at(A)), ("XADD", key_at(B))]), Call([("TAKE", key_at(B))])
    )
    assert refused.replies == [wrong, wrong]
    assert other.replies == ["TAKE"]
    assert all("XADD" not in names for _, names in cluster.traffic())


async def test_a_confirmation_is_asked_where_the_write_went_and_nowhere_else(
    cluster: FakeCluster,
) -> None:
    cluster.reply = lambda host, command: 1 if command == WAIT and host == A else 0
    on_a, on_b, unasked = await cluster.send(
        Call([("FINISH", key_at(A)), ("XADD", key_at(C))], confirmed=True),
        Call([("FINISH", key_at(B))], confirmed=True),
        Call([("TAKE", key_at(C))]),
        confirmation=WAIT,
    )
    assert (on_a.confirmation, on_b.confirmation, unasked.confirmation) == (1, 0, None)
    assert sorted(cluster.traffic()) == [
        ("a", ["FINISH", "WAIT"]),
        ("b", ["FINISH", "WAIT"]),
        ("c", ["TAKE"]),
        ("c", ["XADD"]),
    ]


async def test_a_moved_slot_is_followed_and_the_slots_are_read_again(cluster: FakeCluster) -> None:
    key = key_at(A)

    def reply(host: Host, command: Command) -> Any:
        if host == A and command[1] == key:
            return Moved(slot_of(key), B)
        return host[0]

    cluster.reply = reply
    moved, stays = await cluster.send(
        Call([("FINISH", key), ("PEXPIRE", key)]), Call([("GET", key_at(A, 1))])
    )
    assert (moved.replies, stays.replies) == (["b", "b"], ["a"])
    cluster.owners[0] = B
    await cluster.send(Call([("GET", key)]))
    assert cluster.questions() == 2
    assert cluster.traffic()[-1] == ("b", ["GET"])


async def test_an_ask_redirection_is_followed_once_and_not_remembered(
    cluster: FakeCluster,
) -> None:
    key = key_at(A)

    def reply(host: Host, command: Command) -> Any:
        if host == A and command[:2] == ("TAKE", key):
            return Moved(slot_of(key), B, asking=True)
        return host[0]

    cluster.reply = reply
    (answer,) = await cluster.send(Call([("TAKE", key), ("EXISTS", key)]))
    assert answer.replies == ["b", "a"]
    assert cluster.traffic() == [
        ("a", ["TAKE", "EXISTS"]),
        ("b", ["ASKING", "TAKE"]),
        ("a", ["EXISTS"]),
    ]


async def test_a_slot_that_keeps_moving_is_an_outage(
    cluster: FakeCluster,
) -> None:
    key = key_at(A)
    cluster.reply = lambda host, command: Moved(slot_of(key), B if host == A else A)
    (answer,) = await cluster.send(Call([("GET", key)]))
    assert isinstance(answer.replies[0], Gone)


async def test_a_lost_node_fails_its_own_calls_and_the_slots_are_read_again(
    cluster: FakeCluster,
) -> None:
    gone = [A]

    def reply(host: Host, command: Command) -> Any:
        if host in gone:
            raise Gone
        return host[0]

    cluster.reply = reply
    lost, kept = await cluster.send(Call([("GET", key_at(A))]), Call([("GET", key_at(B))]))
    assert isinstance(lost.replies[0], Gone)
    assert kept.replies == ["b"]
    cluster.owners[0] = C  # its replica was promoted
    (answer,) = await cluster.send(Call([("GET", key_at(A))]))
    assert answer.replies == ["c"]


async def test_the_scripts_are_loaded_into_a_promoted_node(cluster: FakeCluster) -> None:
    known: set[Host] = {A, B}

    def reply(host: Host, command: Command) -> Any:
        if command[0] == "SCRIPT":
            known.add(host)
        if command[0] == "EVALSHA" and host not in known:
            return NoScript()
        return command[0]

    cluster.reply = reply
    calls = [Call([("EVALSHA", "sha", 1, key_at(host))]) for host in (A, C)]
    answers = await cluster.send(*calls)
    assert [answer.replies for answer in answers] == [["EVALSHA"], ["EVALSHA"]]
    assert [host for host, names in cluster.traffic() if "SCRIPT" in names] == ["c"]


async def test_a_cluster_that_is_down_is_reported_and_its_slots_are_read_again(
    cluster: FakeCluster,
) -> None:
    cluster.reply = lambda host, command: Down() if command[0] == "GET" else host[0]
    (answer,) = await cluster.send(Call([("GET", key_at(A))]))
    assert isinstance(answer.replies[0], Down)
    await cluster.send(Call([("SET", key_at(A))]))
    assert cluster.questions() == 2


async def test_an_unserved_slot_fails_its_own_calls_only(cluster: FakeCluster) -> None:
    cluster.slots = lambda: [[0, 5461, [b"a", 1]]]
    lost, kept = await cluster.send(Call([("GET", key_at(B))]), Call([("GET", key_at(A))]))
    assert isinstance(lost.replies[0], Gone)
    assert kept.replies == [("a", "GET")]


async def test_scripts_are_loaded_on_every_primary(cluster: FakeCluster) -> None:
    await cluster.servers.load_scripts()
    assert sorted(host for host, _ in cluster.traffic()) == ["a", "b", "c"]


async def test_a_server_without_cluster_mode_is_reported_with_its_message(
    cluster: FakeCluster,
) -> None:
    cluster.slots = lambda: Down("This instance has cluster support disabled")
    with pytest.raises(Gone, match="cluster support disabled"):
        await cluster.send(Call([("GET", "x")]))
