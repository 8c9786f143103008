"""Every store call gets its own reply, however many share a pipeline and whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest
import redis.exceptions as problems
from redis._parsers.base import BaseParser

from dragoman_connections.redis_access.calls import Answer, Call, Command, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_schemas.scripts import CLAIM, RELEASE
from dragoman_worker.errors import Conflict, Halt, Unavailable, UnknownReply
from dragoman_worker.stores.durability import confirmation_for
from dragoman_worker.stores.pipeline import MAX_COMMANDS, Pipeline
from dragoman_worker.stores.redis import RedisStore
from support.builders.store_calls import claim_of, request
from support.processes.waiting import eventually

CLAIMED = [b"run", 1, 0, b"", b"", b"running", b"", 0]


class FakeTransport:
    """Answers every command with itself, unless a test has other plans."""

    def __init__(self) -> None:
        self.sent: list[list[Command]] = []
        self.confirm: Callable[[Call], Any] = lambda call: None
        self.answer: Callable[[Command], Any] = lambda command: command
        self.before: Callable[[], Any] = lambda: None
        self.server = ""
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(
        self, calls: Sequence[Call], confirmation: Command | None = None
    ) -> list[Answer]:
        self.sent.append([command for call in calls for command in call.commands])
        await self.gate.wait()
        self.before()
        return [
            Answer(
                [self.answer(command) for command in call.commands], self.confirm(call), self.server
            )
            for call in calls
        ]

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def transport() -> FakeTransport:
    return FakeTransport()


@pytest.fixture
async def pipeline(transport: FakeTransport) -> AsyncIterator[Pipeline]:
    made = Pipeline(transport)
    yield made
    await made.close()


async def within(call: Any) -> Any:
    return await asyncio.wait_for(call, 5)


def reply(line: str) -> Exception:
    """Return the exception that redis-py makes of the server's error line."""
    parse: Any = BaseParser.parse_error
    made: Exception = parse(line)
    return made


