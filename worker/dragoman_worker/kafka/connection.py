"""Kafka client connections: bounded first connection, error classes, and quiet shutdown."""

from __future__ import annotations

import asyncio
import time
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
from dragoman_schemas.wire import now_rfc3339
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


CHECK_EVERY_S: Final = 0.5
MISSES_BEFORE_UNAVAILABLE: Final = 6
"""Failed checks in a row until Kafka counts as unavailable: a reconnect or a new leader takes time.

Checks are counted, not seconds: a process that was stopped continues with answers that it has not
read yet.
"""


class KafkaAvailability:
    """Kafka's availability by the consumer's connections. No I/O and no cost for the broker."""

    def __init__(self, servers: str, answers: Callable[[], bool | None]) -> None:
        """Check with `answers` whether a broker answers; None while there is no consumer."""
        self._servers = servers
        self._answers = answers
        self._misses = 0
        self._since = ""
        self._missed_at = 0.0
        self.unavailable = False

    async def watch(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(CHECK_EVERY_S)
            self.check()

    def check(self) -> None:
        """Check once."""
        answers = self._answers()
        if answers:
            self._found()
        elif answers is False:
            self._missed()

    def _found(self) -> None:
        if self.unavailable:
            after_s = round(time.monotonic() - self._missed_at, 1)
            logger().info("kafka_available", servers=self._servers, after_s=after_s)
        self.unavailable, self._misses = False, 0

    def _missed(self) -> None:
        if self._misses == 0:
            self._since, self._missed_at = now_rfc3339(), time.monotonic()
        self._misses += 1
        if self._misses == MISSES_BEFORE_UNAVAILABLE:
            self.unavailable = True
            logger().warning("kafka_unavailable", servers=self._servers, since=self._since)
