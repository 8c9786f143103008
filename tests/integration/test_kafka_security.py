"""Invalid users, passwords, mechanisms and certificates are reported at once, valid ones work."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from typer.testing import CliRunner

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_producer.broker import unreachable
from dragoman_producer.cli.commands import _commands
from dragoman_producer.errors import WrongBroker
from dragoman_producer.publisher import Publisher
from dragoman_worker.deadline import Deadline
from dragoman_worker.kafka.publisher import KafkaPublisher
from support.services.kafka_broker import KafkaBroker

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def guarded(kafka_installed: Path) -> Iterator[KafkaBroker]:
    """Start a broker with the users admin and ann."""
    del kafka_installed
    with KafkaBroker(users={"admin": "x", "ann": "open-sesame"}) as broker:
        yield broker


async def started(**settings: Any) -> None:
    """Connect like a worker at its start, within half of its time-out."""
    publisher = KafkaPublisher(KafkaSettings.model_validate(settings), client_id="w1")
    try:
        async with asyncio.timeout(PATIENCE_S / 2):
            await publisher.start(Deadline.after(PATIENCE_S))
    finally:
        await publisher.close()


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"sasl_plain_password": "a-secret"}, "kafka.sasl_plain_password"),
        ({"sasl_plain_username": "bob"}, "kafka.sasl_plain_username"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "kafka.sasl_mechanism"),
        ({"bootstrap_servers": "plain"}, "kafka.security_protocol"),
    ],
    ids=["password", "user", "mechanism", "no SASL"],
)
async def test_invalid_credentials_are_an_invalid_setting_and_not_shown(
    guarded: KafkaBroker, wrong: dict[str, str], reported: str
) -> None:
    right = {
        "bootstrap_servers": guarded.sasl_bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_plain_username": "ann",
        "sasl_plain_password": "open-sesame",
    }
    await started(**right)
    if "bootstrap_servers" in wrong:
        wrong = {"bootstrap_servers": guarded.bootstrap}
    with pytest.raises(SettingsError, match=reported) as caught:
        await started(**right | wrong)
    assert "a-secret" not in str(caught.value)


@pytest.mark.kafka
async def test_a_client_with_an_invalid_password_names_the_setting_and_no_object_of_python(
    guarded: KafkaBroker,
) -> None:
    settings = KafkaSettings.model_validate(
        {
            "bootstrap_servers": guarded.sasl_bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "a-secret",
        }
    )
    why = str(await unreachable(settings, 1, KafkaConnectionError("from [('127.0.0.1', 1)]")))
    assert why.startswith("kafka.sasl_plain_username, kafka.sasl_plain_password: ")
    assert "rejects them" in why
    assert "a-secret" not in why


@pytest.mark.kafka
def test_a_command_with_a_wrong_password_names_the_setting_and_does_not_wait(
    guarded: KafkaBroker, tmp_path: Path
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f"""connect_timeout_s = {PATIENCE_S}
[kafka]
bootstrap_servers = "{guarded.sasl_bootstrap}"
security_protocol = "SASL_PLAINTEXT"
sasl_plain_username = "ann"
sasl_plain_password = "a-secret"
"""
    )
    began = time.monotonic()
    ended = CliRunner().invoke(_commands(), ["topics", "show", "--config", str(file)])
    assert time.monotonic() - began < PATIENCE_S / 2
    assert ended.exit_code == 2
    assert "kafka.sasl_plain_username, kafka.sasl_plain_password: " in ended.stderr
    assert "a-secret" not in ended.stderr


@pytest.mark.kafka
async def test_a_producer_with_a_wrong_password_does_not_wait_for_the_broker(
    guarded: KafkaBroker,
) -> None:
    settings = KafkaSettings.model_validate(
        {
            "bootstrap_servers": guarded.sasl_bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "a-secret",
        }
    )
    publisher = Publisher(settings, connect_timeout_s=PATIENCE_S)
    try:
        async with asyncio.timeout(PATIENCE_S / 2):
            with pytest.raises(WrongBroker, match=r"kafka\.sasl_plain_password"):
                await publisher.publish("jobs", b"key", b"{}", [])
    finally:
        await publisher.close()


@pytest.fixture
def self_signed(tmp_path: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with a self-signed certificate."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*new, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


async def test_an_untrusted_certificate_is_reported_at_once(
    self_signed: ssl.SSLContext,
) -> None:
    server = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", ssl=self_signed
    )
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(SettingsError, match=r"^kafka\.ssl_cafile.*not trusted \(self.signed"):
        await started(bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SSL")
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile"])
def test_an_unreadable_file_is_an_invalid_setting(name: str, tmp_path: Path) -> None:
    settings = KafkaSettings.model_validate({"security_protocol": "SSL", name: tmp_path / "none"})
    with pytest.raises(SettingsError, match=f"kafka.{name}"):
        client_options(settings)