async def test_calls_of_one_turn_share_a_round_trip(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    calls = [pipeline.call([("A", number), ("B", number)]) for number in range(300)]
    replies = await within(asyncio.gather(*calls))
    assert replies == [[("A", number), ("B", number)] for number in range(300)]
    assert len(transport.sent) == 1


async def test_a_round_trip_has_a_bound_and_none_is_left_behind(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    calls = [pipeline.call([("A", number)]) for number in range(3 * MAX_COMMANDS + 1)]
    replies = await within(asyncio.gather(*calls))
    assert replies == [[("A", number)] for number in range(3 * MAX_COMMANDS + 1)]
    assert max(map(len, transport.sent)) <= MAX_COMMANDS


async def test_while_one_round_trip_waits_the_next_is_under_way(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.gate.clear()
    first = asyncio.create_task(pipeline.call([("A",)]))
    await eventually(lambda: len(transport.sent) == 1, timeout_s=30, what="the first")
    second = asyncio.create_task(pipeline.call([("B",)]))
    await eventually(lambda: len(transport.sent) == 2, timeout_s=30, what="the second")
    transport.gate.set()
    assert await within(asyncio.gather(first, second)) == [[("A",)], [("B",)]]


async def test_a_script_forgotten_again_at_once_is_waited_for(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.answer = lambda _: reply("NOSCRIPT No matching script.")
    with pytest.raises(Unavailable):
        await within(pipeline.call([("A",)]))


SCRIPT = "script: 0f3b, on @user_script:50."
REFUSED_NOW = [
    "OOM command not allowed when used memory > 'maxmemory'.",
    f"OOM command not allowed when used memory > 'maxmemory'. {SCRIPT}",
    "READONLY You can't write against a read only replica.",
    f"READONLY You can't write against a read only replica. {SCRIPT}",
    "LOADING Redis is loading the dataset in memory",
    "MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.",
    f"MISCONF Errors writing to the AOF file: No space left on device {SCRIPT}",
    "NOREPLICAS Not enough good replicas to write.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "CLUSTERDOWN The cluster is down",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "ERR max number of clients reached",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    f"ERR The user executing the script can't run this command or subcommand {SCRIPT}",
    f"ERR ACL failure in script: User d has no permissions to run the 'hset' command {SCRIPT}",
    # Redis 6 wraps what a command inside a script was refused with
    *(
        f"ERR Error running script (call to f_0f3b): @user_script:50: @user_script: 50: -{line}"
        for line in (
            "OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "MISCONF Redis is configured to save RDB snapshots",
            "NOPERM The user executing the script can't run this command or subcommand",
        )
    ),
]


@pytest.mark.parametrize("line", REFUSED_NOW)
async def test_a_server_that_cannot_serve_now_is_unavailable(
    line: str, pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.answer = lambda _: reply(line)
    with pytest.raises(Unavailable):
        await within(pipeline.call([("A",)]))


@pytest.mark.parametrize(
    "line",
    [
        "WRONGPASS invalid username-password pair",
        "NOAUTH Authentication required.",
        "ERR Protocol error: unauthenticated multibulk length",  # in place of it, to a long command
        "ERR Protocol error: unauthenticated bulk length",
    ],
)
async def test_a_password_that_is_refused_ends_the_process(
    line: str, pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.answer = lambda _: reply(line)
    with pytest.raises(Halt, match=r"redis\.url: Redis refuses its user or password"):
        await within(pipeline.call([("A",)]))


WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"


@pytest.mark.parametrize(
    "line",
    [
        WRONG_TYPE,
        f"{WRONG_TYPE} {SCRIPT}",
        f"ERR Error running script (call to f_0f3b): @user_script:50: {WRONG_TYPE}",
    ],
)
async def test_a_key_of_another_type_is_told_to_its_caller(
    line: str, pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.answer = lambda _: reply(line)
    with pytest.raises(problems.ResponseError, match="WRONGTYPE"):
        await within(pipeline.call([("A",)]))


TEXT = "a text to translate"
UNKNOWN = {
    # Redis 6, 7 and 8
    f"ERR unknown command `FOO`, with args beginning with: `{TEXT}`, ": "unknown command",
    f"ERR unknown command 'FOO', with args beginning with: '{TEXT}' ": "unknown command",
    f"ERR unknown command 'FOO', with args beginning with: '- -OOM {TEXT}'": "unknown command",
    f"ERR unknown command 'FOO', with args beginning with: '{WRONG_TYPE}'": "unknown command",
    f"ERR Unknown Redis command called from script {SCRIPT}": "Unknown Redis command",
    "ERR Error running script (call to f_0f3b): @user_script:5: @user_script: 5: Unknown Redis "
    "command called from Lua script": "Unknown Redis command",
    f"ERR Script killed by user with SCRIPT KILL. {SCRIPT}": "Script killed",
    "ERR Error running script (call to f_0f3b): @user_script:1: Script killed by user with SCRIPT "
    "KILL...": "Script killed",
    "MOVED 866 127.0.0.1:7001": "866",
    "CROSSSLOT Keys in request don't hash to the same slot": "don't hash",
    "EXECABORT Transaction discarded because of previous errors.": "Transaction discarded",
    # Envoy, twemproxy, and one whose words nobody foresaw
    "upstream failure": "upstream failure",
    "no upstream host": "no upstream host",
    "ERR Connection refused": "Connection refused",
    f"XQ \x1b[31mno '{TEXT}'": "no",
    "": "ResponseError",
}


@pytest.mark.parametrize(("line", "words"), UNKNOWN.items())
async def test_an_unknown_reply_is_an_outage_that_quotes_no_argument(
    line: str, words: str, pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.answer = lambda _: reply(line)
    with pytest.raises(UnknownReply) as caught:
        await within(pipeline.call([("EVALSHA", CLAIM.sha1, 1, "key", TEXT)]))
    for text in (str(caught.value), str(caught.value.verdict)):
        assert words in text
        assert "claim" in text
        assert TEXT not in text
        assert text.isprintable()
    assert isinstance(caught.value.verdict, Halt)


@pytest.mark.parametrize("answer", [None, b"OK", 1, b"+PONG", [], [b"run"], [1] * 5])
async def test_a_reply_that_no_script_gives_is_unknown(
    answer: Any, pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.answer = lambda _: answer
    with pytest.raises(UnknownReply):
        await within(pipeline.call([("EVALSHA", CLAIM.sha1, 1, "key")]))


@pytest.mark.parametrize(
    "line",
    [
        f"ERR user_script:3: attempt to index a nil value (the READONLY flag of a table) {SCRIPT}",
        "ERR Error running script (call to f_0f3b): @user_script:3: user_script:3: attempt to call",
    ],
)
async def test_a_key_that_breaks_a_script_which_others_survive_is_a_conflict(
    line: str, pipeline: Pipeline, transport: FakeTransport
) -> None:
    """A server that can run no script at all fails nobody's job."""
    call: Command = ("EVALSHA", CLAIM.sha1, 1, "key")
    transport.answer = lambda _: reply(line)
    with pytest.raises(UnknownReply) as caught:
        await within(pipeline.call([call]))
    assert isinstance(caught.value.verdict, Conflict)
    transport.answer = lambda _: CLAIMED
    await within(pipeline.call([call]))
    transport.answer = lambda _: reply(line)
    with pytest.raises(Conflict):
        await within(pipeline.call([call]))


async def test_an_unknown_reply_knows_when_its_own_server_last_answered_a_script(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    """In a Cluster one node may refuse while others serve."""

    async def refused_at(server: str) -> float | None:
        transport.server, transport.answer = server, lambda _: reply("upstream failure")
        with pytest.raises(UnknownReply) as caught:
            await within(pipeline.call([("EVALSHA", CLAIM.sha1)]))
        assert caught.value.server == server
        return caught.value.answered_at

    transport.server, transport.answer = "a:1", lambda command: command
    await within(pipeline.call([("HGET", "key")]))
    assert await refused_at("a:1") is None
    transport.server, transport.answer = "a:1", lambda _: CLAIMED
    await within(pipeline.call([("EVALSHA", CLAIM.sha1)]))
    assert await refused_at("a:1") is not None
    assert await refused_at("b:1") is None


@pytest.mark.parametrize(
    "error",
    [
        problems.ConnectionError("refused"),
        problems.TimeoutError("slow"),
        problems.BusyLoadingError("loading"),
        ConnectionResetError("reset"),
        TimeoutError(),
    ],
)
async def test_a_server_out_of_reach_is_unavailable_to_all_and_then_back(
    error: Exception, pipeline: Pipeline, transport: FakeTransport
) -> None:
    def fail() -> None:
        raise error

    transport.before = fail
    calls = [asyncio.create_task(pipeline.call([("A", number)])) for number in range(3)]
    outcomes = await within(asyncio.gather(*calls, return_exceptions=True))
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    transport.before = lambda: None
    assert await within(pipeline.call([("B",)])) == [("B",)]


async def test_one_call_s_error_is_nobody_else_s(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    wrong = reply("WRONGTYPE Operation against a key holding the wrong kind of value")
    transport.answer = lambda command: wrong if command == ("BAD", 1) else command
    outcomes = await within(
        asyncio.gather(
            pipeline.call([("A", 0)]),
            pipeline.call([("A", 1), ("BAD", 1)]),
            pipeline.call([("A", 2)]),
            return_exceptions=True,
        )
    )
    assert outcomes == [[("A", 0)], wrong, [("A", 2)]]


async def test_a_defect_of_the_transport_is_told_to_every_caller_and_stops_no_lane(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    def fail() -> None:
        raise RuntimeError("a defect of the client library")

    transport.before = fail
    for _ in range(5):  # more often than there are connections
        with pytest.raises(RuntimeError, match="defect"):
            await within(pipeline.call([("A",)]))
    transport.before = lambda: None
    assert await within(pipeline.call([("B",)])) == [("B",)]


async def test_a_caller_that_has_gone_is_not_sent_and_moves_nobody_s_reply(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    calls = [asyncio.create_task(pipeline.call([("A", number)] * 2)) for number in range(20)]
    await asyncio.sleep(0)
    for call in calls[::3]:
        call.cancel()
    outcomes = await within(asyncio.gather(*calls, return_exceptions=True))
    for number, outcome in enumerate(outcomes):
        if number % 3:
            assert outcome == [("A", number)] * 2
        else:
            assert isinstance(outcome, asyncio.CancelledError)
    assert ("A", 0) not in [command for batch in transport.sent for command in batch]


async def test_a_caller_cancelled_under_way_moves_nobody_s_reply(
    pipeline: Pipeline, transport: FakeTransport
) -> None:
    transport.gate.clear()
    calls = [asyncio.create_task(pipeline.call([("A", number)])) for number in range(10)]
    await eventually(lambda: transport.sent, timeout_s=30, what="the commands on their way")
    for call in calls[::2]:
        call.cancel()
    transport.gate.set()
    outcomes = await within(asyncio.gather(*calls, return_exceptions=True))
    assert outcomes[1::2] == [[("A", number)] for number in range(1, 10, 2)]


async def test_a_release_waits_for_the_claim_that_a_cancelled_job_has_under_way(
    transport: FakeTransport,
) -> None:
    transport.answer = lambda _: [1, b"queued"]
    settings = RedisSettings(url="redis://127.0.0.1:1/0")
    store = RedisStore(settings, cast("Servers", transport), poison_after=4, want_results=False)
    transport.gate.clear()
    wanted = request()
    claiming = asyncio.create_task(store.claim(wanted))
    await eventually(lambda: transport.sent, timeout_s=30, what="the claim on its way")
    claiming.cancel()
    releasing = asyncio.create_task(store.release(claim_of(wanted)))
    for _ in range(20):  # a release that does not wait is sent within two turns
        await asyncio.sleep(0)
    assert [[command[1] for command in sent] for sent in transport.sent] == [[CLAIM.sha1]]
    transport.gate.set()
    await within(releasing)
    assert transport.sent[1][0][1] == RELEASE.sha1
    await store.close()


async def test_closing_cancels_whoever_still_waits(transport: FakeTransport) -> None:
    pipeline = Pipeline(transport)
    transport.gate.clear()
    under_way = asyncio.create_task(pipeline.call([("A",)]))
    await eventually(lambda: transport.sent, timeout_s=30, what="the command on its way")
    queued = asyncio.create_task(pipeline.call([("B",)]))
    await pipeline.close()
    outcomes = await within(asyncio.gather(under_way, queued, return_exceptions=True))
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2


# --- confirmations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "command", "enough", "too_few"),
    [
        ("wait:2", ("WAIT", 2, 1000), [2, 3], [0, 1]),
        ("waitaof:1", ("WAITAOF", 1, 1, 1000), [[1, 1], [1, 2]], [[0, 1], [1, 0]]),
    ],
)
def test_a_level_asks_for_so_many_servers(
    level: str, command: Command, enough: list[Any], too_few: list[Any]
) -> None:
    confirmation = confirmation_for(level)
    assert confirmation is not None
    assert confirmation.command == command
    assert all(map(confirmation.enough, enough))
    assert not any(map(confirmation.enough, too_few))


async def test_what_too_few_servers_confirmed_is_unavailable_and_only_that(
    transport: FakeTransport,
) -> None:
    """The shard of one call may lack its replica while another's has it."""
    pipeline = Pipeline(transport, confirmation_for("wait:1"))
    transport.confirm = lambda call: 0 if call.commands[0] == ("FINISH", "alone") else 1
    outcomes = await within(
        asyncio.gather(
            pipeline.call([("FINISH", "alone")], confirmed=True),
            pipeline.call([("FINISH", "safe")], confirmed=True),
            pipeline.call([("FINISH", "alone")]),  # not asked for: a claim
            return_exceptions=True,
        )
    )
    await pipeline.close()
    assert isinstance(outcomes[0], Unavailable)
    assert outcomes[1:] == [[("FINISH", "safe")], [("FINISH", "alone")]]


async def test_a_refused_confirmation_is_told(transport: FakeTransport) -> None:
    pipeline = Pipeline(transport, confirmation_for("wait:1"))
    transport.confirm = lambda call: reply("NOPERM this user has no permissions to run 'wait'")
    with pytest.raises(Unavailable, match="no permissions to run 'wait'"):
        await within(pipeline.call([("FINISH",)], confirmed=True))
    await pipeline.close()
