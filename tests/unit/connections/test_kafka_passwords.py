"""A password from a file is read for every connection; a given one stays as it is."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection

from dragoman_connections.kafka_client import client_options
from dragoman_connections.settings import KafkaSettings


def connection(options: dict[str, Any]) -> AIOKafkaConnection:
    """Return a connection that has not been opened, as aiokafka makes it."""
    names = ("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
    return AIOKafkaConnection("127.0.0.1", 9092, **{name: options[name] for name in names})


def options_of(**given: object) -> dict[str, Any]:
    return client_options(
        KafkaSettings.model_validate(
            {"security_protocol": "SASL_PLAINTEXT", "sasl_plain_username": "ann", **given}
        )
    )


async def first_message(of: AIOKafkaConnection) -> bytes:
    authenticator = of.authenticator_plain()
    message, _ = await authenticator.step(None)
    return bytes(message)


async def test_a_replaced_file_gives_its_new_password_to_the_next_connection(
    tmp_path: Path,
) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    made = connection(options_of(sasl_plain_password_file=file))
    assert await first_message(made) == b"ann\0ann\0first"
    file.write_text("second\n")
    assert await first_message(made) == b"ann\0ann\0second"


async def test_scram_reads_its_password_for_every_connection(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first")
    made = connection(options_of(sasl_plain_password_file=file, sasl_mechanism="SCRAM-SHA-512"))
    file.write_text("second")
    assert made.authenticator_scram()._sasl_plain_password == b"second"


async def test_while_its_file_is_missing_the_last_password_stays_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"
    file.write_text("first")
    made = connection(options_of(sasl_plain_password_file=file))
    file.write_text("second")
    await first_message(made)
    file.unlink()
    with caplog.at_level(logging.WARNING):
        assert await first_message(made) == b"ann\0ann\0second"
    assert str(file) in caplog.text
    assert "second" not in caplog.text


async def test_a_password_without_a_file_stays_as_it_is() -> None:
    made = connection(options_of(sasl_plain_password="fixed"))  # noqa: S106
    assert await first_message(made) == b"ann\0ann\0fixed"
