"""Connection options for Kafka, and the errors to raise if it is unreachable or refuses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    TopicAuthorizationFailedError,
)

from dragoman_connections.kafka_client import client_options, security_problem
from dragoman_connections.kafka_tokens import token_problem
from dragoman_connections.settings import KafkaSettings
from dragoman_producer.errors import BrokerRefused, BrokerUnreachable, WrongBroker


def connection_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return aiokafka's arguments for the connection of a producer, consumer or admin client.

    Raises SettingsError if a certificate cannot be read.
    """
    return {**client_options(settings), "client_id": "dragoman"}


async def wrong_broker(settings: KafkaSettings) -> WrongBroker | None:
    """Return the error if a broker answers and does not accept user, password, SASL or TLS."""
    why = await security_problem(settings)
    return None if why is None else WrongBroker(why)


async def unreachable(
    settings: KafkaSettings, within_s: float, why: object
) -> BrokerUnreachable | WrongBroker:
    """Return the error for a broker that did not answer in time, with address and likely cause."""
    servers = settings.bootstrap_servers
    hint = await token_problem(settings)
    if hint is None and (wrong := await wrong_broker(settings)) is not None:
        return wrong
    if hint is None and await _some_port_open(servers):
        hint = (
            f"the port is open, but nothing there speaks Kafka over {settings.security_protocol} "
            "in time; check kafka.security_protocol, the SASL and TLS settings and the broker's log"
        )
        if settings.sasl_mechanism == "OAUTHBEARER":
            hint += ", and whether the broker rejects the token of kafka.sasl_oauth_token_file"
    elif hint is None:
        hint = "is it running? Check kafka.bootstrap_servers"
    return BrokerUnreachable(
        f"Can't reach Kafka at {servers} within {within_s:g} s{_first_line(why)}: {hint}"
    )


def refused(settings: KafkaSettings, error: object, operation: str) -> BrokerRefused | None:
    """Return the error for a missing Kafka permission; None for every other error.

    ``operation`` is the permission that the request needed on its topics.
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
    """Return the error for a topic that the broker does not report."""
    return BrokerRefused(f"Kafka at {settings.bootstrap_servers}: {hidden_topic(topic, operation)}")


def hidden_topic(topic: str, operation: str) -> str:
    """Return the possible causes for a topic that is not reported, and what to do."""
    rights = operation if operation == "DESCRIBE" else f"{operation} and DESCRIBE"
    return (
        f"topic {topic} does not exist, or this user may not see it (Kafka does not say which): "
        f"make it with `dragoman topics create`, or grant {rights} on the topic"
    )


def _topics_of(error: BaseException) -> list[str]:
    """Return the topics in aiokafka's error: its argument is a topic, a set or a partition."""
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
    """Return the reason in parentheses; none for that of every unreachable broker."""
    if isinstance(why, KafkaConnectionError):
        return ""  # aiokafka's text only repeats the servers, as Python objects
    text = str(why).strip() or type(why).__name__
    return f" ({text.splitlines()[0][:200]})"


async def end_within(seconds: float, *steps: Callable[[], Awaitable[None]]) -> None:
    """Run each closing step, each with its own bound, whatever the step before did.

    aiokafka's ``stop`` waits for acknowledgements of a broker that may be gone for good, and
    raises CancelledError from its own tasks; neither may keep the caller from returning.
    """
    for step in steps:
        closing = asyncio.ensure_future(step())
        try:
            await asyncio.wait([closing], timeout=seconds)
        finally:
            closing.cancel()
        await asyncio.wait([closing])
        if not closing.cancelled():
            closing.exception()  # mark as retrieved: an unclean stop is not reported
