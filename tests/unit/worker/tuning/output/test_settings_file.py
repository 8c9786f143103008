"""Settings file of `tune`: accepted by `--config`, complete and without secrets."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.settings import load_settings
from dragoman_worker.settings import WorkerSettings
from dragoman_worker.tuning.knee import ChosenPoint
from dragoman_worker.tuning.output import settings_file
from dragoman_worker.tuning.stages import Decision
from dragoman_worker.tuning.tuner import Findings

SURVEY = {"jobs": 300, "model": "translator", "limits": {"devices": 1}}
GIVEN: dict[str, Any] = {
    "engine.model": "/models/translator",
    "engine.profile": "chat",
    "engine.options.max_model_len": 2048,
    "engine.options.max_num_seqs": 1024,
    "engine.options.compilation_config": {"level": 3, "sizes": [1, 2]},
    "kafka.topics": ["jobs", "urgent:3"],
    "kafka.sasl_plain_username": "worker",
    "limits.max_tokens": 2000,
    "shutdown.grace_s": 20.0,
    "engine.replicas": "auto",
}


def found(*decisions: Decision) -> Findings:
    choice = ChosenPoint(
        512, "512 sequences write 15,000 tokens/s, 99.0% of the best", degraded=True
    )
    return Findings(SURVEY, choice=choice, decisions=list(decisions))


def reloaded(settings: WorkerSettings, findings: Findings, folder: Path) -> WorkerSettings:
    place = folder / "settings.toml"
    settings_file.write(place, settings, findings)
    return load_settings(WorkerSettings, place)


def test_the_file_has_the_given_and_the_chosen_settings(tmp_path: Path) -> None:
    settings = load_settings(WorkerSettings, None, GIVEN)
    batched = Decision("batched_tokens", "16384: +4.0%", {"max_num_batched_tokens": 16_384})
    again = reloaded(settings, found(batched), tmp_path)
    assert again.engine.options == {
        **settings.engine.options,
        "max_num_seqs": 512,
        "max_num_batched_tokens": 16_384,
    }
    assert again.engine.replicas == "auto"
    assert again.engine.model == "/models/translator"
    assert (again.kafka, again.limits, again.shutdown) == (
        settings.kafka,
        settings.limits,
        settings.shutdown,
    )
    text = (tmp_path / "settings.toml").read_text()
    assert "# Chosen: 512 sequences write 15,000 tokens/s, 99.0% of the best." in text
    assert "# batched_tokens: 16384: +4.0%." in text


def test_replicas_are_an_explicit_number_and_share_the_memory_by_themselves(tmp_path: Path) -> None:
    settings = load_settings(WorkerSettings, None, GIVEN)
    memory = Decision("memory", "0.95: +4%", {"gpu_memory_utilization": 0.95})
    many = Decision("replicas", "3: +20%", {"max_num_seqs": 256}, replicas=3)
    again = reloaded(settings, found(memory, many), tmp_path)
    assert again.engine.replicas == 3
    assert again.engine.options["max_num_seqs"] == 256
    assert "gpu_memory_utilization" not in again.engine.options


def test_one_engine_is_written_only_if_it_was_measured_as_the_best(tmp_path: Path) -> None:
    settings = load_settings(WorkerSettings, None, {**GIVEN, "engine.replicas": 4})
    left_out = Decision("replicas", "left out: not allowed")
    assert reloaded(settings, found(left_out), tmp_path).engine.replicas == 4
    one = Decision("replicas", "1: 2 engines change tokens/s by -3.0%", replicas=1)
    assert reloaded(settings, found(one), tmp_path).engine.replicas == 1
    text = (tmp_path / "settings.toml").read_text()
    assert "# replicas: 1: 2 engines change tokens/s by -3.0%." in text
    assert "# Chosen: 512 sequences" in text


def test_what_was_not_confirmed_is_not_written(tmp_path: Path) -> None:
    settings = load_settings(WorkerSettings, None, GIVEN)
    findings = found(Decision("replicas", "4: +40%", {"max_num_seqs": 192}, 4))
    findings.confirmed = False
    again = reloaded(settings, findings, tmp_path)
    assert (again.engine.replicas, again.engine.options["max_num_seqs"]) == (1, 512)
    assert "+40%" not in (tmp_path / "settings.toml").read_text()


def test_given_settings_are_kept_if_the_chosen_ones_did_no_better(tmp_path: Path) -> None:
    settings = load_settings(WorkerSettings, None, GIVEN)
    findings = found(Decision("replicas", "3: +20%", {"max_num_seqs": 256}, replicas=3))
    findings.keeps_given = True
    again = reloaded(settings, findings, tmp_path)
    assert again.engine == settings.engine


SECRETS: dict[str, Any] = {
    "kafka.sasl_plain_password": "hush-kafka",
    "kafka.ssl_password": "hush-key",
    "redis.url": "redis://:hush-redis@127.0.0.1:6379/0",
    "engine.options.hf_token": "hush-token",
    "engine.options.additional_config": {"s3": {"secretAccessKey": "hush-s3", "region": "eu"}},
    "engine.options.kv_transfer_config": {"peers": ["http://user:hush-peer@host/"]},
}


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hush@127.0.0.1/0",
        "redis+sentinel://127.0.0.1/main?sentinel_username=me&sentinel_password=hush",
        "rediss://127.0.0.1/0?ssl_certfile=a.pem&ssl_keyfile=a.key&ssl_password=hush",
        "unix://me:hush@/run/redis.sock",
    ],
)
def test_no_secret_reaches_the_file_and_each_is_named(tmp_path: Path, url: str) -> None:
    settings = load_settings(WorkerSettings, None, {**GIVEN, **SECRETS, "redis.url": url})
    again = reloaded(settings, found(), tmp_path)
    text = (tmp_path / "settings.toml").read_text()
    assert "hush" not in text
    for name in ("redis.url", "kafka.sasl_plain_password", "engine.options.hf_token"):
        assert f"# Left out, a secret: {name}; it came from --config or --set" in text
    assert "DRAGOMAN_ENGINE__OPTIONS__HF_TOKEN" in text
    assert again.engine.options["additional_config"] == {"s3": {"region": "eu"}}
    assert again.engine.options["max_model_len"] == 2048


def test_a_secret_of_the_environment_is_named_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_ENGINE__OPTIONS__HF_TOKEN", "hush")
    settings = load_settings(WorkerSettings, None, GIVEN)
    assert "hush" in settings.engine.options.values()
    settings_file.write(tmp_path / "settings.toml", settings, found())
    text = (tmp_path / "settings.toml").read_text()
    assert "hush" not in text
    assert "it came from the environment, DRAGOMAN_ENGINE__OPTIONS__HF_TOKEN" in text
    given_again = load_settings(WorkerSettings, tmp_path / "settings.toml")
    assert "hush" in given_again.engine.options.values()
    assert given_again.engine.options["max_num_seqs"] == 512


def test_a_url_without_a_password_stays(tmp_path: Path) -> None:
    url = "redis://127.0.0.1:6380/1"
    settings = load_settings(WorkerSettings, None, {**GIVEN, "redis.url": url})
    assert reloaded(settings, found(), tmp_path).redis.url == url


def test_settings_of_the_environment_are_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_ENGINE__PROFILE", "chat")
    settings = load_settings(WorkerSettings, None, {"engine.model": "/models/translator"})
    monkeypatch.delenv("DRAGOMAN_ENGINE__PROFILE")
    assert reloaded(settings, found(), tmp_path).engine.profile == "chat"


leaves = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=5))
def test_every_table_is_read_back_unchanged(tree: dict[str, Any]) -> None:
    assert tomllib.loads(settings_file.document(tree)) == tree
