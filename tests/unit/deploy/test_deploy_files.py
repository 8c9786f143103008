"""Tests that the files in deploy/ name only settings, metrics and files that exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from pydantic import BaseModel

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_gateway.settings import GatewaySettings, ServeSettings
from dragoman_worker.settings import WorkerSettings

_ROOT = Path(__file__).parents[3]
_DEPLOY = _ROOT / "deploy"
_EXAMPLE = _DEPLOY / "dragoman.toml"
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_ENGINE_OPTION = re.compile(r"engine\.options\.")


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _setting_names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _setting_names(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _leaf_names(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaf_names(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _uncommented() -> str:
    """Return the example with the settings without a default uncommented."""
    return re.sub(r"^# (\w+ = )", r"\1", _EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_CACHE", raising=False)


def test_the_example_explains_every_setting_and_no_other() -> None:
    explained = {
        name
        for name in _leaf_names(tomllib.loads(_uncommented()))
        if not _ENGINE_OPTION.match(name)
    }
    settings = {*_setting_names(WorkerSettings), *_setting_names(GatewaySettings)}
    assert explained == settings - {"engine.options"}


def test_the_example_shows_the_defaults() -> None:
    settings = load_settings(WorkerSettings, _EXAMPLE)
    given = {"engine.model": settings.engine.model, "worker_id": settings.worker_id}
    assert settings == load_settings(WorkerSettings, None, given)
    # The client's default differs in one setting; the example states it.
    client = load_settings(DragomanSettings, _EXAMPLE, {"connect_timeout_s": 10.0})
    assert client == DragomanSettings()
    assert load_settings(GatewaySettings, _EXAMPLE).serve == ServeSettings()


def test_the_settings_without_a_default_have_valid_examples(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    # A secret and its file exclude each other.
    valid = re.sub(
        r"^(\w*password|url|api_key)_file = .*\n", "", _uncommented(), flags=re.MULTILINE
    )
    file.write_text(valid, encoding="utf-8")
    settings = load_settings(WorkerSettings, file)
    assert settings.worker_id == "gpu-17"
    assert settings.kafka.results_topic == "dragoman.results"
    assert settings.engine.options["max_num_seqs"] == 256
    assert load_settings(GatewaySettings, file).serve.languages == ("de", "en", "fr")


# --- compose --------------------------------------------------------------------------------------


@pytest.fixture
def compose() -> Any:
    return _yaml(_DEPLOY / "compose.yaml")


def _config(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Have Docker Compose itself read a compose file in deploy/, without a daemon."""
    file = folder / "compose.yaml"
    file.write_text(text, encoding="utf-8")
    docker_compose = Path(sys.executable).with_name("docker-compose")
    folder_of_paths = ("--project-directory", str(_DEPLOY))
    command = [
        *(str(docker_compose), "--file", str(file), *folder_of_paths),
        *("--profile", "*", "config", "--quiet"),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_docker_compose_accepts_every_profile(tmp_path: Path) -> None:
    read = _config((_DEPLOY / "compose.yaml").read_text(encoding="utf-8"), tmp_path)
    assert read.stdout + read.stderr == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("stop_grace_period: 60s", "stop_grace: 60s"),
        ("interval: 5s", "interval: 5 seconds"),
        ("condition: service_healthy", "condition: healthy"),
    ],
)
def test_docker_compose_refuses_a_typing_error(right: str, wrong: str, tmp_path: Path) -> None:
    text = (_DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert right in text
    assert _config(text.replace(right, wrong), tmp_path).stderr != ""


def test_containers_set_only_settings_that_exist(
    compose: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("topics", "worker", "worker-echo"):
        environment = compose["services"][name]["environment"]
        kind = DragomanSettings if name == "topics" else WorkerSettings
        known = {f"DRAGOMAN_{path.upper().replace('.', '__')}" for path in _setting_names(kind)}
        assert set(environment) <= known
        with monkeypatch.context() as patch:
            for variable, value in environment.items():
                patch.setenv(variable, re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value))
            settings = load_settings(kind)
        assert settings.kafka.bootstrap_servers == "kafka:19092"


def test_compose_names_the_variable_of_the_model_instead_of_mounting_an_empty_folder(
    compose: Any,
) -> None:
    [volume] = compose["services"]["worker"]["volumes"]
    assert "DRAGOMAN_MODEL-is-not-set" in volume["source"]
    assert volume["bind"] == {"create_host_path": False}


def test_a_container_is_given_longer_than_a_drain_may_take(compose: Any) -> None:
    for name in ("worker", "worker-echo"):
        service = compose["services"][name]
        grace_s = float(service["environment"]["DRAGOMAN_SHUTDOWN__GRACE_S"])
        assert int(service["stop_grace_period"].removesuffix("s")) >= grace_s + 15


def test_the_page_of_a_worker_is_reached_from_the_host_alone(compose: Any) -> None:
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    for name in ("worker", "worker-echo"):
        [port] = compose["services"][name]["ports"]
        assert port.endswith(f":{WorkerSettings.model_fields['http'].default.port}")


def test_the_log_of_every_container_is_rotated(compose: Any) -> None:
    for service in compose["services"].values():
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}


