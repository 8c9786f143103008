"""The HTTP server names the setting that keeps it from listening."""

from __future__ import annotations

import socket

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.process.http import HttpServer
from dragoman_worker.settings import HttpSettings


@pytest.mark.parametrize(
    "host", ["no such host", "192.0.2.1", "x" * 300, "a..b", "a\0b", "[::1]", "127.0.0.1:80"]
)
async def test_a_host_that_is_no_address_of_this_machine_is_named(host: str) -> None:
    server = HttpServer(HttpSettings(host=host, port=0), {})
    try:
        with pytest.raises(SettingsError, match=r"^http\.host: .*give one such as 127\.0\.0\.1"):
            await server.start()
    finally:
        await server.close()


async def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = HttpServer(HttpSettings(port=other.getsockname()[1]), {})
        try:
            with pytest.raises(SettingsError, match=r"^http\.port: cannot listen on"):
                await server.start()
        finally:
            await server.close()
