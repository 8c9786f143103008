"""The `dragoman glossary` commands as processes on a real Redis."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import redis

from support.processes.child_process import ChildProcess, command
from support.processes.redis_shell import RedisShell
from support.services.ports import free_port
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

ALTERNATIVE = (
    "a.tsv, line 4 (line 1): another translation of a term: both are accepted, "
    "the first is asked for"
)
KEY = "dragoman:glossary:ui"


@pytest.fixture
def glossary(redis_server: RedisServer, tmp_path: Path) -> RedisShell:
    return RedisShell("glossary", redis_server.url, tmp_path)


def test_added_terms_are_listed_shown_and_removed(glossary: RedisShell) -> None:
    terms = glossary.file("ui.tsv", "en\tde\tfr\tnote\ngate\tTor\tportail\tat airports\n")
    assert glossary("add", "ui", terms) == (0, "ui\tstored\tversion 1\ten -> de 1, fr 1\n", "")
    assert glossary("list")[1].startswith("ui\tversion 1\ten -> de 1, fr 1\t20")
    assert glossary("show", "ui", "--to", "de_AT") == (0, "de\tgate\tTor\t\tat airports\n", "")
    assert [one["target_lang"] for one in glossary.objects("show", "ui")] == ["de", "fr"]
    assert glossary("remove", "ui") == (0, "ui\tremoved\n", "")
    assert glossary("list") == (0, "", "")
    for name in ("show", "remove"):
        status, out, err = glossary(name, "ui")
        assert (status, out) == (1, "")
        assert "there is no glossary ui" in err


def test_add_replaces_and_merge_keeps(glossary: RedisShell) -> None:
    glossary(
        "add", "ui", glossary.file("a.tsv", "en\tde\tfr\ngate\tTor\tportail\ncloud\tWolke\tnuage\n")
    )
    merged = ["add", "ui", glossary.file("b.tsv", "Gate\tSchranke\nsun\tSonne\n"), "--to", "de"]
    status, out, err = glossary(*merged, "--merge")
    assert (status, out) == (0, "ui\tstored\tversion 2\ten -> de 3, fr 2\n")
    assert err == "1 stored term now translated differently\n"
    assert (
        glossary("show", "ui", "--to", "de")[1]
        == "de\tGate\tSchranke\nde\tcloud\tWolke\nde\tsun\tSonne\n"
    )
    status, out, err = glossary(*merged)
    assert (status, out) == (0, "ui\tstored\tversion 3\tany -> de 2\n")
    assert err == "fr: no longer in the glossary; --merge keeps them\n"


def test_equal_terms_are_not_stored_again(glossary: RedisShell) -> None:
    add = ["add", "ui", glossary.file("a.tsv", "en\tde\ngate\tTor\n")]
    glossary(*add)
    assert glossary(*add) == (0, "ui\tunchanged\tversion 1\ten -> de 1\n", "")


def test_odd_lines_are_reported_by_number(glossary: RedisShell) -> None:
    terms = glossary.file(
        "a.tsv", "gate\tTor\n\ngate\tTor\ngate\tSchranke\ncloud\n".replace("cloud\n", "cloud\t\n")
    )
    status, _, err = glossary("add", "ui", terms, "--to", "de")
    assert status == 0
    assert err.splitlines() == [
        "a.tsv, line 2: no term: ignored",
        "a.tsv, line 3 (line 1): the same term and translation as before: ignored",
        ALTERNATIVE,
        "a.tsv, line 5: a term without a translation, or the reverse: ignored",
    ]
    (added,) = glossary.objects("add", "ui", terms, "--to", "de")
    assert added["remarks"] == {"empty": 1, "duplicate": 1, "alternative": 1, "incomplete": 1}
    assert added["lines"][1] == {
        "kind": "duplicate",
        "file": terms,
        "line": 3,
        "earlier": 1,
        "earlier_file": terms,
    }


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (["add", "ui", "bad.tsv", "--to", "de"], 1, "bad.tsv, line 2: 1 columns instead of 2"),
        (["add", "ui", "missing.tsv", "--to", "de"], 1, "missing.tsv: No such file"),
        (["add", "ui", "good.tsv", "--to", "german"], 2, "--to: 'german' is not a language"),
        (["add", "u i", "good.tsv", "--to", "de"], 2, "is not a name; give 1 to 128 of"),
        (["add", "ui"], 2, "FILE"),
        (["show", "ui\x1b[31m"], 2, "is not a name; give 1 to 128 of"),
    ],
)
def test_what_cannot_be_added_is_one_sentence_and_changes_nothing(
    glossary: RedisShell, arguments: list[str], status: int, named: str
) -> None:
    good = glossary.file("good.tsv", "gate\tTor\n")
    files = {"good.tsv": good, "bad.tsv": glossary.file("bad.tsv", "gate\tTor\ncloud\n")}
    files["missing.tsv"] = good.replace("good", "missing")
    glossary("add", "ui", good, "--to", "de")
    ended, out, err = glossary(*(files.get(argument, argument) for argument in arguments))
    assert (ended, out) == (status, "")
    assert named in err
    assert err.count("\n") == 1
    assert glossary("show", "ui") == (0, "de\tgate\tTor\n", "")


def test_a_key_that_is_no_glossary_is_reported_and_can_be_removed(
    glossary: RedisShell, redis_server: RedisServer
) -> None:
    terms = glossary.file("a.tsv", "gate\tTor\n")
    with redis.Redis.from_url(redis_server.url) as client:
        client.hset(KEY, "meta", "\x1b[31mmine")
        for arguments in (["add", "ui", terms, "--to", "de"], ["show", "ui"], ["list"]):
            status, out, err = glossary(*arguments)
            assert (status, out) == (1, "")
            assert "`dragoman glossary remove ui` deletes it" in err
            assert "\x1b" not in err
        assert glossary("remove", "ui")[0] == 0
        client.set(KEY, "mine", ex=60)
        assert "its key is not a hash" in glossary("show", "ui")[2]


@pytest.mark.parametrize(
    ("group", "arguments"),
    [
        ("glossary", ["add", "ui", "FILE", "--to", "de"]),
        ("memory", ["import", "FILE", "--to", "de"]),
    ],
)
def test_an_interrupt_while_files_are_read_is_one_line(
    redis_server: RedisServer, tmp_path: Path, group: str, arguments: list[str]
) -> None:
    shell = RedisShell(group, redis_server.url, tmp_path)
    pipe = tmp_path / "endless.tsv"
    os.mkfifo(pipe)
    argv = command("dragoman", group, *(str(pipe) if one == "FILE" else one for one in arguments))
    with ChildProcess(argv, log=tmp_path / "log", env=shell.env, split_streams=True) as child:
        with pipe.open("w") as lines:  # opened as soon as the command reads
            lines.write("gate\tTor\n")
            lines.flush()
            child.interrupt()
            assert child.wait(timeout_s=60) == 128 + signal.SIGINT
        assert child.errors.startswith("dragoman: interrupted")
        assert child.errors.count("\n") == 1


def test_refusals_of_redis_are_named_and_change_nothing(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    glossary = RedisShell("glossary", own_redis.url, tmp_path)
    glossary("add", "ui", glossary.file("a.tsv", "gate\tTor\n"), "--to", "de")
    other = ["add", "ui", glossary.file("b.tsv", "sun\tSonne\n"), "--to", "de"]
    with redis.Redis.from_url(own_redis.url) as client:
        client.config_set("maxmemory", 1)
        status, out, err = glossary(*other)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert "is full" in err
        client.config_set("maxmemory", 0)
        client.execute_command(
            "ACL", "SETUSER", "reader", "on", ">s", "~dragoman:*", "-@all", "+hget"
        )
        url = own_redis.url.replace("redis://", "redis://reader:s@")
        status, out, err = RedisShell("glossary", url, tmp_path)(*other)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "give the user of redis.url this right" in err
        client.replicaof("127.0.0.1", str(free_port()))
        short = RedisShell("glossary", own_redis.url, tmp_path, timeout_s=3)
        status, out, err = short(*other)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert "read-only replica" in err
    assert glossary("show", "ui") == (0, "de\tgate\tTor\n", "")
