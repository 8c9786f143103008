"""The `dragoman memory` commands as processes on a real Redis."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import redis

from dragoman_producer.operations.memory_files import INVALID, KINDS
from dragoman_schemas import names
from support.processes.forked_command import run_forked
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


class Shell:
    """Runs `dragoman memory` in a folder with files."""

    def __init__(self, redis_url: str, folder: Path) -> None:
        self._folder = folder
        self._env = {
            **os.environ,
            "DRAGOMAN_REDIS__URL": redis_url,
            "DRAGOMAN_CONNECT_TIMEOUT_S": "3",
        }

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        done = run_forked("dragoman", "memory", *arguments, env=self._env)
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        return done.returncode, done.stdout, done.stderr.replace(f"{self._folder}/", "")

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        status, out, err = self(*arguments, "--json")
        assert (status, err) == (0, "")
        return [json.loads(line) for line in out.splitlines()]

    def file(self, name: str, content: str | bytes) -> str:
        encoded = content.encode() if isinstance(content, str) else content
        (self._folder / name).write_bytes(encoded)
        return str(self._folder / name)


@pytest.fixture
def memory(redis_server: RedisServer, tmp_path: Path) -> Shell:
    return Shell(redis_server.url, tmp_path)


def test_imported_translations_are_shown_exported_and_deleted(memory: Shell) -> None:
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


def test_repeated_import_changes_nothing_and_a_new_translation_replaces(memory: Shell) -> None:
    table = memory.file("a.csv", 'en,de\nSave,"Spei,chern"\n')
    assert memory.objects("import", table)[0]["new"] == 1
    again = memory.objects("import", table)[0]
    assert (again["new"], again["unchanged"]) == (0, 1)
    table = memory.file("a.csv", "en,de\nSave,Sichern\n")
    assert memory.objects("import", table)[0]["replaced"] == 1
    assert memory.objects("show", "--text", "Save", "--to", "de")[0]["target"] == "Sichern"


def test_lines_that_are_not_imported_are_named(memory: Shell) -> None:
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
        f"a.tsv, line 6: {KINDS[INVALID]}",
    ]


def test_tmx_in_varieties_is_stored_under_the_languages_asked_for(memory: Shell) -> None:
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
    ],
)
def test_unreadable_file_is_refused_with_its_place(
    memory: Shell, name: str, content: str | bytes, reported: str
) -> None:
    status, _, err = memory("import", memory.file(name, content), "--to", "de")
    assert status == 1
    assert name in err
    assert reported in err
    assert memory.objects("export") == []


def test_rows_before_a_broken_place_are_imported_and_the_rest_named(memory: Shell) -> None:
    table = memory.file("a.tsv", b"Save\tSpeichern\n\xff\n")
    status, out, err = memory("import", table, "--to", "de")
    assert (status, out) == (3, "1 new\t0 replaced\t0 unchanged\n")
    assert "line 2" in err


@pytest.mark.parametrize("form", ["jsonl", "tmx", "tsv"])
def test_export_is_read_again_in_every_format(memory: Shell, form: str) -> None:
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


def test_tmx_leaves_out_what_it_cannot_hold_and_says_so(memory: Shell) -> None:
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
        memory = Shell(cluster.url, tmp_path)
        table = memory.file("a.tsv", "".join(f"text {n}\tTexte {n}\n" for n in range(1_200)))
        assert memory.objects("import", table, "--to", "fr")[0]["new"] == 1_200
        assert len(memory.objects("export")) == 1_200
        assert memory.objects("show")[1]["entries"] == 1_200
        assert memory.objects("clear", "--approved", "--yes")[0]["deleted"] == 1_200


def test_unreadable_entries_are_counted(memory: Shell, redis_server: RedisServer) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.hset(names.Keys().memory_approved(7), b"x", b"no JSON")
    status, out, err = memory("export")
    assert (status, out) == (3, "")
    assert "1 entries are unreadable" in err


def test_unknown_language_and_missing_redis_are_one_line(memory: Shell, tmp_path: Path) -> None:
    assert memory("show", "--to", "xx-yy-zz-q")[0] == 2
    away = Shell(f"redis://127.0.0.1:{free_port()}", tmp_path)
    status, _, err = away("show")
    assert status == 1
    assert err.count("\n") == 1
