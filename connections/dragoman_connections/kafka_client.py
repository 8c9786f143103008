"""Options that every Kafka client is built with, and why a broker does not accept them."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from dragoman_connections.kafka_passwords import password_of
from dragoman_connections.kafka_tokens import UnusableToken, token_provider
from dragoman_connections.settings import KafkaSettings
from dragoman_connections.tls import kafka_context


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return aiokafka's arguments for the servers, SASL and TLS.

    Raises SettingsError if a certificate or key cannot be read or a part is not installed.
    """
    return {"bootstrap_servers": settings.bootstrap_servers, **security_options(settings)}


def security_options(settings: KafkaSettings) -> dict[str, Any]:
    """Return aiokafka's arguments for SASL and TLS. Raises SettingsError as `client_options`."""
    options: dict[str, Any] = {"security_protocol": settings.security_protocol}
    if settings.security_protocol.startswith("SASL"):
        options |= {"sasl_mechanism": settings.sasl_mechanism, **_credentials(settings)}
    if settings.security_protocol.endswith("SSL"):
        options["ssl_context"] = kafka_context(settings)
    return options


def _credentials(settings: KafkaSettings) -> dict[str, Any]:
    if settings.sasl_mechanism == "OAUTHBEARER":
        return {"sasl_oauth_token_provider": token_provider(settings)}
    return {
        "sasl_plain_username": settings.sasl_plain_username,
        "sasl_plain_password": password_of(settings),
    }


_CHECK_S: Final = 3.0


async def security_problem(settings: KafkaSettings) -> str | None:
    """Return the settings that the first broker that answers does not accept; None if none.

    aiokafka's clients only log a refusal, and raise the error of an unreachable broker. Raises
    SettingsError if a certificate or key cannot be read.
    """
    if settings.security_protocol == "PLAINTEXT":
        return None
    for host, port, _ in collect_hosts(settings.bootstrap_servers):
        try:
            async with asyncio.timeout(_CHECK_S):
                connection = await create_conn(host, port, **security_options(settings))
        except (KafkaError, UnusableToken, OSError, TimeoutError) as error:
            if (why := _told(settings, f"{host}:{port}", error)) is not None:
                return why
        else:
            connection.close()
            return None
    return None


def _told(settings: KafkaSettings, server: str, error: Exception) -> str | None:
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"kafka.ssl_cafile, kafka.ssl_check_hostname: the certificate of {server} is "
                f"not trusted ({error.verify_message})"
            )
        case UnusableToken():
            return str(error.args[0])
        case AuthenticationFailedError() | SaslAuthenticationFailed():
            return f"{_credential_settings(settings)}: Kafka at {server} rejects them"
        case (
            AuthenticationMethodNotSupported()
            | IllegalSaslStateError()
            | UnsupportedSaslMechanismError()
        ):
            return (
                f"kafka.security_protocol, kafka.sasl_mechanism: Kafka at {server} does not "
                f"support them ({type(error).__name__})"
            )
        case _:
            return None


def _credential_settings(settings: KafkaSettings) -> str:
    if settings.sasl_mechanism == "OAUTHBEARER":
        return "kafka.sasl_oauth_token_file, kafka.sasl_oauth_msk_region"
    return "kafka.sasl_plain_username, kafka.sasl_plain_password"
