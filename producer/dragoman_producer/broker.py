"""How is Kafka reached with our settings, and what is said when it is not?"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman_producer.errors import BrokerUnreachable
from dragoman_schemas.connections import KafkaSettings
from dragoman_schemas.tls import kafka_context


def connection_options(settings: KafkaSettings) -> dict[str, Any]:
    """aiokafka's arguments for the connection, of a producer, consumer or admin client.

    Raises SettingsError where a certificate cannot be read.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "security_protocol": settings.security_protocol,
        "client_id": "dragoman",
    }
    if settings.security_protocol.startswith("SASL"):
        password = settings.sasl_plain_password
        options |= {
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.sasl_plain_username,
            "sasl_plain_password": password.get_secret_value() if password else None,
        }
    if settings.security_protocol.endswith("SSL"):
        options["ssl_context"] = kafka_context(settings)
    return options


async def unreachable(settings: KafkaSettings, within_s: float, why: object) -> BrokerUnreachable:
    """What to raise when the broker did not answer in time: the address and the likely cause."""
    servers = settings.bootstrap_servers
    if await _some_port_open(servers):
        hint = (
            f"the port is open, but nothing there speaks Kafka over {settings.security_protocol} "
            "in time; check kafka.security_protocol, the SASL and TLS settings and the broker's log"
        )
    else:
        hint = "is it running? check kafka.bootstrap_servers"
    return BrokerUnreachable(
        f"Kafka at {servers} could not be reached within {within_s:g} s "
        f"({_first_line(why)}): {hint}"
    )


async def _some_port_open(servers: str) -> bool:
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            async with asyncio.timeout(0.5):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except (OSError, ValueError, TimeoutError):
            continue
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True
    return False


def _first_line(why: object) -> str:
    text = str(why).strip() or type(why).__name__
    return text.splitlines()[0][:200]


async def end_within(seconds: float, *steps: Callable[[], Awaitable[None]]) -> None:
    """Run each closing step, each with a bound of its own, whatever the one before it did.

    aiokafka's ``stop`` waits for acknowledgements of a broker that may be gone for good, and lets
    CancelledError out of its own tasks; neither may keep ours from ending.
    """
    for step in steps:
        closing = asyncio.ensure_future(step())
        try:
            await asyncio.wait([closing], timeout=seconds)
        finally:
            closing.cancel()
        await asyncio.wait([closing])
        if not closing.cancelled():
            closing.exception()  # retrieved: a client that did not stop cleanly is no news
