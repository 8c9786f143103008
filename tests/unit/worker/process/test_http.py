"""The HTTP server names what keeps it from listening, and serves beside clients that hang."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
from aiohttp import web

from dragoman_connections.settings import SettingsError
from dragoman_worker.process.http import _MOST_CONNECTIONS, HttpServer, checks_response
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


async def test_clients_that_never_finish_a_request_keep_no_other_one_out() -> None:
    async def page(_: web.Request) -> web.StreamResponse:
        return checks_response([])

    server = HttpServer(HttpSettings(port=0), {"/livez": page})
    port = await server.start()
    hanging = []
    try:
        for number in range(2 * _MOST_CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if number % 2:
                writer.write(b"GET /livez HTTP/1.1\r\n")
            hanging.append((reader, writer))
        url = f"http://127.0.0.1:{port}/livez"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert response.status == 200
        oldest, _ = hanging[0]
        assert await asyncio.wait_for(oldest.read(), 30) == b"", "the oldest one is closed"
    finally:
        for _, writer in hanging:
            writer.close()
        await server.close()
