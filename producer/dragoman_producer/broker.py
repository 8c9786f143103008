"""How is Kafka reached with our settings, and what is said when it is not?"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)

from dragoman_connections.settings import KafkaSettings
from dragoman_connections.tls import kafka_context
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable


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


def refused(settings: KafkaSettings, error: object, operation: str) -> BrokerRefused | None:
    """What to raise where the broker withholds a right; None for every other error.

    ``operation`` is the right that the request needed on its topics.
    """
    match error:
        case GroupAuthorizationFailedError():
            what = f"group {settings.group_id}: grant DESCRIBE on the group"
        case TopicAuthorizationFailedError():
            topics = ", ".join(_topics_of(error)) or "a topic"
            what = f"topic {topics}: grant {operation} on the topic"
        case ClusterAuthorizationFailedError():
            what = f"the cluster: grant {operation}"
        case _:
            return None
    return BrokerRefused(
        f"Kafka at {settings.bootstrap_servers} gives this user no right to {what}"
    )


def hidden(settings: KafkaSettings, topic: str, operation: str) -> BrokerRefused:
    """What to raise for a topic that the broker does not report."""
    return BrokerRefused(f"Kafka at {settings.bootstrap_servers}: {hidden_topic(topic, operation)}")


def hidden_topic(topic: str, operation: str) -> str:
    """What is wrong with such a topic, and what to do."""
    rights = operation if operation == "DESCRIBE" else f"{operation} and DESCRIBE"
    return (
        f"topic {topic} does not exist, or this user may not see it (Kafka does not say which): "
        f"make it with `dragoman topics create`, or grant {rights} on the topic"
    )


def _topics_of(error: BaseException) -> list[str]:
    """aiokafka's argument is a topic, a set of topics, or a partition of one."""
    match error.args:
        case (str(topic),):
            return [topic]
        case (TopicPartition(topic=topic),):
            return [topic]
        case (set(topics),):
            return sorted(topics)
        case _:
            return []


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
