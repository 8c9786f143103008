"""A port that a test was given is given to no other test, in whatever process."""

from __future__ import annotations

import random
import socket
from concurrent.futures import ProcessPoolExecutor

import pytest

from support.processes.fork_server import fork_server
from support.services import ports
from support.services.ports import free_port, free_ports


def test_ports_are_free_and_differ() -> None:
    given = free_ports(20)
    assert len(set(given)) == 20
    with socket.create_server(("127.0.0.1", given[0])):
        pass


def test_a_port_is_not_given_twice_though_nothing_listens_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setattr(random, "randint", lambda *_: port)
    with pytest.raises(OSError, match="no 1 free ports"):
        free_port()


def test_a_port_of_another_process_is_not_given() -> None:
    port = free_port()
    with ProcessPoolExecutor(1, mp_context=fork_server()) as other:
        assert not other.submit(ports._reserved, port).result()
