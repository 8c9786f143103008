"""The `dragoman memory` commands as processes on a real Redis."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import redis

from dragoman_producer.operations.memory_files import CONFLICT, INCOMPLETE, KEY, KINDS
from dragoman_schemas import names
from dragoman_schemas.approved import shard_of
from support.builders.tmx_files import unit, units
from support.processes.child_process import ChildProcess, command
from support.processes.redis_shell import RedisShell
from support.processes.waiting import wait_until
from support.services.ports import free_port
from support.services.redis_cluster import RedisCluster
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<tmx version="1.4"><header srclang="en-US"/><body>
<tu><tuv xml:lang="en-US"><seg>Save</seg></tuv><tuv xml:lang="de-DE"><seg>Speichern</seg></tuv>
<tuv xml:lang="fr"><seg>Enregistrer</seg></tuv></tu>
</body></tmx>
"""
BOMB = """<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv>
<tuv xml:lang="de"><seg>x</seg></tuv></tu></body></tmx>
"""


@pytest.fixture
def memory(redis_server: RedisServer, tmp_path: Path) -> RedisShell:
    return RedisShell("memory", redis_server.url, tmp_path)


def test_imported_translations_are_shown_exported_and_deleted(memory: RedisShell) -> None:
    table = memory.file("a.tsv", "Save\tSpeichern\nOpen\tÖffnen\n")
    imported = memory.objects("import", table, "--from", "en", "--to", "de")
    assert imported == [{"new": 2, "replaced": 0, "unchanged": 0, "problems": {}, "complete": True}]
    save = {"source_lang": "en", "target_lang": "de", "source": "Save", "target": "Speichern"}
    assert memory.objects("show", "--text", " Save ") == [save]
    machine, approved = memory.objects("show")
    assert (machine["entries"], approved["entries"]) == (0, 2)
    assert approved["bytes"] > 100
    exported = memory.objects("export")
    assert sorted(entry["source"] for entry in exported) == ["Open", "Save"]
    assert memory("clear", "--approved")[0] == 2
    assert memory.objects("clear") == [{"tier": "machine", "deleted": 0}]
    assert memory.objects("clear", "--approved", "--yes") == [{"tier": "approved", "deleted": 2}]
    assert memory.objects("export") == []
    assert memory("show", "--text", "Save")[0] == 1


def test_repeated_import_changes_nothing_and_a_new_translation_replaces(memory: RedisShell) -> None:
    table = memory.file("a.csv", 'en,de\nSave,"Spei,chern"\n')
    assert memory.objects("import", table)[0]["new"] == 1
    again = memory.objects("import", table)[0]
    assert (again["new"], again["unchanged"]) == (0, 1)
    table = memory.file("a.csv", "en,de\nSave,Sichern\n")
    assert memory.objects("import", table)[0]["replaced"] == 1
    assert memory.objects("show", "--text", "Save", "--to", "de")[0]["target"] == "Sichern"


def test_lines_that_are_not_imported_are_named(memory: RedisShell) -> None:
    lines = ["Save\tSpeichern", "", "Save\tSpeichern", "Save\tSichern", "Open\t", "a\tb\tc\td"]
    table = memory.file("a.tsv", "\n".join(lines))
    status, out, err = memory("import", table, "--to", "de")
    assert status == 3
    assert out == "1 new\t0 replaced\t0 unchanged\n"
    assert err.splitlines() == [
        "a.tsv, line 2: an empty line: ignored",
        "a.tsv, line 3 (line 1): the same as an earlier line: ignored",
        "a.tsv, line 4 (line 1): another translation of an earlier line's text: not imported",
        "a.tsv, line 5: no source text, or no translation of it: not imported",
        "a.tsv, line 6: 4 columns instead of 2: not imported",
    ]


def test_tmx_in_varieties_is_stored_under_the_languages_asked_for(memory: RedisShell) -> None:
    file = memory.file("a.tmx", TMX)
    assert memory.objects("import", file)[0]["new"] == 2
    found = {(one["source_lang"], one["target_lang"]) for one in memory.objects("export")}
    assert found == {("en-US", "de-DE"), ("en-US", "fr")}
    assert memory.objects("import", file, "--from", "en", "--to", "de")[0]["new"] == 1
    assert memory.objects("export", "--from", "en", "--to", "de") == [
        {"source_lang": "en", "target_lang": "de", "source": "Save", "target": "Speichern"}
    ]


