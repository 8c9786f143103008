"""Unit tests of the connection to Kafka."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_producer.broker import connection_options


def test_a_plain_broker_needs_an_address_and_nothing_else() -> None:
    options = connection_options(KafkaSettings(bootstrap_servers="a:1,b:2"))
    assert options == {
        "bootstrap_servers": "a:1,b:2",
        "security_protocol": "PLAINTEXT",
        "client_id": "dragoman",
    }


def test_sasl_over_tls_passes_credentials_and_checks_the_host() -> None:
    settings = KafkaSettings.model_validate(
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "secret",
        }
    )
    options = connection_options(settings)
    assert options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("ann", "secret")
    assert isinstance(options["ssl_context"], ssl.SSLContext)
    assert options["ssl_context"].check_hostname
    assert "secret" not in repr(settings)


def test_the_host_check_can_be_switched_off() -> None:
    settings = KafkaSettings(security_protocol="SSL", ssl_check_hostname=False)
    assert not connection_options(settings)["ssl_context"].check_hostname


def test_a_certificate_that_is_not_there_names_the_settings(tmp_path: Path) -> None:
    settings = KafkaSettings(security_protocol="SSL", ssl_cafile=tmp_path / "none.pem")
    with pytest.raises(SettingsError, match=r"kafka\.ssl_cafile"):
        connection_options(settings)
