"""`dragoman serve` as a command: exit status, and one sentence for each thing that is wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer

from support.services.ports import free_ports


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman_gateway", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_is_one_that_other_packages_add() -> None:
    group = "dragoman.commands"
    found = EntryPoint("serve", "dragoman_gateway.cli:serve", group).load()
    assert isinstance(found, typer.Typer)


def test_a_new_key_prints_its_secret_apart_from_the_lines_for_the_file() -> None:
    ended = serve("new-key", "shop")
    assert ended.returncode == 0
    assert ended.stdout.startswith('[[key]]\nid = "shop"\nsha256 = "')
    assert "dg_" in ended.stderr
    assert "dg_" not in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "serve.host=192.0.2.1"], "serve: host 192.0.2.1 can be reached from elsewhere"),
        (["--set", "serve.prot=1"], "serve.prot"),
        (["--set", "nothing"], "give NAME=VALUE"),
        (["--config", "/missing.toml"], "there is no such file"),
        (["--set", "serve.keys_file=/missing"], "serve.keys_file: /missing"),
        (["--set", "serve.tls_cert=/no.pem", "--set", "serve.tls_key=/no.key"], "serve.tls_cert"),
        (["--nonsense"], "No such option"),
        (["new-key", "a b"], "not a key's id"),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(arguments: list[str], words: str) -> None:
    ended = serve(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_check_names_what_cannot_be_reached() -> None:
    port = free_ports(1)[0]
    ended = serve("--check", "--set", f"redis.url=redis://127.0.0.1:{port}", "--set",
                  "connect_timeout_s=0.5")  # fmt: skip
    assert ended.returncode == 1
    assert f"Redis at 127.0.0.1:{port}" in ended.stderr


def test_a_port_that_is_taken_is_named() -> None:

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = serve("--set", f"serve.port={port}", "--set", "serve.admin_port=0", "--set",
                      "connect_timeout_s=0.5")  # fmt: skip
    assert ended.returncode == 2
    assert f"serve.port: cannot listen on 127.0.0.1:{port}" in ended.stderr
