"""Tests of the Helm chart, rendered by Helm's own library and validated for Kubernetes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import helm_python as helm
import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject, TriggerAuthentication
from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule

from dragoman_connections.settings import DragomanSettings, load_settings
from dragoman_gateway.settings import GatewaySettings, ServeSettings
from dragoman_worker.process.supervisor import MARGIN_S
from dragoman_worker.settings import WorkerSettings
from support import ci_scripts as ci

_ROOT = Path(__file__).parents[3]
_CHARTS = _ROOT / "deploy" / "chart"
_CHART = _CHARTS / "dragoman"
_EXAMPLES = sorted((_CHARTS / "examples").glob("*.yaml"))
_MODELS: dict[str, Any] = {
    "ScaledObject": ScaledObject,
    "TriggerAuthentication": TriggerAuthentication,
    "PodMonitor": PodMonitor,
    "PrometheusRule": PrometheusRule,
}
_STRIMZI = {"KafkaTopic", "KafkaUser"}  # no schema of theirs is in a package
_VERSIONS = [f"1.{minor}" for minor in range(31, 38)]
_ECHO: dict[str, Any] = {"settings": {"engine": {"kind": "echo"}}}

_IMAGES: dict[str, Any] = {
    name: {"repository": f"registry.example.org/dragoman-{image}"}
    for name, image in {
        "image": "worker",
        "clientImage": "client",
        "gatewayImage": "gateway",
    }.items()
}

Object = dict[str, Any]
_Settings = TypeVar("_Settings", bound=DragomanSettings)


@pytest.fixture(scope="module")
def chart() -> Iterator[helm.Chart]:
    with helm.Chart.load(_CHART) as loaded:
        yield loaded


def _rendered(chart: helm.Chart, values: Object, name: str = "rel") -> list[Object]:
    """Return the objects of values, with images that can be pulled unless the values name some."""
    return _of_values(chart, {**_IMAGES, **values}, name)


def _of_values(chart: helm.Chart, values: Object, name: str = "rel") -> list[Object]:
    chart.validate_schema(values)
    files = chart.render(values, name=name, namespace="ns")
    texts = [text for file, text in files.items() if file.endswith(".yaml")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def _values(file: Path) -> Object:
    return helm.values_from_yaml(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rendered(chart: helm.Chart) -> dict[str, list[Object]]:
    """Return the objects of every example."""
    return {file.stem: _of_values(chart, _values(file)) for file in _EXAMPLES}


@pytest.fixture(params=[file.stem for file in _EXAMPLES])
def objects(request: pytest.FixtureRequest, rendered: dict[str, list[Object]]) -> list[Object]:
    return rendered[request.param]


def _of(objects: list[Object], kind: str) -> list[Object]:
    return [one for one in objects if one["kind"] == kind]


def _pods(objects: list[Object]) -> list[Object]:
    return [one["spec"]["template"]["spec"] for one in objects if "template" in one.get("spec", {})]


def _environment(pod: Object) -> dict[str, str]:
    [container] = pod["containers"]
    return {one["name"]: one.get("value", "") for one in container["env"]}


def _loaded(pod: Object, monkeypatch: pytest.MonkeyPatch) -> WorkerSettings:
    return _loaded_as(WorkerSettings, pod, monkeypatch)


def _loaded_as(kind: type[_Settings], pod: Object, monkeypatch: pytest.MonkeyPatch) -> _Settings:
    with monkeypatch.context() as patch:
        for name, value in _environment(pod).items():
            if value:  # what a Secret gives is not known here
                patch.setenv(name, value)
        if "SASL" in _environment(pod).get("DRAGOMAN_KAFKA__SECURITY_PROTOCOL", ""):
            patch.setenv("DRAGOMAN_KAFKA__SASL_PLAIN_PASSWORD", "from the Secret")
            patch.setenv("DRAGOMAN_REDIS__PASSWORD", "from the Secret")
        return load_settings(kind)


# --- valid for the cluster ------------------------------------------------------------------------


def test_the_eight_examples_are_there() -> None:
    assert [file.stem for file in _EXAMPLES] == [
        *("airgapped", "echo", "eight-gpus", "gateway", "keda", "one-gpu", "server", "tls-sasl"),
    ]


@pytest.mark.parametrize("version", _VERSIONS)
def test_objects_are_valid_for_kubernetes(rendered: dict[str, list[Object]], version: str) -> None:
    seen = 0
    for objects in rendered.values():
        for one in objects:
            if one["kind"] not in _MODELS.keys() | _STRIMZI:
                kubernetes_validate.validate(one, version, strict=True)
                seen += 1
    assert seen > 15


def test_objects_are_valid_for_keda_and_the_prometheus_operator(
    rendered: dict[str, list[Object]],
) -> None:
    kinds = set()
    for objects in rendered.values():
        for one in objects:
            if one["kind"] in _MODELS:
                _MODELS[one["kind"]].model_validate(one)
                kinds.add(one["kind"])
    assert kinds == set(_MODELS)


def test_names_are_unique_and_short_enough_for_labels(
    chart: helm.Chart, rendered: dict[str, list[Object]]
) -> None:
    long = _rendered(
        chart,
        {**_ECHO, "workers": {"a-class-of-20-letter": {}}, "hooks": {"topics": {"enabled": True}}},
        name="a-release-with-a-very-long-name-of-53-characters-xxxx",
    )
    for objects in [*rendered.values(), long]:
        names = [(one["kind"], one["metadata"]["name"]) for one in objects]
        assert len(set(names)) == len(names)
        assert all(len(name) <= 63 for kind, name in names if kind != "KafkaTopic")


def test_helm_lint_finds_nothing() -> None:
    report = helm.lint(_CHART, _ECHO, strict=True)
    assert [one for one in report["messages"] if one["severity"] > 1] == []
    assert report["errors"] == []


def test_the_chart_installs_the_version_of_the_project(chart: helm.Chart) -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart.metadata["appVersion"] == chart.version == project["version"]


def test_the_notes_name_the_topic_and_the_pods(chart: helm.Chart) -> None:
    notes = chart.render(_values(_CHARTS / "examples" / "keda.yaml"), name="rel")[
        "dragoman/templates/NOTES.txt"
    ]
    assert "rel-dragoman reads dragoman.jobs of kafka.kafka:9092" in notes
    assert "0 to 8 pods, one per 105000 waiting jobs" in notes


# --- settings -------------------------------------------------------------------------------------


def test_the_environment_is_known_to_the_settings(
    objects: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ci.script("chart")
    known = {f"DRAGOMAN_{name.upper().replace('.', '__')}" for name in script.setting_names()}
    known |= {f"DRAGOMAN_SERVE__{name.upper()}" for name in ServeSettings.model_fields}
    made = {"DRAGOMAN_WORKER_ID", "DRAGOMAN_HTTP__HOST", "DRAGOMAN_HTTP__PORT"}
    for pod in _pods(objects):
        given = {name for name in _environment(pod) if name.startswith("DRAGOMAN_")}
        assert given <= known | made
        names = [one["name"] for one in pod["containers"][0]["env"]]
        assert len(set(names)) == len(names)
        if pod["containers"][0]["name"] == "gateway":
            _loaded_as(GatewaySettings, pod, monkeypatch)
        elif pod["containers"][0]["name"] != "topics":
            _loaded(pod, monkeypatch)


def test_every_kind_of_value_reaches_the_settings(
    chart: helm.Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = ['"', "\\", "${X}", "{{ x }}", "a: b #c", "ü 中 \u200b", "\n", "'", "%s", "- a", "{}"]
    settings: Object = {
        "kafka": {"topics": ["urgent:4", "bulk:1"], "results_topic": None},
        "redis": {"live_ttl_s": 604_800, "key_prefix": "".join(hostile)},
        "engine": {
            "kind": "echo",
            "gpus": [0, 1],
            "replicas": 3,
            "options": {"max_num_seqs": 1_048_576, "a": 0.92, "b": True, "c": {"d": hostile}},
        },
        "memory": {"enabled": True},
        "limits": {"max_in_flight_bytes": 67_108_864, "engine_oversubscription": 1.25},
    }
    [pod] = _pods(_rendered(chart, {"settings": settings}))
    loaded = _loaded(pod, monkeypatch)
    assert loaded.kafka.topics == ("urgent:4", "bulk:1")
    assert loaded.redis.live_ttl_s == 604_800
    assert loaded.redis.key_prefix == "".join(hostile)
    assert loaded.engine.gpus == ("0", "1")
    assert loaded.engine.replicas == 3
    assert loaded.engine.options == settings["engine"]["options"]
    assert loaded.memory.enabled is True
    assert loaded.limits.max_in_flight_bytes == 67_108_864
    assert loaded.limits.engine_oversubscription == 1.25


def test_a_secret_setting_comes_from_its_secret(rendered: dict[str, list[Object]]) -> None:
    [pod] = _pods(rendered["tls-sasl"])
    sources = {one["name"]: one.get("valueFrom") for one in pod["containers"][0]["env"]}
    assert sources["DRAGOMAN_KAFKA__SASL_PLAIN_PASSWORD"] == {
        "secretKeyRef": {"name": "rel-dragoman", "key": "password"}
    }
    assert "secretKeyRef" in sources["DRAGOMAN_REDIS__PASSWORD"]


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 2}, "replica"),
        ({"settings": {"kafka": {"group": "x"}}}, "group"),
        ({"settings": {"quality": {"level": "strickt"}}}, "level"),
        ({"settings": {"retry": {"attempts": 99}}}, "attempts"),
        ({"settings": {"kafka": {"sasl_plain_password": "x"}}}, "sasl_plain_password"),
        ({"settings": {"redis": {"password": "x"}}}, "password"),
        ({"settings": {"http": {"port": 1}}}, "http"),
        ({"secretSettings": {"kafka.pasword": {"name": "a", "key": "b"}}}, "kafka.pasword"),
        ({"secretSettings": {"redis.url": {"name": "a"}}}, "key"),
        ({"settings": {"kafka": {"topics": []}}}, "topics"),
        ({"extraEnv": [{"name": "DRAGOMAN_KAFKA__GROUP", "value": "x"}]}, "extraEnv"),
        ({"fullnameOverride": "My_Name"}, "fullnameOverride"),
        ({"gpu": {"count": "one"}}, "count"),
        ({"keda": {"maxReplica": 3}}, "maxReplica"),
        ({"keda": {"kafkaVersion": "4"}}, "kafkaVersion"),
        ({"stopMarginSeconds": 5}, "stopMarginSeconds"),
        ({"shm": {"size": "8 GB"}}, "size"),
        ({"mounts": {"tls": {"secret": "a", "path": "etc"}}}, "path"),
        ({"workers": {"Urgent!": {}}}, "Urgent!"),
        ({"workers": {"urgent": {"strimzi": {}}}}, "strimzi"),
        ({"prometheusRule": {"disabled": ["DragomanStuk"]}}, "disabled"),
        ({"disabledAlerts": ["DragomanBehnd"]}, "disabledAlerts"),
        ({"image": {"digest": "sha256:abc"}}, "digest"),
    ],
)
def test_a_typing_error_is_refused_by_name(chart: helm.Chart, values: Object, named: str) -> None:
    with pytest.raises(helm.HelmValuesError, match=re.escape(named)):
        chart.validate_schema({**_ECHO, **values})


def _by_strimzi(**kafka: str) -> Object:
    """Return values with a KafkaUser, and settings of Kafka beside those that it needs."""
    settings = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", **kafka}
    return {
        "settings": {"engine": {"kind": "echo"}, "kafka": settings},
        "strimzi": {"enabled": True, "cluster": "c", "user": {"enabled": True}},
    }


_TWO_GROUPS = {
    "workers": {
        "a": {"settings": {"kafka": {"topics": ["one"]}}},
        "b": {"settings": {"kafka": {"topics": ["two"]}}},
    }
}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"settings": {}}, "give a model"),
        ({"keda": None}, "keda: null is not a value"),
        (
            {
                "settings": {"engine": {"kind": "echo"}, "redis": {"url": "redis://r"}},
                "secretSettings": {"redis.url": {"name": "a", "key": "b"}},
            },
            "redis.url is also in settings",
        ),
        ({"mounts": {"tls": {"secret": "a", "path": "/home/dragoman/"}}}, "is at /home/dragoman/"),
        ({"model": {"existingClaim": "a", "hostPath": "/b"}}, "give one of existingClaim"),
        ({"keda": {"enabled": True}}, "keda.jobsPerSecond"),
        (
            {"keda": {"enabled": True, "jobsPerSecond": 1, "minReplicas": 3, "maxReplicas": 2}},
            "keda.maxReplicas",
        ),
        (
            {
                "settings": {
                    "engine": {"kind": "echo"},
                    "kafka": {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"},
                },
                "keda": {"enabled": True, "jobsPerSecond": 1},
            },
            "keda.authenticationRef",
        ),
        (
            {"strimzi": {"enabled": True, "cluster": "c"}, "hooks": {"topics": {"enabled": True}}},
            "hooks.topics.enabled: strimzi makes the topics",
        ),
        ({"disabledAlerts": ["DragomanBehind"]}, "disabledAlerts: enable podMonitor"),
        (_by_strimzi(sasl_plain_username="dragoman"), "the KafkaUser is named rel-dragoman"),
        (_by_strimzi(sasl_mechanism="PLAIN"), "settings.kafka.sasl_mechanism: give SCRAM-SHA-512"),
        ({"mounts": {"tls": {"path": "/tls"}}}, "mounts.tls: give one of secret and configMap"),
        ({"strimzi": {"enabled": True}}, "strimzi.cluster"),
        (_TWO_GROUPS, "workers.b: settings.kafka.group_id"),
    ],
)
def test_an_impossible_combination_is_refused_with_what_to_give(
    chart: helm.Chart, values: Object, message: str
) -> None:
    with pytest.raises(helm.HelmRenderError, match=re.escape(message)):
        _rendered(chart, {**_ECHO, **values})


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "image.repository: dragoman-worker is in no registry; build deploy/Dockerfile.worker"),
        ({"hooks": {"topics": {"enabled": True}}}, "clientImage.repository: dragoman-client"),
        ({"gateway": {"enabled": True}}, "gatewayImage.repository: dragoman-gateway"),
    ],
)
def test_an_image_that_no_registry_has_is_refused(
    chart: helm.Chart, values: Object, named: str
) -> None:
    image = {} if not values else {"image": _IMAGES["image"]}
    with pytest.raises(helm.HelmRenderError, match=re.escape(named)):
        _of_values(chart, {**_ECHO, **image, **values})


def test_an_image_that_the_nodes_have_needs_no_registry(chart: helm.Chart) -> None:
    assert _of_values(chart, {**_ECHO, "image": {"pullPolicy": "Never"}})


_PASSED_ON = {"strategy", "podSecurityContext", "securityContext", "resources", "dashboards"}
"""Groups that Kubernetes reads as they are, from which null removes a default."""


def _given(tree: Object, name: str = "") -> Iterator[str]:
    """Yield the dotted names of the defaults that are neither empty nor switches."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _given(value, f"{name}{key}.")
        elif not isinstance(value, bool) and value not in ("", []):
            yield f"{name}{key}"


