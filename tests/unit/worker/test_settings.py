"""Tests that every setting of the contract exists and that invalid ones are refused by name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.settings import WorkerSettings

ECHO = {"engine.kind": "echo"}
VLLM = {"engine.kind": "vllm", "engine.model": "m"}


def load(**options: Any) -> WorkerSettings:
    given = {name.replace("__", "."): value for name, value in options.items()}
    return load_settings(WorkerSettings, None, ECHO | given)


def at(settings: Any, name: str) -> Any:
    for part in name.split("."):
        settings = getattr(settings, part)
    return settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.bootstrap_servers", "127.0.0.1:19092"),
        ("kafka.topics", ("one", "two:3")),
        ("kafka.dead_letter_topic", "dead"),
        ("kafka.results_topic", "results"),
        ("kafka.group_id", "g"),
        ("kafka.session_timeout_s", 12.0),
        ("kafka.security_protocol", "SSL"),
        ("kafka.sasl_mechanism", "SCRAM-SHA-512"),
        ("kafka.sasl_plain_username", "u"),
        ("kafka.ssl_check_hostname", False),
        ("redis.url", "rediss://127.0.0.1:1/2"),
        ("redis.key_prefix", "p:"),
        ("redis.live_ttl_s", 600),
        ("redis.durability", "waitaof:1"),
        ("connect_timeout_s", 3.0),
        ("engine.kind", "echo"),
        ("engine.model", "some/model"),
        ("engine.replicas", 3),
        ("engine.gpus", ("0", "3")),
        ("engine.options", {"max_num_seqs": 8}),
        ("engine.prefill_share", 0.125),
        ("engine.exact_lengths", True),
        ("engine.exact_lengths", 0.3),
        ("engine.echo.mode", "identity"),
        ("engine.echo.latency_s", 0.5),
        ("engine.echo.latency_spread", 0.5),
        ("engine.echo.stall_file", Path("stall")),
        ("engine.echo.faults", True),
        ("limits.max_in_flight_jobs", 5),
        ("retry.attempts", 5),
        ("retry.poison_after", 6),
        ("quality.level", "strict"),
        ("quality.max_attempts", 2),
        ("quality.on_fail", "source"),
        ("memory.enabled", True),
        ("memory.max_mb", 1),
        ("memory.ttl_s", 60),
        ("glossary.refresh_s", 0.5),
        ("shutdown.grace_s", 1.0),
        ("supervisor.stuck_after_s", 10.0),
        ("http.host", "127.0.0.2"),
        ("http.port", 0),
        ("log.format", "text"),
    ],
)
def test_every_setting_of_the_contract_can_be_given(name: str, value: Any) -> None:
    assert at(load_settings(WorkerSettings, None, ECHO | {name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.bootstrap_servers", "127.0.0.1:9092"),
        ("kafka.topics", ("dragoman.jobs",)),
        ("kafka.dead_letter_topic", "dragoman.dead-letters"),
        ("kafka.results_topic", None),
        ("redis.key_prefix", "dragoman:"),
        ("redis.live_ttl_s", 7 * 86_400),
        ("connect_timeout_s", 60.0),
        ("engine.prefill_share", 0.0625),
        ("engine.exact_lengths", False),
        ("engine.echo.mode", "tag"),
        ("engine.echo.latency_s", 0.0),
        ("engine.echo.faults", False),
        ("retry.attempts", 3),
        ("retry.poison_after", 4),
        ("quality.level", "off"),
        ("glossary.refresh_s", 5.0),
        ("memory.max_mb", 256),
        ("memory.ttl_s", 30 * 86_400),
        ("http.host", "127.0.0.1"),
        ("http.port", 9464),
    ],
)
def test_the_defaults_are_those_of_the_contract(name: str, value: Any) -> None:
    assert at(load(), name) == value


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({"engine.model": "m"}, "basic"),
        ({"engine.model": "m", "quality.level": "off"}, "off"),
        (ECHO, "off"),
        (ECHO | {"quality.max_attempts": 2}, "off"),
        (ECHO | {"quality.level": "basic"}, "basic"),
        (ECHO | {"quality.level": "strict"}, "strict"),
    ],
)
def test_quality_is_off_with_the_echo_engine_unless_it_is_set(
    options: dict[str, Any], level: str
) -> None:
    assert load_settings(WorkerSettings, None, options).quality.level == level


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"kafka.topcs": "x"}, "kafka.topcs"),
    ({"nothing.at_all": 1}, "nothing"),
    ({"kafka.topics": "a b"}, "kafka.topics"),
    ({"kafka.topics": ""}, "kafka.topics"),
    ({"kafka.session_timeout_s": 0}, "kafka.session_timeout_s"),
    ({"kafka.security_protocol": "TLS"}, "kafka.security_protocol"),
    ({"redis.url": "http://127.0.0.1"}, "redis.url"),
    ({"redis.live_ttl_s": 5}, "redis.live_ttl_s"),
    ({"redis.durability": "always"}, "redis.durability"),
    ({"connect_timeout_s": 0}, "connect_timeout_s"),
    ({"engine.kind": "tgi"}, "engine.kind"),
    ({"engine.replicas": 0}, "engine.replicas"),
    ({"engine.gpus": []}, "engine.gpus"),
    ({"engine.gpus": "none"}, "engine.gpus"),
    ({"engine.gpus": [-1]}, "engine.gpus"),
    ({"engine.gpus": [True]}, "engine.gpus"),
    ({"engine.gpus": "0,,1"}, "engine.gpus"),
    ({"engine.prefill_share": 0.25}, "engine.prefill_share"),
    ({"engine.prefill_share": -0.1}, "engine.prefill_share"),
    ({"engine.echo.latency_spread": 2}, "engine.echo.latency_spread"),
    ({"engine.echo.mode": "loud"}, "engine.echo.mode"),
    ({"limits.engine_oversubscription": 0.1}, "limits.engine_oversubscription"),
    ({"limits.max_tokens": "many"}, "limits.max_tokens"),
    ({"retry.attempts": 0}, "retry.attempts"),
    ({"quality.level": "high"}, "quality.level"),
    ({"glossary.refresh_s": 0}, "glossary.refresh_s"),
    ({"shutdown.grace_s": -1}, "shutdown.grace_s"),
    ({"supervisor.stuck_after_s": 0}, "supervisor.stuck_after_s"),
    (VLLM | {"supervisor.stuck_after_s": 9.9}, "supervisor.stuck_after_s"),
    ({"shutdown.grace_s": float("inf")}, "shutdown.grace_s"),
    ({"http.host": ""}, "http.host"),
    ({"http.port": 70_000}, "http.port"),
    ({"log.format": "xml"}, "log.format"),
]


@pytest.mark.parametrize(("options", "named"), INVALID, ids=[name for _, name in INVALID])
def test_an_invalid_setting_is_named_in_one_line(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(WorkerSettings, None, ECHO | options)
    assert str(caught.value).removeprefix("unknown setting ").startswith(named)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("all", "all"),
        (2, ("2",)),
        ("0, 3", ("0", "3")),
        ([0, "GPU-8a-1f"], ("0", "GPU-8a-1f")),
        ("MIG-GPU-8a/1/0", ("MIG-GPU-8a/1/0",)),
    ],
)
def test_gpus_are_given_as_text_a_number_or_a_list(given: object, names: object) -> None:
    assert load(engine__gpus=given).engine.gpus == names


def test_gpus_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, names in (("all", "all"), ("1", ("1",)), ("0,1", ("0", "1")), ("[2,3]", ("2", "3"))):
        monkeypatch.setenv("DRAGOMAN_ENGINE__GPUS", text)
        assert load_settings(WorkerSettings, None, ECHO).engine.gpus == names


def test_all_invalid_settings_are_named_together() -> None:
    with pytest.raises(SettingsError, match=r"retry\.attempts.*http\.port"):
        load(retry__attempts=0, http__port=-1)


@pytest.mark.parametrize("options", [{}, {"engine.kind": "vllm"}, {"engine.replicas": 1}])
def test_a_missing_model_is_named_with_the_fix(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"^(engine: )?engine\.model is missing.*echo"):
        load_settings(WorkerSettings, None, options)


def test_options_override_the_environment_and_that_overrides_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "worker.toml"
    file.write_text('[engine]\nkind = "echo"\n[http]\nport = 1\n[retry]\nattempts = 7\n')
    settings = load_settings(WorkerSettings, file)
    assert (settings.http.port, settings.retry.attempts) == (1, 7)
    monkeypatch.setenv("DRAGOMAN_HTTP__PORT", "2")
    assert load_settings(WorkerSettings, file).http.port == 2
    settings = load_settings(WorkerSettings, file, {"http.port": 3})
    assert (settings.http.port, settings.retry.attempts) == (3, 7)


def test_engine_options_from_the_environment_are_parsed_as_json(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_ENGINE__OPTIONS", '{"max-num-seqs": "8", "enforce_eager": true}')
    assert load().engine.options == {"max_num_seqs": 8, "enforce_eager": True}
    monkeypatch.delenv("DRAGOMAN_ENGINE__OPTIONS")
    dtype = load_settings(WorkerSettings, None, ECHO | {"engine.options": {"dtype": "bfloat16"}})
    assert dtype.engine.options == {"dtype": "bfloat16"}


def test_secrets_are_hidden_in_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_KAFKA__SASL_PLAIN_PASSWORD", "hunter2")
    settings = load()
    assert "hunter2" not in repr(settings)
    assert settings.kafka.sasl_plain_password is not None
    assert settings.kafka.sasl_plain_password.get_secret_value() == "hunter2"


@pytest.mark.parametrize(
    ("given", "enabled"),
    [
        ({"engine.kind": "echo"}, False),
        ({"engine.kind": "echo", "memory.enabled": True}, True),
        ({"engine.model": "some/model"}, True),
        ({"engine.model": "some/model", "memory.enabled": False}, False),
        ({"engine.model": "some/model", "engine.exact_lengths": True}, False),
    ],
)
def test_memory_is_on_with_vllm_unless_set(given: dict[str, Any], enabled: bool) -> None:
    assert load_settings(WorkerSettings, None, given).memory_enabled is enabled


def test_answers_of_exact_lengths_are_never_remembered() -> None:
    with pytest.raises(SettingsError, match=r"memory\.enabled.*exact_lengths"):
        load(memory__enabled=True, engine__exact_lengths=True)


def test_workers_on_one_machine_have_different_ids() -> None:
    assert str(os.getpid()) in load().worker_id