@pytest.mark.parametrize(
    ("name", "content", "reported"),
    [
        ("a.tmx", BOMB, "declares an entity"),
        ("a.tmx", "<tmx><body>", "not well-formed XML"),
        ("a.tmx", "<html/>", "not TMX"),
        ("a.tsv", b"Save\tGr\xfc\xdfe\n", "not UTF-8"),
        ("a.docx", "x", "give a file in .tmx"),
        ("a.tsv", b"", "empty"),
        ("a.jsonl", b"\x00" * 100, "zero byte"),
        ("a.jsonl", b"", "no translation is in the file"),
        ("a.tsv", "source_lang\ttarget_lang\tsource\ttarget\n", "no translation is in the file"),
        ("a.tmx", units(), "no translation is in the file"),
        ("a.tmx", units(unit(("fr", "a"), ("de", "b"))), KINDS[INCOMPLETE]),
        ("a\x1b[31m.tsv", b"\xff", "not UTF-8"),
    ],
)
def test_unreadable_file_is_refused_with_its_place(
    memory: RedisShell, name: str, content: str | bytes, reported: str
) -> None:
    status, _, err = memory("import", memory.file(name, content), "--to", "de")
    assert status == 1
    assert name.replace("\x1b", "\ufffd") in err
    assert "\x1b" not in err
    assert reported in err
    assert memory.objects("export") == []


def test_rows_before_a_broken_place_are_imported_and_the_rest_named(memory: RedisShell) -> None:
    table = memory.file("a.tsv", b"Save\tSpeichern\n\xff\n")
    status, out, err = memory("import", table, "--to", "de")
    assert (status, out) == (3, "1 new\t0 replaced\t0 unchanged\n")
    assert "line 2" in err


@pytest.mark.parametrize("form", ["jsonl", "tmx", "tsv"])
def test_export_is_read_again_in_every_format(memory: RedisShell, form: str) -> None:
    odd = {
        "target_lang": "de",
        "source_lang": "en",
        "source": "a\t<b>\n\\n&",
        "target": "ä\r\\t]]>",
    }
    file = memory.file("a.jsonl", json.dumps(odd))
    assert memory.objects("import", file)[0]["new"] == 1
    status, exported, _ = memory("export", "--format", form)
    assert status == 0
    memory("clear", "--approved", "--yes")
    again = memory.file(f"b.{form}", exported)
    assert memory.objects("import", again)[0]["new"] == 1
    assert memory.objects("export") == [odd]


def test_tsv_leaves_out_a_zero_character_and_says_so(memory: RedisShell) -> None:
    entry = {"target_lang": "de", "source": "a\0b", "target": "c"}
    memory.objects("import", memory.file("a.jsonl", json.dumps(entry)))
    assert memory.objects("export") == [entry]
    status, out, err = memory("export", "--format", "tsv")
    assert (status, out.count("\n")) == (3, 1)
    assert "1 entry left out: TSV holds no U+0000" in err


def test_tmx_leaves_out_what_it_cannot_hold_and_says_so(memory: RedisShell) -> None:
    lines = [
        {"target_lang": "de", "source": "a", "target": "b"},
        {"target_lang": "de", "source_lang": "en", "source": "c", "target": "d", "context": "e"},
        {"target_lang": "de", "source_lang": "en", "source": "f\x01", "target": "g"},
    ]
    file = memory.file("a.jsonl", "\n".join(map(json.dumps, lines)))
    assert memory.objects("import", file)[0]["new"] == 3
    status, out, err = memory("export", "--format", "tmx")
    assert status == 3
    assert "<tu" not in out
    assert "3 entries left out" in err


def test_commands_work_on_a_cluster(tmp_path: Path) -> None:
    with RedisCluster() as cluster:
        memory = RedisShell("memory", cluster.url, tmp_path)
        table = memory.file("a.tsv", "".join(f"text {n}\tTexte {n}\n" for n in range(1_200)))
        assert memory.objects("import", table, "--to", "fr")[0]["new"] == 1_200
        assert len(memory.objects("export")) == 1_200
        assert memory.objects("show")[1]["entries"] == 1_200
        assert memory.objects("clear", "--approved", "--yes")[0]["deleted"] == 1_200


def test_unreadable_entries_are_counted(memory: RedisShell, redis_server: RedisServer) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.hset(names.Keys().memory_approved(7), b"x", b"no JSON")
    status, out, err = memory("export")
    assert (status, out) == (3, "")
    assert "1 entry cannot be read" in err


# --- refusals of Redis ----------------------------------------------------------------------------