def test_grafana_finds_prometheus_and_the_dashboards(compose: Any) -> None:
    provisioning = _DEPLOY / "grafana" / "provisioning"
    [source] = _yaml(provisioning / "datasources" / "prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = _yaml(provisioning / "dashboards" / "dragoman.yaml")["providers"]
    mounts = dict(one.split(":")[:2] for one in compose["services"]["grafana"]["volumes"])
    [folder] = [host for host, inside in mounts.items() if inside == provider["options"]["path"]]
    assert len(list((_DEPLOY / folder).glob("*.json"))) == 3
    assert {"./grafana/provisioning/dashboards", "./grafana/provisioning/datasources"} <= set(
        mounts
    )


def test_redis_keeps_results_on_disk_and_evicts_none(compose: Any) -> None:
    command = compose["services"]["redis"]["command"]
    assert command[command.index("--appendonly") + 1] == "yes"
    assert command[command.index("--appendfsync") + 1] == "always"
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"


def test_every_service_is_pinned_or_built_from_here(compose: Any) -> None:
    for service in compose["services"].values():
        if "build" in service:
            built = _DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]
            target = service["build"].get("target")
            assert target is None or f" AS {target}\n" in built.read_text(encoding="utf-8")
        else:
            assert re.search(r":v?\d+\.\d+", service["image"])