_GIVEN = [
    name
    for name in _given(_values(_CHART / "values.yaml"))
    if name.split(".", maxsplit=1)[0] not in _PASSED_ON
    and not name.startswith("gateway.resources.")
]


@pytest.mark.parametrize("name", _GIVEN)
def test_null_in_place_of_a_default_is_refused_by_name(chart: helm.Chart, name: str) -> None:
    assert len(_GIVEN) > 30
    values: Any = None
    for part in reversed(name.split(".")):
        values = {part: values}
    with pytest.raises(helm.HelmRenderError, match=re.escape(f"{name}: null is not a value")):
        _rendered(chart, {**_ECHO, **values})


@pytest.mark.parametrize("topic", ["1e3", "on", "2026-01-01", "0x10", "null"])
def test_a_topic_that_looks_like_another_type_stays_its_name(chart: helm.Chart, topic: str) -> None:
    settings = {**_ECHO["settings"], "kafka": {"topics": [topic]}}
    strimzi = {"enabled": True, "cluster": "kafka"}
    objects = _rendered(chart, {"settings": settings, "strimzi": strimzi})
    topics = {
        one["spec"]["topicName"]: one["metadata"]["name"] for one in _of(objects, "KafkaTopic")
    }
    assert topics[topic] == topic


# --- relations ------------------------------------------------------------------------------------


