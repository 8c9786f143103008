"""The settings that client and worker share come from file, environment and options."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman_connections.settings import (
    DragomanSettings,
    KafkaSettings,
    SettingsError,
    load_settings,
)


def test_without_anything_given_the_services_of_this_machine_are_used() -> None:
    settings = load_settings(DragomanSettings)
    assert settings.kafka.bootstrap_servers == "127.0.0.1:9092"
    assert settings.redis.url == "redis://127.0.0.1:6379/0"
    assert settings.connect_timeout_s == 10.0


def test_a_client_ignores_the_worker_s_part_of_a_shared_file(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[kafka]\ngroup_id = "g"\n[engine]\nkind = "echo"\n')
    assert load_settings(DragomanSettings, file).kafka.group_id == "g"


def test_topics_come_as_a_list_or_with_commas() -> None:
    for given_topics in (["a", "b:3"], "a,b:3"):
        settings = load_settings(DragomanSettings, None, {"kafka.topics": given_topics})
        assert settings.kafka.topic_names == ("a", "b")
        assert settings.kafka.topic_weights == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        (("a:0",), "1 to 1000"),
        (("a:1001",), "1 to 1000"),
        (("a:-1",), "NAME:WEIGHT"),
        (("a:1.5",), "NAME:WEIGHT"),
        (("a:",), "NAME:WEIGHT"),
        (("a:3", "b", "a"), "a is named twice"),
    ],
)
def test_weights_have_bounds_and_a_topic_has_one(topics: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        KafkaSettings(topics=topics)
    assert KafkaSettings(topics=("a:1", "b:1000")).topic_weights == {"a": 1, "b": 1000}


@pytest.mark.parametrize(
    "servers", ["", "host:abc", "host:0", "host:99999", "a:1,,b:1", "a b:1", "::1:9092", "[::1]x"]
)
def test_an_invalid_server_is_named_before_anything_connects(servers: str) -> None:
    with pytest.raises(SettingsError, match=r"kafka\.bootstrap_servers: .*is not a server"):
        load_settings(DragomanSettings, None, {"kafka.bootstrap_servers": servers})


@pytest.mark.parametrize(
    "servers", ["host", "host:1", "a:65535, b:2", "[::1]:9092", "[fe80::1%eth0]", "b-1.x_y.z:9094"]
)
def test_servers_are_names_and_addresses_with_or_without_a_port(servers: str) -> None:
    assert KafkaSettings(bootstrap_servers=servers).bootstrap_servers == servers


@pytest.mark.parametrize("missing", ["sasl_plain_username", "sasl_plain_password"])
def test_sasl_without_user_or_password_is_refused_by_name(missing: str) -> None:
    given_settings = {"sasl_plain_username": "ann", "sasl_plain_password": "secret"}
    del given_settings[missing]
    with pytest.raises(ValidationError, match="sasl_plain_username and sasl_plain_password"):
        KafkaSettings.model_validate({"security_protocol": "SASL_SSL", **given_settings})


@given(st.text(max_size=20))
def test_a_topic_is_a_name_of_kafka_s_letters_or_it_is_refused(name: str) -> None:
    letters = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    try:
        topics = KafkaSettings(topics=(name,)).topic_names
    except ValueError:
        return
    assert len(topics) == 1
    assert topics[0]
    assert set(topics[0]) <= letters


@pytest.mark.parametrize("level", ["none", "aof", "wait:1", "waitaof:12"])
def test_every_level_of_durability_can_be_given(level: str) -> None:
    settings = load_settings(DragomanSettings, None, {"redis.durability": level})
    assert settings.redis.durability == level


@pytest.mark.parametrize("level", ["", "wait", "wait:0", "wait:x", "AOF", "waitaof:100"])
def test_any_other_level_is_refused_by_name(level: str) -> None:
    with pytest.raises(SettingsError, match=r"^redis\.durability: give none"):
        load_settings(DragomanSettings, None, {"redis.durability": level})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml: there is no such file"):
        load_settings(DragomanSettings, tmp_path / "nowhere.toml")


@pytest.mark.parametrize("content", [b"[kafka\n", b"\xff\xfe", b"kafka = 1\nkafka = 2\n"])
def test_a_file_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"broken\.toml") as caught:
        load_settings(DragomanSettings, file)
    assert "\n" not in str(caught.value)


def test_an_environment_variable_that_is_not_json_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_KAFKA", "{")
    with pytest.raises(SettingsError, match="DRAGOMAN_"):
        load_settings(DragomanSettings)


def test_a_group_that_is_also_given_as_a_single_value_is_refused_by_name() -> None:
    with pytest.raises(
        SettingsError, match=r"kafka\.group_id: kafka is also given as a single value"
    ):
        load_settings(DragomanSettings, options={"kafka": 3, "kafka.group_id": "x"})
