"""The secured broker of the tests enforces the rights of its users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.helpers import create_ssl_context

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings
from support.services.secure_broker import Right, SecureBroker, unsecured_token

WRITE = Right("topic", "notes", "write")

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def secure(
    kafka_installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureBroker]:
    del kafka_installed
    folder = tmp_path_factory.mktemp("secure")
    with SecureBroker(folder, {"ann": "open-sesame", "bob": "let-me-in"}) as broker:
        broker.create_topic("notes")
        broker.grant("ann", [WRITE])
        yield broker


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    async def token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return unsecured_token("ann")


async def _write(options: dict[str, Any]) -> None:
    async with AIOKafkaProducer(**options, acks="all") as producer:
        await producer.send_and_wait("notes", b"a note")


async def test_a_granted_user_writes_by_scram_over_tls(secure: SecureBroker) -> None:
    await _write(client_options(KafkaSettings.model_validate(secure.scram_settings("ann"))))


async def test_a_user_without_a_right_is_refused_until_it_is_granted(secure: SecureBroker) -> None:
    options = client_options(KafkaSettings.model_validate(secure.scram_settings("bob")))
    with pytest.raises(TopicAuthorizationFailedError):
        await _write(options)
    secure.grant("bob", [WRITE])
    await _write(options)
    secure.revoke("bob", [WRITE])
    with pytest.raises(TopicAuthorizationFailedError):
        await _write(options)


async def test_a_client_certificate_names_the_user(secure: SecureBroker) -> None:
    pair = secure.authority.issue("ann")
    context = create_ssl_context(
        cafile=secure.authority.ca, certfile=pair.certificate, keyfile=pair.key
    )
    await _write(
        {
            "bootstrap_servers": secure.mtls_bootstrap,
            "security_protocol": "SSL",
            "ssl_context": context,
        }
    )


async def test_a_token_names_the_user(secure: SecureBroker) -> None:
    await _write(
        {
            "bootstrap_servers": secure.oauth_bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": _Tokens(),
        }
    )
