"""Kafka client connections: bounded first connection, error classes, and quiet shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    InvalidSessionTimeoutError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)

from dragoman_connections.kafka_client import security_problem
from dragoman_connections.settings import KafkaSettings, SettingsError
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


async def connected(build: Callable[[], Any], settings: KafkaSettings, within: Deadline) -> Any:
    """Build and start a client, and retry until it connects or the deadline passes.

    aiokafka's clients cannot be started twice, so each attempt builds a new one.
    Raises Unreachable, naming the servers. Raises at once SettingsError if the security settings
    are invalid, and Halt if the broker denies a right that the worker needs.
    """
    servers = settings.bootstrap_servers
    while True:
        client = build()
        try:
            async with asyncio.timeout(max(0.1, within.left_s)):
                await client.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await quietly(
                getattr(client, "stop", None) or client.close
            )  # the admin client has no stop
            if forbidden(error):
                raise not_allowed(error) from None
            if isinstance(error, InvalidSessionTimeoutError):
                raise _invalid_session_timeout(settings) from None
            if (why := await security_problem(settings)) is not None:
                raise SettingsError(why) from None
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


def _invalid_session_timeout(settings: KafkaSettings) -> SettingsError:
    seconds = f"{settings.session_timeout_s:g} s"
    return SettingsError(
        f"kafka.session_timeout_s: the broker does not allow {seconds}; set a value "
        "between its group.min.session.timeout.ms and group.max.session.timeout.ms"
    )


def forbidden(error: BaseException) -> bool:
    """Whether the broker denies this client: neither waiting nor a new client would help."""
    return isinstance(error, _FORBIDDEN)


def not_allowed(error: BaseException) -> Halt:
    """Return the error to halt with after a denial; it names what to check."""
    return Halt(
        f"Kafka refuses this client ({error}): check its user and password and its rights to "
        "read the topics and the group (kafka.topics, kafka.group_id)"
    )


def is_outage(error: BaseException) -> bool:
    """Whether the error only means that no broker is reachable, which is retried for ever."""
    if isinstance(error, KafkaError):
        return error.retriable or isinstance(error, KafkaTimeoutError | KafkaUnavailableError)
    return isinstance(error, OSError)  # includes TimeoutError


def loggable(error: BaseException) -> str:
    """Return the error as text for a log: Kafka's errors quote no document, others might."""
    return repr(error)[:200] if isinstance(error, KafkaError) else where(error)


async def quietly(stop: Callable[[], Awaitable[None]], timeout_s: float = 5.0) -> None:
    """Stop a client in any state, within `timeout_s`.

    Without a broker aiokafka's `stop` may hang, or raise CancelledError although this task was not
    cancelled. Neither may hide the reason of the shutdown.
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
