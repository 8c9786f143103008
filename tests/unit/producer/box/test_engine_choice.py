"""What the options of a box name, and the settings that its worker gets by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_connections.settings import load_settings
from dragoman_producer.box.engine_choice import choice_of
from dragoman_producer.box.failures import BoxUnusable
from dragoman_producer.box.part_child import to_toml
from dragoman_producer.box.worker_part import worker_environment, worker_part
from dragoman_worker.settings import WorkerSettings


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = tmp_path / "Qwen3-4B"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    return str(folder)


@pytest.mark.parametrize("option", ["model", "hub", "server", "echo", "demo"])
def test_the_worker_accepts_the_settings_of_every_engine(
    option: str, model: str, tmp_path: Path
) -> None:
    choice = choice_of(
        model={"model": model, "hub": "tencent/Hy-MT2-7B"}.get(option),
        server="http://127.0.0.1:8000" if option == "server" else None,
        engine=option if option in {"echo", "demo"} else None,
        profile="qwen3",
        gpus="0,1",
    )
    worker = worker_part(choice, bootstrap="127.0.0.1:1", redis_url="unix:///tmp/r.sock")
    config = tmp_path / "worker.toml"
    config.write_text(to_toml(worker.settings), encoding="utf-8")
    settings = load_settings(WorkerSettings, config)
    kinds = {"server": "openai", "echo": "echo"}
    assert settings.engine.kind == kinds.get(option, "vllm")
    assert settings.kafka.bootstrap_servers == "127.0.0.1:1"
    assert settings.redis.url == "unix:///tmp/r.sock"
    assert settings.engine.profile == "qwen3"
    assert settings.engine.gpus == ("0", "1")


def test_addresses_and_the_model_of_a_deployment_do_not_reach_the_worker_but_other_settings_do(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {
        "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": "kafka:9092",
        "DRAGOMAN_REDIS__KEY_PREFIX": "theirs",
        "DRAGOMAN_ENGINE__KIND": "echo",
        "DRAGOMAN_ENGINE__MODEL": "/models/theirs",
        "DRAGOMAN_LOG__FORMAT": "text",
    }
    own = {
        "DRAGOMAN_ENGINE__API_KEY": "secret",
        "DRAGOMAN_ENGINE__EXACT_LENGTHS": "0.3",
        "DRAGOMAN_ENGINE__OPTIONS": '{"max_num_seqs": 8}',
        "DRAGOMAN_QUALITY__LEVEL": "off",
    }
    for name, value in (others | own).items():
        monkeypatch.setenv(name, value)
    given = worker_environment(choice_of(model=model, server=None, engine=None))
    settings = {name for name in given if name.startswith("DRAGOMAN_") and "__" in name}
    assert settings == {*own}


def test_a_relative_folder_is_the_same_choice_as_its_absolute_path(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(model).parent)
    relative = choice_of(model=Path(model).name, server=None, engine=None)
    assert relative == choice_of(model=model, server=None, engine=None)
    assert worker_environment(relative)["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize("name", ["a", "a/b/c", "../b", "/a/b", "~/x"])
def test_what_is_neither_a_folder_nor_a_name_on_a_hub_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BoxUnusable, match="there is no such folder"):
        choice_of(model=name, server=None, engine=None)


def test_a_folder_without_weights_is_refused_unless_they_are_random(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(model) / "model.safetensors").unlink()
    with pytest.raises(BoxUnusable, match="no weights"):
        choice_of(model=model, server=None, engine=None)
    monkeypatch.setenv("DRAGOMAN_ENGINE__OPTIONS", '{"load_format": "dummy"}')
    assert choice_of(model=model, server=None, engine=None).model == model
