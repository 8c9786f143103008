"""Options that every Kafka client of worker and producer is built with."""

from __future__ import annotations

from typing import Any

from dragoman_connections.kafka_passwords import password_of
from dragoman_connections.kafka_tokens import token_provider
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