def test_the_servers_are_of_versions_that_are_tested(compose: Any) -> None:
    page = (_ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    for name in ("kafka", "redis"):
        table = re.search(rf"^\| {name.capitalize()} (\|.*)\n.*\n\| (\|.*)$", page, re.MULTILINE)
        assert table is not None
        versions, states = (
            [cell.strip() for cell in row.split("|")[1:-1]] for row in table.groups()
        )
        version = compose["services"][name]["image"].partition(":")[2].removesuffix("-alpine")
        assert dict(zip(versions, states, strict=True))[version].startswith("tests:")


def test_mounted_files_exist(compose: Any) -> None:
    services = compose["services"]
    volumes = [*services["prometheus"]["volumes"], *services["grafana"]["volumes"]]
    files = [volume.split(":")[0] for volume in volumes if volume.startswith("./")]
    assert len(files) == 5
    assert all((_DEPLOY / file).exists() for file in files)


def test_prometheus_finds_the_workers_by_their_alias_and_port(compose: Any) -> None:
    scrape, gateway = _yaml(_DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]
    [found] = scrape["dns_sd_configs"]
    [other] = gateway["dns_sd_configs"]
    assert set(other["names"]) <= compose["services"].keys()
    assert other["port"] == ServeSettings.model_fields["admin_port"].default
    for name in ("worker", "worker-echo"):
        assert found["names"] == compose["services"][name]["networks"]["default"]["aliases"]
    assert found["port"] == WorkerSettings.model_fields["http"].default.port


# --- Dockerfiles ----------------------------------------------------------------------------------


def _text(name: str) -> str:
    return (_DEPLOY / name).read_text(encoding="utf-8")


def _copies(text: str) -> list[str]:
    """Return what follows COPY in each line of a Dockerfile."""
    return re.findall(r"^COPY (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["Dockerfile.client", "Dockerfile.gateway", "Dockerfile.worker"])
def test_hadolint_finds_nothing_in_an_image(name: str) -> None:
    # Not pinned: Debian keeps one version of tini, and vLLM's image brings the packages of its own.
    ignored = ("--ignore", "DL3008", "--ignore", "DL3013")
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(hadolint), *ignored, str(_DEPLOY / name)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("name", ["Dockerfile.client", "Dockerfile.gateway", "Dockerfile.worker"])
def test_images_run_without_root_in_exec_form(name: str) -> None:
    text = _text(name)
    for stage in re.split(r"^FROM (?!vllm)", text, flags=re.MULTILINE)[1:]:
        assert re.search(r"^USER 10001$", stage, re.MULTILINE)
        assert re.search(r'^ENTRYPOINT \["', stage, re.MULTILINE)


@pytest.mark.parametrize("name", ["Dockerfile.client", "Dockerfile.gateway", "Dockerfile.worker"])
def test_images_hold_every_package_whose_command_they_install(name: str) -> None:
    text = _text(name)
    copied = {Path(source) for line in _copies(text) for source in line.split()[:-1]}
    ignored = (_ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for package in map(Path, _PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]):
        above = {package, *package.parents}
        assert above & copied
        assert not above & set(map(Path, ignored))


@pytest.mark.parametrize("name", ["Dockerfile.client", "Dockerfile.gateway", "Dockerfile.worker"])
def test_images_have_the_extras_that_can_be_switched_on(name: str) -> None:
    text = _text(name)
    [extras] = re.findall(r"^ARG EXTRAS=(\S*)$", text, re.MULTILINE)
    # Tracing and the tokens for Amazon MSK are settings of both sides.
    assert {"otel", "msk"} <= set(extras.split(","))
    assert ("documents" in extras) == (name == "Dockerfile.client")
    assert ("serve" in extras) == (name == "Dockerfile.gateway")
    for extra in extras.split(","):
        assert extra in _PROJECT["project"]["optional-dependencies"]
        assert (_ROOT / "requirements" / f"{extra}.lock").exists()
    for stage in re.split(r"^FROM (?!vllm)", text, flags=re.MULTILINE)[1:]:
        # An argument is known in a stage that names it.
        assert re.search(r"^ARG EXTRAS\b", stage, re.MULTILINE)
        assert re.search(r"\$\{?EXTRAS\b", stage)


def test_vllm_s_image_holds_the_lock_with_its_vllm_and_hashes() -> None:
    stage = _text("Dockerfile.worker").partition(" AS vllm\n")[2]
    assert "--require-hashes -r requirements/worker.lock" in stage
    [version] = re.findall(r"^ARG VLLM_VERSION=(\S+)$", _text("Dockerfile.worker"), re.MULTILINE)
    lock = (_ROOT / "requirements" / "worker.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^([a-z0-9._-]+)==([^ ]+) \\\n    --hash=sha256:", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[a-z0-9]", lock, re.MULTILINE))
    locked = dict(pins)
    assert locked["vllm"] == version
    asked = _PROJECT["project"]["optional-dependencies"]
    for one in map(Requirement, [*asked["worker"], *asked["otel"], *asked["msk"]]):
        assert one.name == "dragoman" or one.specifier.contains(locked[one.name]), one


@pytest.mark.parametrize("name", ["Dockerfile.client", "Dockerfile.gateway", "Dockerfile.worker"])
def test_images_copy_files_that_exist(name: str) -> None:
    text = _text(name)
    for line in _copies(text):
        *sources, _target = line.split()
        assert all((_ROOT / source).exists() for source in sources)
