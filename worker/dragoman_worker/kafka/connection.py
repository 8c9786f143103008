"""How is a Kafka client of ours built? Security options, and the first contact with its bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)
from aiokafka.helpers import create_ssl_context

from dragoman_schemas.connections import KafkaSettings
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, Unreachable
from dragoman_worker.log import logger, where

T = TypeVar("T")
_BETWEEN_TRIES_S: Final = 1.0
_FORBIDDEN: Final = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """The options that every aiokafka client takes: servers, SASL and TLS."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "security_protocol": settings.security_protocol,
    }
    if settings.security_protocol.startswith("SASL"):
        password = settings.sasl_plain_password
        options |= {
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.sasl_plain_username,
            "sasl_plain_password": password.get_secret_value() if password else None,
        }
    if settings.security_protocol.endswith("SSL"):
        password = settings.ssl_password
        context = create_ssl_context(
            cafile=settings.ssl_cafile,
            certfile=settings.ssl_certfile,
            keyfile=settings.ssl_keyfile,
            password=password.get_secret_value() if password else None,
        )
        context.check_hostname = settings.ssl_check_hostname
        options["ssl_context"] = context
    return options


async def connected(build: Callable[[], Any], servers: str, within: Deadline) -> Any:
    """Build and start a client, again and again until it works or the time is up.

    aiokafka's clients cannot be started twice, so each try takes a new one.
    Raises Unreachable, naming the servers, or Halt at once if the broker does not let us in.
    """
    while True:
        client = build()
        try:
            async with asyncio.timeout(max(0.1, within.left_s)):
                await client.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await quietly(getattr(client, "stop", None) or client.close)  # the admin has no stop
            if forbidden(error):
                raise not_allowed(error) from None
            if within.at_most(_BETWEEN_TRIES_S) < _BETWEEN_TRIES_S:
                raise Unreachable(
                    f"Kafka at {servers} could not be reached in time ({type(error).__name__}); "
                    "is it running? kafka.bootstrap_servers, connect_timeout_s"
                ) from None
            logger().warning(
                "waiting_for_kafka",
                servers=servers,
                left_s=round(within.left_s),
                error=type(error).__name__,
            )
            await asyncio.sleep(_BETWEEN_TRIES_S)
        else:
            return client


def forbidden(error: BaseException) -> bool:
    """Whether the broker knows us and refuses: no waiting and no new client would help."""
    return isinstance(error, _FORBIDDEN)


def not_allowed(error: BaseException) -> Halt:
    """What to end with then, and what to look at."""
    return Halt(
        f"Kafka refuses this client ({error}): check its user and password and its rights to "
        "read the topics and the group (kafka.topics, kafka.group_id)"
    )


def passes(error: BaseException) -> bool:
    """Whether it is only that no broker can be reached, which is waited out for ever."""
    if isinstance(error, KafkaError):
        return error.retriable or isinstance(error, KafkaTimeoutError | KafkaUnavailableError)
    return isinstance(error, OSError)  # a TimeoutError is one


def told(error: BaseException) -> str:
    """The error for a log. Kafka's errors quote no document; others might."""
    return repr(error)[:200] if isinstance(error, KafkaError) else where(error)


async def quietly(stop: Callable[[], Awaitable[None]], timeout_s: float = 5.0) -> None:
    """Stop a client whatever state it is in.

    With its broker gone aiokafka's `stop` raises CancelledError although nobody cancelled us, and
    may hang; neither must hide why we stop.
    """
    try:
        async with asyncio.timeout(timeout_s):
            await stop()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
    except (KafkaError, OSError, TimeoutError) as error:
        logger().warning("kafka_stop_failed", error=type(error).__name__)