def test_a_key_of_another_type_is_named_and_the_others_are_served(
    memory: RedisShell, redis_server: RedisServer
) -> None:
    key = names.Keys().memory_approved(shard_of("Save"))
    machine = names.Keys().memory(7, "new")
    with redis.Redis.from_url(redis_server.url) as client:
        client.set(key, "mine", ex=60)
        client.set(machine, "mine", ex=60)
    table = memory.file("a.tsv", "Save\tSpeichern\nOpen\tÖffnen\n")
    status, out, err = memory("import", table, "--from", "en", "--to", "de")
    assert (status, out) == (3, "1 new\t0 replaced\t0 unchanged\n")
    assert err.splitlines()[0] == f"a.tsv, line 1: {KINDS[KEY]}"
    for arguments, printed in (
        (["show"], "approved\t1 translation\t"),
        (["export"], '"Open"'),
        (["clear", "--approved", "--yes"], "approved\t1 deleted"),
        (["show", "--text", "Save"], ""),
    ):
        status, out, err = memory(*arguments)
        assert status == (1 if "--text" in arguments else 3)
        assert printed in out
        assert key in err
        assert "is not a hash" in err
        assert (machine in err) == (arguments == ["show"])
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.get(key) == b"mine"


def test_a_full_redis_keeps_what_was_stored_and_a_second_run_goes_on(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    memory = RedisShell("memory", own_redis.url, tmp_path)
    lines = [f"text {number} {'x' * 500}\tTexte {number}\n" for number in range(8_000)]
    command = ["import", memory.file("a.tsv", "".join(lines)), "--to", "fr"]
    with redis.Redis.from_url(own_redis.url) as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 3_000_000)
        status, out, err = memory(*command)
        stored = int(out.split()[0].replace(",", ""))
        assert status == 3
        assert 0 < stored < 8_000
        assert err.count("\n") == 1
        assert "is full" in err
        assert "Raise maxmemory" in err
        assert "Run the command again" in err
        assert stored_in(client) == stored, "what is reported is what is stored"
        status, out, err = memory(*command)
        assert status == 3, "entries that are stored need no room"
        client.config_set("maxmemory", 0)
        (again,) = memory.objects(*command)
        assert again["new"] + again["unchanged"] == 8_000
        assert again["unchanged"] >= stored


