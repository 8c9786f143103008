"""Kafka client connections: bounded first connection, error classes, and quiet shutdown."""

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
from dragoman_connections.kafka_tokens import UnusableToken
from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, Unreachable
from dragoman_worker.log import logger, where

T = TypeVar("T")
_BETWEEN_TRIES_S: Final = 1.0
_CHECK_S: Final = 3.0
_BAD_CREDENTIALS: Final = (AuthenticationFailedError, SaslAuthenticationFailed)
_SASL_MISMATCH: Final = (
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
    """Raise SettingsError if a broker answers and its security does not match the settings.

    aiokafka's clients only log a refusal, and raise the error of an unreachable broker.
    """
    if settings.security_protocol == "PLAINTEXT":
        return
    for host, port, _ in collect_hosts(settings.bootstrap_servers):
        try:
            async with asyncio.timeout(_CHECK_S):
                connection = await create_conn(host, port, **security_options(settings))
        except ssl.SSLCertVerificationError as error:
            raise SettingsError(
                f"kafka.ssl_cafile, kafka.ssl_check_hostname: the certificate of {host}:{port} is "
                f"not trusted ({error.verify_message})"
            ) from None
        except UnusableToken as error:
            raise SettingsError(str(error.args[0])) from None
        except _BAD_CREDENTIALS:
            raise SettingsError(
                f"{_credential_settings(settings)}: Kafka at {host}:{port} rejects them"
            ) from None
        except _SASL_MISMATCH as error:
            raise SettingsError(
                f"kafka.security_protocol, kafka.sasl_mechanism: Kafka at {host}:{port} does not "
                f"support them ({type(error).__name__})"
            ) from None
        except (KafkaError, OSError, TimeoutError):
            continue
        connection.close()
        return


def _credential_settings(settings: KafkaSettings) -> str:
    if settings.sasl_mechanism == "OAUTHBEARER":
        return "kafka.sasl_oauth_token_file, kafka.sasl_oauth_msk_region"
    return "kafka.sasl_plain_username, kafka.sasl_plain_password"


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