@pytest.mark.parametrize("grace_s", [0, 25, 90.5, 3600])
def test_kubernetes_waits_longer_than_a_drain_and_the_stop_of_the_engine(
    chart: helm.Chart, grace_s: float
) -> None:
    settings = {"engine": {"kind": "echo"}, "shutdown": {"grace_s": grace_s}}
    [pod] = _pods(_rendered(chart, {"settings": settings}))
    assert pod["terminationGracePeriodSeconds"] >= grace_s + MARGIN_S + 15


@pytest.mark.parametrize("start_s", [1, 601, 1800, 7200.5])
def test_a_startup_probe_waits_longer_than_a_start_may_take(
    chart: helm.Chart, start_s: float
) -> None:
    settings = {"engine": {"kind": "echo"}, "supervisor": {"start_within_s": start_s}}
    [deployment] = _of(_rendered(chart, {"settings": settings}), "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > start_s
    assert deployment["spec"]["progressDeadlineSeconds"] > start_s


def test_the_probes_are_those_of_the_documentation(objects: list[Object]) -> None:
    for deployment in _of(objects, "Deployment"):
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        live, ready = container["livenessProbe"], container["readinessProbe"]
        assert live["httpGet"]["path"] == "/livez"
        repairs_itself_s, failures = (120, 1) if container["name"] == "gateway" else (600, 2)
        assert live["periodSeconds"] * live["failureThreshold"] == repairs_itself_s
        assert (ready["httpGet"]["path"], ready["failureThreshold"]) == ("/readyz", failures)


def test_pods_run_without_root_and_rights_on_a_read_only_root(objects: list[Object]) -> None:
    for pod in _pods(objects):
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
        assert pod["automountServiceAccountToken"] is False
        # A Service named dragoman would give the pod DRAGOMAN_... variables.
        assert pod["enableServiceLinks"] is False
        writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
        assert {"/tmp", "/home/dragoman"} <= writable  # noqa: S108  inside the pod
        assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}