def test_nothing_stored_in_a_full_redis_is_a_failure(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    memory = RedisShell("memory", own_redis.url, tmp_path)
    with redis.Redis.from_url(own_redis.url) as client:
        client.config_set("maxmemory", 1)
        status, out, err = memory("import", memory.file("a.tsv", "a\tb\n"), "--to", "fr")
        client.config_set("maxmemory", 0)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "is full" in err


def test_a_read_only_replica_is_named_as_one(own_redis: RedisServer, tmp_path: Path) -> None:
    memory = RedisShell("memory", own_redis.url, tmp_path, timeout_s=3)
    with redis.Redis.from_url(own_redis.url) as client:
        client.replicaof("127.0.0.1", str(free_port()))
    status, _, err = memory("import", memory.file("a.tsv", "a\tb\n"), "--to", "fr")
    assert (status, err.count("\n")) == (1, 1)
    assert "read-only replica" in err
    assert "redis.url" in err


def test_a_missing_right_is_named(own_redis: RedisServer, tmp_path: Path) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.execute_command(
            "ACL", "SETUSER", "reader", "on", ">secret", "~dragoman:*", "-@all", "+hget", "+hlen"
        )
    url = own_redis.url.replace("redis://", "redis://reader:secret@")
    memory = RedisShell("memory", url, tmp_path)
    for arguments, right in (
        (["import", memory.file("a.tsv", "a\tb\n"), "--to", "fr"], "hset"),
        (["export"], "hscan"),
        (["clear"], "unlink"),
    ):
        status, out, err = memory(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert right in err
        assert "give the user of redis.url this right on the keys dragoman:*" in err
    assert memory.objects("show")[1] == {"tier": "approved", "entries": 0, "bytes": None}


def test_redis_that_dies_during_an_import_leaves_a_count(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    """The pipe holds the command between two batches while the server is killed."""
    shell = RedisShell("memory", own_redis.url, tmp_path, timeout_s=3)
    pipe = tmp_path / "slow.tsv"
    os.mkfifo(pipe)
    argv = command("dragoman", "memory", "import", str(pipe), "--to", "de")
    with ChildProcess(argv, log=tmp_path / "log", env=shell.env, split_streams=True) as child:
        with pipe.open("w") as lines:
            lines.write("".join(f"text {number}\tText {number}\n" for number in range(1_000)))
            lines.flush()
            with redis.Redis.from_url(own_redis.url) as client:
                wait_until(lambda: stored_in(client) > 500, timeout_s=60, what="a second batch")
            own_redis.kill()
            lines.writelines(f"more {number}\tMehr {number}\n" for number in range(1_000))
        assert child.wait(timeout_s=60) == 3
        assert "could not be reached" in child.errors
        assert "Run the command again" in child.errors
        assert child.output.startswith(("500 new", "1,000 new"))


def stored_in(client: redis.Redis) -> int:
    return sum(client.hlen(key) for key in client.scan_iter("dragoman:memory:*"))


def test_two_imports_at_once_store_every_entry_once(memory: RedisShell, tmp_path: Path) -> None:
    table = memory.file("a.tsv", "".join(f"text {n}\tTexte {n}\n" for n in range(3_000)))
    argv = command("dragoman", "memory", "import", table, "--to", "fr", "--json")
    with (
        ChildProcess(argv, log=tmp_path / "1", env=memory.env, split_streams=True) as first,
        ChildProcess(argv, log=tmp_path / "2", env=memory.env, split_streams=True) as second,
    ):
        assert first.wait(timeout_s=120) == second.wait(timeout_s=120) == 0
        added = [json.loads(child.output) for child in (first, second)]
    # Both may find a text missing and write it: it counts as new twice, and is stored once.
    assert sum(one["new"] for one in added) >= 3_000
    assert all(one["new"] + one["unchanged"] == 3_000 for one in added)
    assert memory.objects("show")[1]["entries"] == 3_000


# --- arguments and files --------------------------------------------------------------------------


def test_an_earlier_line_of_another_file_is_named_with_that_file(memory: RedisShell) -> None:
    files = [memory.file("a.tsv", "Save\tSpeichern\n"), memory.file("b.tsv", "Save\tSichern\n")]
    status, _, err = memory("import", *files, "--to", "de")
    assert status == 3
    assert err == f"b.tsv, line 1 (a.tsv, line 1): {KINDS[CONFLICT]}\n"


def test_one_invalid_unit_is_named_and_the_others_are_imported(memory: RedisShell) -> None:
    bad = unit(("en", "Open"), ("de", "x" * 200_000))
    content = units(unit(("en", "a"), ("de", "b")), "\n", bad, "\n", unit(("en", "c"), ("de", "d")))
    status, out, err = memory("import", memory.file("a.tmx", content))
    assert (status, out) == (3, "2 new\t0 replaced\t0 unchanged\n")
    why = "a segment has more than 131,072 characters"
    assert err == f"a.tmx, line 2: unit 2: {why}: not imported\n"


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl"])
@pytest.mark.parametrize("lines", [2, 200_000])
def test_a_file_with_carriage_returns_alone_is_refused_as_one(
    memory: RedisShell, suffix: str, lines: int
) -> None:
    row = {"tsv": "a\tb\r", "csv": "a,b\r", "jsonl": '{"source": "a", "target": "b"}\r'}[suffix]
    status, _, err = memory("import", memory.file(f"a.{suffix}", row * lines), "--to", "de")
    assert status == 1
    assert "line 1: its lines end in CR only" in err


def test_cells_up_to_the_limits_of_texts_are_imported(memory: RedisShell) -> None:
    for suffix, mark in (("csv", ","), ("tsv", "\t")):
        table = memory.file(f"a.{suffix}", f"a {suffix}{mark}{'x' * 400_000}\n")
        assert memory.objects("import", table, "--to", "de")[0]["new"] == 1
    table = memory.file("b.csv", 'a,b\nc,"' + "x\n" * 1_000_000)
    status, _, err = memory("import", table, "--to", "fr")
    assert status == 3
    assert "a cell of more than 1,048,576 characters; is a quote not closed?" in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["show", "--to", "de"], "--from and --to select translations of --text"),
        (["show", "--text", b"a\xff"], "--text is not UTF-8"),
        (["export", "--json", "--format", "tmx"], "give either --json or --format"),
        (["export", "--json", "--format", "tsv"], "give either --json or --format"),
        (["export", "--to", b"\xff"], "is not a language"),
        (["show", "--to", "xx-yy-zz-q"], "is not a language"),
    ],
)
def test_arguments_that_contradict_or_cannot_be_read_are_usage_errors(
    memory: RedisShell, arguments: list[str | bytes], why: str
) -> None:
    status, out, err = memory(*map(os.fsdecode, arguments))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert why in err
