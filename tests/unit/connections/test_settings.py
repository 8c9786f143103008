"""The settings that client and worker share come from file, environment and options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from dragoman_connections.settings import (
    DragomanSettings,
    KafkaSettings,
    RedisSettings,
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


@pytest.mark.parametrize("setting", ["dead_letter_topic", "results_topic"])
def test_a_worker_does_not_write_where_jobs_come_from(setting: str) -> None:
    with pytest.raises(SettingsError, match=rf"kafka: {setting} bulk is also one of topics"):
        load_settings(
            DragomanSettings, None, {"kafka.topics": "urgent:4,bulk", f"kafka.{setting}": "bulk"}
        )


def test_results_and_dead_letters_have_topics_of_their_own() -> None:
    both = {"kafka.dead_letter_topic": "out", "kafka.results_topic": "out"}
    with pytest.raises(SettingsError, match="results_topic out is also dead_letter_topic"):
        load_settings(DragomanSettings, None, both)


@pytest.mark.parametrize("name", ["", " ", "a b", "é", "x" * 250])
@pytest.mark.parametrize("setting", ["dead_letter_topic", "results_topic"])
def test_a_topic_that_is_written_is_a_name_of_kafka_s_letters(setting: str, name: str) -> None:
    with pytest.raises(SettingsError, match=rf"kafka\.{setting}: .* is not the name of a topic"):
        load_settings(DragomanSettings, None, {f"kafka.{setting}": name})


def test_a_time_to_live_that_redis_cannot_count_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^redis\.live_ttl_s: "):
        load_settings(DragomanSettings, None, {"redis.live_ttl_s": 10**17})


def test_an_empty_group_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^kafka\.group_id: "):
        load_settings(DragomanSettings, None, {"kafka.group_id": ""})


@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
def test_a_number_that_is_not_finite_is_refused_by_name(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONNECT_TIMEOUT_S", value)
    monkeypatch.setenv("DRAGOMAN_KAFKA__SESSION_TIMEOUT_S", value)
    with pytest.raises(SettingsError, match=r"kafka\.session_timeout_s: .*connect_timeout_s: "):
        load_settings(DragomanSettings)


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


@pytest.mark.parametrize(
    "content",
    [
        b"[kafka\n",
        b"\xff\xfe",
        b"kafka = 1\nkafka = 2\n",
        b"kafka = " + b"9" * 5_000,
        b"kafka = " + b"[" * 50_000,
    ],
    ids=["open", "utf-16", "twice", "digits", "nested"],
)
def test_a_file_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"broken\.toml") as caught:
        load_settings(DragomanSettings, file)
    assert "\n" not in str(caught.value)


def test_a_folder_as_a_settings_file_is_refused_without_a_number_of_the_system(
    tmp_path: Path,
) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(DragomanSettings, tmp_path)
    assert str(caught.value) == f"--config {tmp_path}: Is a directory; give a readable file"


def test_the_byte_order_mark_of_an_editor_is_not_part_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "marked.toml"
    file.write_text('[kafka]\ngroup_id = "g"\n', encoding="utf-8-sig")
    assert load_settings(DragomanSettings, file).kafka.group_id == "g"


def test_an_environment_variable_that_is_not_json_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_KAFKA", "{")
    with pytest.raises(
        SettingsError, match=r"DRAGOMAN_KAFKA .*must be JSON.* DRAGOMAN_KAFKA__NAME"
    ):
        load_settings(DragomanSettings)


def test_a_single_value_for_a_group_is_refused_without_names_of_the_program() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(DragomanSettings, options={"kafka": "localhost"})
    assert str(caught.value) == "kafka is a group of settings, not one value; set kafka.NAME"


def test_a_list_of_topics_that_is_no_json_is_refused_with_what_to_give() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(DragomanSettings, options={"kafka.topics": '["a"'})
    assert str(caught.value) == "kafka.topics: give names with commas, or a list in JSON"


def test_a_group_that_is_also_given_as_a_single_value_is_refused_by_name() -> None:
    with pytest.raises(
        SettingsError, match=r"kafka\.group_id: kafka is also given as a single value"
    ):
        load_settings(DragomanSettings, options={"kafka": 3, "kafka.group_id": "x"})


# --- secrets -------------------------------------------------------------------------------------

SECRETS = ("kafka.sasl_plain_password", "kafka.ssl_password", "redis.password", "redis.url")


def test_every_secret_can_be_read_from_a_file() -> None:
    for model, prefix in ((KafkaSettings, "kafka"), (RedisSettings, "redis")):
        for name, field in model.model_fields.items():
            if SecretStr in get_args(field.annotation):
                assert f"{prefix}.{name}" in SECRETS
                assert f"{name}_file" in model.model_fields


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_s_file_is_read_without_its_line_break(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "redis://ann:se cret@127.0.0.1" if name == "redis.url" else " se cret\t"
    file = tmp_path / "secret"
    file.write_text(f"{secret}\r\n")
    monkeypatch.setenv(f"DRAGOMAN_{name.replace('.', '__').upper()}_FILE", str(file))
    settings = load_settings(DragomanSettings)
    group, option = name.split(".")
    found = getattr(getattr(settings, group), option)
    assert (found.get_secret_value() if isinstance(found, SecretStr) else found) == secret
    assert "se cret" not in repr(settings)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_and_its_file_are_not_both_taken(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hidden")
    both = {name: "redis://hidden@x", f"{name}_file": str(file)}
    option = name.partition(".")[2]
    with pytest.raises(SettingsError, match=f"give only one of {option} and {option}_file") as no:
        load_settings(DragomanSettings, None, both)
    assert "hidden" not in str(no.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"\r\n", "is empty"),
        (b"\xff", "is not UTF-8"),
        (b"\xef\xbb\xbf\n", "is empty"),
        ("hidden".encode("utf-16"), "is not UTF-8"),
        ("hidden".encode("utf-16-be"), "contains a NUL"),
        (b"x" * 65_537, "larger than 65,536 bytes"),
    ],
)
def test_an_unusable_secret_file_is_named_with_its_setting(
    content: bytes | None, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=f"redis: password_file: {file}: .*{says}"):
        load_settings(DragomanSettings, None, {"redis.password_file": str(file)})


@pytest.mark.parametrize("path", ["/dev/zero", "/", "a\0b"])
def test_a_path_that_is_no_secret_s_file_is_refused(path: str) -> None:
    with pytest.raises(SettingsError, match="password_file"):
        load_settings(DragomanSettings, None, {"redis.password_file": path})


@pytest.mark.timeout(60)
def test_a_pipe_is_no_secret_s_file_and_blocks_no_start(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SettingsError, match=r"password_file: .*: it is not a regular file"):
        load_settings(DragomanSettings, None, {"redis.password_file": str(pipe)})


def test_a_file_of_a_gigabyte_is_refused_without_being_read(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as large:
        large.truncate(1 << 30)  # sparse
    with pytest.raises(SettingsError, match=r"larger than 65,536 bytes"):
        load_settings(DragomanSettings, None, {"redis.password_file": str(file)})


def test_the_byte_order_mark_of_an_editor_is_not_part_of_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hidden\r\n", encoding="utf-8-sig", newline="")
    settings = load_settings(DragomanSettings, None, {"redis.password_file": str(file)})
    assert settings.redis.password is not None
    assert settings.redis.password.get_secret_value() == "hidden"


def test_a_file_that_is_no_path_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"redis\.password_file"):
        load_settings(DragomanSettings, None, {"redis.password_file": 7})


# --- the user of Redis ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h:1/2", "redis://a%2Fb:p%40%3A%23%20@h:1/2"),
        ("rediss://h:1", "rediss://a%2Fb:p%40%3A%23%20@h:1/0"),
        ("redis+cluster://h:1", "redis://a%2Fb:p%40%3A%23%20@h:1/0"),
        ("redis+sentinel://h:1/svc", "redis://a%2Fb:p%40%3A%23%20@h:1/0"),
    ],
)
def test_the_user_of_redis_is_taken_as_it_is(url: str, expected: str) -> None:
    redis = RedisSettings.model_validate({"url": url, "username": "a/b", "password": "p@:# "})
    assert redis.address.url_of(redis.address.hosts[0]) == expected
    assert "p@" not in repr(redis)
    assert "p%40" not in repr(redis.address)


def test_a_password_alone_is_the_default_user_s() -> None:
    redis = RedisSettings.model_validate({"url": "unix:///run/redis", "password": "x"})
    assert redis.address.url_of() == "unix://:x@/run/redis"


def test_a_user_in_the_url_and_in_the_settings_is_refused() -> None:
    both = {"redis.url": "redis://ann:hidden@h", "redis.password": "hidden"}
    with pytest.raises(SettingsError, match="either in url or by username and password") as no:
        load_settings(DragomanSettings, None, both)
    assert "hidden" not in str(no.value)


def test_a_misspelled_group_is_refused_and_not_taken_for_that_of_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[kafak]\ngroup_id = "g"\n')
    with pytest.raises(SettingsError, match=r"^unknown setting kafak \(did you mean kafka\?\)$"):
        load_settings(DragomanSettings, file)
    monkeypatch.setenv("DRAGOMAN_KAFAK__GROUP_ID", "g")
    with pytest.raises(SettingsError, match=r"DRAGOMAN_KAFAK__GROUP_ID \(did you mean DRAGOMAN_K"):
        load_settings(DragomanSettings)


def test_variables_of_other_programs_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT_9464_TCP", "tcp://10.0.0.1:9464")  # by Kubernetes
    load_settings(DragomanSettings)


def test_a_misspelled_setting_is_answered_with_the_nearest_or_with_all_of_its_group() -> None:
    with pytest.raises(SettingsError, match=r"kafka\.topic \(did you mean kafka\.topics\?\)"):
        load_settings(DragomanSettings, options={"kafka.topic": "a"})
    with pytest.raises(SettingsError, match=r"unknown setting redis\.xyz; redis has url, url_file"):
        load_settings(DragomanSettings, options={"redis.xyz": "a"})