def test_a_model_comes_from_a_claim_a_path_or_an_image(chart: helm.Chart) -> None:
    for source, volume in (
        (
            {"existingClaim": "models"},
            {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
        ),
        ({"hostPath": "/models"}, {"hostPath": {"path": "/models", "type": "Directory"}}),
        ({"image": "m:1"}, {"image": {"reference": "m:1", "pullPolicy": "IfNotPresent"}}),
    ):
        [deployment] = _of(_rendered(chart, {"model": source, "gpu": {"count": 1}}), "Deployment")
        pod = deployment["spec"]["template"]["spec"]
        assert {"name": "model", **volume} in pod["volumes"]
        assert _environment(pod)["DRAGOMAN_ENGINE__MODEL"] == "/model"
        kubernetes_validate.validate(deployment, "1.37", strict=True)


def test_gpus_come_with_shared_memory_of_all_processes(rendered: dict[str, list[Object]]) -> None:
    for pod in _pods(_of(rendered["eight-gpus"], "Deployment")):
        assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 8
        shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}}
        assert shm in pod["volumes"]


def test_a_priority_class_has_its_own_topic_group_and_pods(
    rendered: dict[str, list[Object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployments = _of(rendered["eight-gpus"], "Deployment")
    found = {}
    for one in deployments:
        settings = _loaded(one["spec"]["template"]["spec"], monkeypatch)
        found[settings.kafka.group_id] = settings.kafka.topics
        assert settings.engine.options["tensor_parallel_size"] == 8
    assert found == {
        "dragoman-urgent": ("dragoman.urgent",),
        "dragoman-bulk": ("dragoman.bulk",),
    }
    selectors = [json.dumps(one["spec"]["selector"]) for one in deployments]
    assert len(set(selectors)) == 2


def test_the_rules_are_the_alerts_without_those_left_out(
    chart: helm.Chart, rendered: dict[str, list[Object]]
) -> None:
    source = yaml.safe_load((_CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    [rule] = _of(rendered["one-gpu"], "PrometheusRule")
    assert rule["spec"]["groups"] == source["groups"]
    without = {"enabled": True, "disabled": ["DragomanBehind"]}
    [fewer] = _of(_rendered(chart, {**_ECHO, "prometheusRule": without}), "PrometheusRule")
    left = [one for one in source["groups"][0]["rules"] if one.get("alert") != "DragomanBehind"]
    assert fewer["spec"]["groups"][0]["rules"] == left


@pytest.mark.parametrize(
    ("base", "page"),
    [
        ("https://docs.example.org/dragoman/", "runbooks/DragomanNoWorker.html"),
        ("https://github.com/o/r/blob/v1.2.3/docs", "runbooks/DragomanNoWorker.md"),
    ],
)
def test_a_runbook_is_a_link_into_a_site_or_a_repository(
    chart: helm.Chart, base: str, page: str
) -> None:
    based = {"enabled": True, "runbookBase": base}
    [linked] = _of(_rendered(chart, {**_ECHO, "prometheusRule": based}), "PrometheusRule")
    rules = {one.get("alert"): one for one in linked["spec"]["groups"][0]["rules"]}
    link = rules["DragomanNoWorker"]["annotations"]["runbook_url"]
    assert link == f"{base.rstrip('/')}/{page}"


def test_the_alert_on_keda_s_metrics_names_the_scaled_objects(
    rendered: dict[str, list[Object]],
) -> None:
    source = (_CHART / "files" / "keda-alerts.yaml").read_text(encoding="utf-8")
    [rule] = _of(rendered["keda"], "PrometheusRule")
    [scaled] = _of(rendered["keda"], "ScaledObject")
    named = source.replace(".*dragoman.*", scaled["metadata"]["name"])
    assert rule["spec"]["groups"][1:] == yaml.safe_load(named)["groups"]


def test_an_alert_is_left_out_for_one_class_of_workers(
    rendered: dict[str, list[Object]], tmp_path: Path
) -> None:
    [rule] = _of(rendered["eight-gpus"], "PrometheusRule")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]), encoding="utf-8")
    monitors = [one["metadata"]["name"] for one in _of(rendered["eight-gpus"], "PodMonitor")]
    series = []
    for name in monitors:
        labels = f'job="ns/{name}", instance="i", replica="0"'
        series += [
            {"series": f"dragoman_lag_jobs{{{labels}}}", "values": "36000x120"},
            {"series": f"dragoman_jobs_in_flight{{{labels}}}", "values": "500x120"},
            {"series": f"dragoman_jobs_total{{{labels}}}", "values": "0+600x120"},
        ]
    fires = [
        {
            "labels": 'ALERTS{alertname="DragomanBehind", alertstate="firing", '
            'job="ns/rel-dragoman-urgent", severity="ticket"}',
            "value": 1,
        }
    ]
    firing = 'ALERTS{alertname="DragomanBehind", alertstate="firing"}'
    case = {
        "interval": "1m",
        "input_series": series,
        "promql_expr_test": [{"expr": firing, "eval_time": "60m", "exp_samples": fires}],
    }
    cases = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump(cases), encoding="utf-8")
    promtool = shutil.which("promtool")
    assert promtool is not None, "make services"
    command = [promtool, "test", "rules", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_dashboards_arrive_as_they_are(rendered: dict[str, list[Object]]) -> None:
    found: dict[str, str] = {}
    for one in _of(rendered["one-gpu"], "ConfigMap"):
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        found |= one["data"]
    files = (_CHART / "files" / "dashboards").iterdir()
    assert found == {f"dragoman-{file.name}": file.read_text(encoding="utf-8") for file in files}


def test_keda_scales_on_the_lag_of_each_topic_and_not_a_deployment(chart: helm.Chart) -> None:
    values = {
        "settings": {
            "engine": {"kind": "echo"},
            "kafka": {
                "topics": ["urgent:4", "bulk"],
                "group_id": "g",
                "bootstrap_servers": "k:9092",
            },
        },
        "keda": {"enabled": True, "jobsPerSecond": 2.5, "promisedSeconds": 61, "maxReplicas": 9},
    }
    objects = _rendered(chart, values)
    [scaled], [deployment] = _of(objects, "ScaledObject"), _of(objects, "Deployment")
    assert "replicas" not in deployment["spec"]
    triggers = [one["metadata"] for one in scaled["spec"]["triggers"]]
    assert [one["topic"] for one in triggers] == ["urgent", "bulk"]
    for one in triggers:
        assert one["lagThreshold"] == "153"  # 152.5 jobs, rounded up
        assert one["consumerGroup"] == "g"
        assert one["version"] == "2.8.0"  # KEDA's default, 1.0.0, is older than Kafka 4 supports
        assert one["offsetResetPolicy"] == "earliest"
        assert one["limitToPartitionsWithLag"] == "true"
    assert scaled["spec"]["minReplicaCount"] == 0
    assert scaled["spec"]["cooldownPeriod"] == 1800


def test_keda_authenticates_with_what_the_worker_has(rendered: dict[str, list[Object]]) -> None:
    [scaled] = _of(rendered["tls-sasl"], "ScaledObject")
    [authentication] = _of(rendered["tls-sasl"], "TriggerAuthentication")
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["metadata"]["sasl"] == "scram_sha512"
    assert trigger["metadata"]["tls"] == "enable"
    assert trigger["authenticationRef"] == {"name": authentication["metadata"]["name"]}
    [pod] = _pods(rendered["tls-sasl"])
    for one in authentication["spec"]["env"]:
        assert one["name"] in _environment(pod)
        assert one["containerName"] == pod["containers"][0]["name"]


def test_hook_jobs_create_topics_before_they_check_them(chart: helm.Chart) -> None:
    hooks = {"topics": {"enabled": True, "partitions": 16}, "check": {"enabled": True}}
    jobs = _of(_rendered(chart, {**_ECHO, "hooks": hooks}), "Job")
    jobs.sort(key=lambda one: int(one["metadata"]["annotations"]["helm.sh/hook-weight"]))
    arguments = [one["spec"]["template"]["spec"]["containers"][0]["args"] for one in jobs]
    assert arguments == [["topics", "create", "--partitions", "16"], ["check", "--no-engine"]]
    for one in jobs:
        assert one["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
        kubernetes_validate.validate(one, "1.31", strict=True)


_BOTH_HOOKS: Object = {"topics": {"enabled": True}, "check": {"enabled": True}}


def test_hook_jobs_have_the_files_the_environment_and_the_identity_of_the_workers(
    chart: helm.Chart,
) -> None:
    token = {"name": "token", "mountPath": "/var/run/secrets/tokens", "readOnly": True}
    projected = {"sources": [{"serviceAccountToken": {"path": "kafka", "audience": "kafka"}}]}
    region = {"name": "AWS_REGION", "value": "eu-central-1"}
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/dragoman"}
    values = {
        **_ECHO,
        "hooks": _BOTH_HOOKS,
        "extraEnv": [region],
        "extraVolumes": [{"name": "token", "projected": projected}],
        "extraVolumeMounts": [token],
        "serviceAccount": {"annotations": role},
        "podLabels": {"azure.workload.identity/use": "true"},
    }
    objects = _rendered(chart, values)
    accounts = {one["metadata"]["name"]: one for one in _of(objects, "ServiceAccount")}
    for job in _of(objects, "Job"):
        pod = job["spec"]["template"]["spec"]
        [container] = pod["containers"]
        assert token in container["volumeMounts"]
        assert {"name": "token", "projected": projected} in pod["volumes"]
        assert region in container["env"]
        labels = job["spec"]["template"]["metadata"]["labels"]
        assert labels["azure.workload.identity/use"] == "true"
        account = accounts[pod["serviceAccountName"]]
        # There before the job, and not the account of the pods, whose tokens end with it.
        annotations = account["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == job["metadata"]["annotations"]["helm.sh/hook"]
        assert int(annotations["helm.sh/hook-weight"]) < 0
        assert role.items() <= annotations.items()
        kubernetes_validate.validate(job, "1.31", strict=True)
    [deployment] = _of(objects, "Deployment")
    own = accounts[deployment["spec"]["template"]["spec"]["serviceAccountName"]]
    assert "helm.sh/hook" not in own["metadata"].get("annotations", {})


def test_hook_jobs_run_as_an_account_that_is_given(chart: helm.Chart) -> None:
    account = {"create": False, "name": "mine"}
    objects = _rendered(chart, {**_ECHO, "hooks": _BOTH_HOOKS, "serviceAccount": account})
    assert {pod["serviceAccountName"] for pod in _pods(objects)} == {"mine"}
    assert _of(objects, "ServiceAccount") == []


def test_a_network_policy_selects_the_pods_of_hooks_before_they_start(chart: helm.Chart) -> None:
    egress = [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]
    values = {
        **_ECHO,
        "hooks": _BOTH_HOOKS,
        "networkPolicy": {"enabled": True, "egress": egress},
        "workers": {"a": {}, "b": {}},
    }
    objects = _rendered(chart, values)
    policies = [one for one in _of(objects, "NetworkPolicy") if "hooks" in one["metadata"]["name"]]
    assert len(policies) == 2
    selected: list[str] = []
    for policy in policies:
        kubernetes_validate.validate(policy, "1.31", strict=True)
        assert int(policy["metadata"]["annotations"]["helm.sh/hook-weight"]) < 0
        assert policy["spec"]["egress"][1:] == egress
        [expression] = policy["spec"]["podSelector"]["matchExpressions"]
        assert expression["key"] == "app.kubernetes.io/component"
        selected += expression["values"]
    components = [
        job["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for job in _of(objects, "Job")
    ]
    assert sorted(selected) == sorted(components)
    assert len(set(components)) == 4


def test_a_check_comes_after_the_topics_and_the_user_that_strimzi_makes(chart: helm.Chart) -> None:
    values = {**_by_strimzi(), "hooks": {"check": {"enabled": True}}}
    [job] = _of(_rendered(chart, values), "Job")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install,post-upgrade"


def test_a_network_policy_lets_a_worker_reach_only_names_and_what_is_given(
    rendered: dict[str, list[Object]],
) -> None:
    [policy] = _of(rendered["airgapped"], "NetworkPolicy")
    assert policy["spec"]["ingress"] == []
    names, given = policy["spec"]["egress"]
    assert {one["port"] for one in names["ports"]} == {53}
    assert given["to"] == [{"ipBlock": {"cidr": "10.0.0.0/8"}}]


def test_a_kafka_user_has_the_rights_of_the_documentation(
    rendered: dict[str, list[Object]],
) -> None:
    [user] = _of(rendered["tls-sasl"], "KafkaUser")
    rights = {
        (one["resource"]["type"], one["resource"]["name"]): one["operations"]
        for one in user["spec"]["authorization"]["acls"]
    }
    assert rights == {
        ("topic", "dragoman.jobs"): ["Read", "Describe"],
        ("group", "dragoman"): ["Read"],
        ("topic", "dragoman.dead-letters"): ["Write", "Describe"],
    }
    topics = _of(rendered["tls-sasl"], "KafkaTopic")
    assert {one["spec"]["topicName"] for one in topics} == {
        "dragoman.jobs",
        "dragoman.dead-letters",
    }
    for one in topics:
        assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_strimzi_s_objects_are_in_the_version_that_is_served(chart: helm.Chart) -> None:
    objects = _rendered(chart, _by_strimzi())
    made = _of(objects, "KafkaTopic") + _of(objects, "KafkaUser")
    assert {one["apiVersion"] for one in made} == {"kafka.strimzi.io/v1"}
    older = _by_strimzi()
    older["strimzi"]["apiVersion"] = "kafka.strimzi.io/v1beta2"
    [user] = _of(_rendered(chart, older), "KafkaUser")
    assert user["apiVersion"] == "kafka.strimzi.io/v1beta2"


def test_topics_whose_names_kubernetes_does_not_allow_stay_apart(chart: helm.Chart) -> None:
    topics = ["a_b", "a-b", "A-b", "a.b", "a..b", "_a", "__", "a" * 249, "a" * 248 + "_"]
    settings = {"engine": {"kind": "echo"}, "kafka": {"topics": topics}}
    objects = _rendered(
        chart, {"settings": settings, "strimzi": {"enabled": True, "cluster": "kafka"}}
    )
    names = {
        one["spec"]["topicName"]: one["metadata"]["name"] for one in _of(objects, "KafkaTopic")
    }
    assert set(topics) <= set(names)
    assert len(set(names.values())) == len(names)
    assert (names["a-b"], names["a.b"]) == ("a-b", "a.b")
    allowed = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
    assert all(allowed.fullmatch(name) and len(name) <= 253 for name in names.values())


def test_workers_log_in_as_the_user_that_strimzi_makes(chart: helm.Chart) -> None:
    objects = _rendered(chart, {**_by_strimzi(), "keda": {"enabled": True, "jobsPerSecond": 1}})
    [user] = _of(objects, "KafkaUser")
    [pod] = _pods(objects)
    environment = {one["name"]: one for one in pod["containers"][0]["env"]}
    name = user["metadata"]["name"]
    assert environment["DRAGOMAN_KAFKA__SASL_PLAIN_USERNAME"]["value"] == name
    secret = environment["DRAGOMAN_KAFKA__SASL_PLAIN_PASSWORD"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": name, "key": "password"}


def test_keda_reads_the_password_that_strimzi_makes_also_where_workers_have_it_as_a_file(
    chart: helm.Chart,
) -> None:
    values = {**_by_strimzi(), "keda": {"enabled": True, "jobsPerSecond": 1}}
    values["settings"]["kafka"]["sasl_plain_password_file"] = "/etc/dragoman/user/password"  # noqa: S105
    values["mounts"] = {"user": {"secret": "rel-dragoman", "path": "/etc/dragoman/user"}}
    objects = _rendered(chart, values)
    [pod] = _pods(objects)
    [authentication] = _of(objects, "TriggerAuthentication")
    assert {one["name"] for one in authentication["spec"]["env"]} <= set(_environment(pod))
    password = {"parameter": "password", "name": "rel-dragoman", "key": "password"}
    assert authentication["spec"]["secretTargetRef"] == [password]


@pytest.mark.parametrize(
    "name",
    ["a" * 31 + ".b", "dragoman." + "a" * 22 + ".b", "a" * 20 + "." + "b" * 10 + "." + "c" * 9],
)
def test_a_release_s_name_with_dots_is_cut_to_a_name_that_kubernetes_allows(
    chart: helm.Chart, name: str
) -> None:
    allowed = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
    values = {**_ECHO, "workers": {"one": {}}}
    assert all(allowed.fullmatch(one["metadata"]["name"]) for one in _rendered(chart, values, name))


def test_the_example_reads_the_secrets_of_strimzi_where_they_are(
    rendered: dict[str, list[Object]],
) -> None:
    # Secrets are read in the namespace of the release, and Strimzi makes them in that of the user.
    [user] = _of(rendered["tls-sasl"], "KafkaUser")
    assert user["metadata"]["namespace"] == "ns"


# --- generated ------------------------------------------------------------------------------------


def test_the_schema_of_the_values_is_current() -> None:
    script = ci.script("chart")
    assert script.SCHEMA.read_text(encoding="utf-8") == script.text(), "run: python .ci/chart.py"


def test_every_value_is_explained_in_the_readme_of_the_chart() -> None:
    readme = (_CHART / "README.md").read_text(encoding="utf-8")
    values = yaml.safe_load((_CHART / "values.yaml").read_text(encoding="utf-8"))
    assert [name for name in values if f"`{name}`" not in readme] == []


# --- gateway --------------------------------------------------------------------------------------


def _gateway(chart: helm.Chart, **values: Any) -> list[Object]:
    given = {"enabled": True, "keysSecret": {"name": "keys"}, **values}
    objects = _rendered(chart, {**_ECHO, "gateway": given, "networkPolicy": {"enabled": True}})
    return [one for one in objects if one["metadata"]["name"] == "rel-dragoman-gateway"]


def test_a_gateway_needs_its_keys(chart: helm.Chart) -> None:
    with pytest.raises(helm.HelmRenderError, match=r"gateway.keysSecret.name"):
        chart.render({**_ECHO, **_IMAGES, "gateway": {"enabled": True}}, name="rel")


def test_a_gateway_gets_its_settings_keys_and_time_to_answer(
    chart: helm.Chart, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = _gateway(chart, settings={"grace_s": 40, "languages": ["de", "en"]})
    [deployment] = _of(objects, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    serve = _loaded_as(GatewaySettings, pod, monkeypatch).serve
    assert (serve.grace_s, serve.languages, serve.host) == (40, ("de", "en"), "0.0.0.0")  # noqa: S104
    assert pod["terminationGracePeriodSeconds"] > 40 + 5
    [mount] = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "keys"]
    assert str(serve.keys_file) == f"{mount['mountPath']}/keys.toml"
    assert deployment["spec"]["replicas"] == 2


def test_a_gateway_s_service_and_policy_name_its_port(chart: helm.Chart) -> None:
    objects = _gateway(chart, port=80, callersFrom=[{"podSelector": {}}])
    [service] = _of(objects, "Service")
    assert service["spec"]["ports"][0]["port"] == 80
    [policy] = _of(objects, "NetworkPolicy")
    assert policy["spec"]["ingress"][0] == {
        "ports": [{"port": "api", "protocol": "TCP"}], "from": [{"podSelector": {}}]
    }  # fmt: skip
    assert len(_of(objects, "PodDisruptionBudget")) == 1


def test_an_autoscaled_gateway_follows_what_its_pods_hold(chart: helm.Chart) -> None:
    objects = _gateway(chart, autoscaling={"enabled": True, "heldRequests": 200})
    [scaler] = _of(objects, "HorizontalPodAutoscaler")
    [metric] = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "dragoman_gateway_held"
    assert metric["pods"]["target"]["averageValue"] == "200"
    [deployment] = _of(objects, "Deployment")
    assert "replicas" not in deployment["spec"]
