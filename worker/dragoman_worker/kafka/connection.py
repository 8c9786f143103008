"""How is a Kafka client of ours built? Security options, and the first contact with its bound."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    InvalidSessionTimeoutError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from dragoman_connections.kafka_client import security_options
from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, Unreachable
from dragoman_worker.log import logger, where

T = TypeVar("T")
_BETWEEN_TRIES_S: Final = 1.0
_ASK_S: Final = 3.0
_NOT_LET_IN: Final = (AuthenticationFailedError, SaslAuthenticationFailed)
_NO_SASL: Final = (
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    UnsupportedSaslMechanismError,
)
_FORBIDDEN: Final = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)


async def connected(build: Callable[[], Any], settings: KafkaSettings, within: Deadline) -> Any:
    """Build and start a client, again and again until it works or the time is up.

    aiokafka's clients cannot be started twice, so each try takes a new one.
    Raises Unreachable, naming the servers; at once SettingsError if security settings are wrong,
    and Halt if the broker does not let us do what we must.
    """
    servers = settings.bootstrap_servers
    while True:
        client = build()
        try:
            async with asyncio.timeout(max(0.1, within.left_s)):
                await client.start()
        except (KafkaError, OSError, TimeoutError) as error:
            await quietly(getattr(client, "stop", None) or client.close)  # the admin has no stop
            if forbidden(error):
                raise not_allowed(error) from None
            if isinstance(error, InvalidSessionTimeoutError):
                raise _not_that_long(settings) from None
            await _check_security(settings)
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


async def _check_security(settings: KafkaSettings) -> None:
    """Raises SettingsError if a broker is there and its security is not what the settings say.

    aiokafka's clients tell of a refusal to their log alone, and to us that nobody was there.
    """
    if settings.security_protocol == "PLAINTEXT":
        return
    for host, port, _ in collect_hosts(settings.bootstrap_servers):
        try:
            async with asyncio.timeout(_ASK_S):
                connection = await create_conn(host, port, **security_options(settings))
        except ssl.SSLCertVerificationError as error:
            raise SettingsError(
                f"kafka.ssl_cafile, kafka.ssl_check_hostname: the certificate of {host}:{port} is "
                f"not trusted ({error.verify_message})"
            ) from None
        except _NOT_LET_IN:
            raise SettingsError(
                f"kafka.sasl_plain_username, kafka.sasl_plain_password: Kafka at {host}:{port} "
                "refuses them"
            ) from None
        except _NO_SASL as error:
            raise SettingsError(
                f"kafka.security_protocol, kafka.sasl_mechanism: Kafka at {host}:{port} does not "
                f"take them ({type(error).__name__})"
            ) from None
        except (KafkaError, OSError, TimeoutError):
            continue
        connection.close()
        return


def _not_that_long(settings: KafkaSettings) -> SettingsError:
    seconds = f"{settings.session_timeout_s:g} s"
    return SettingsError(
        f"kafka.session_timeout_s: the broker does not allow {seconds}; give a value "
        "between its group.min.session.timeout.ms and group.max.session.timeout.ms"
    )


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
