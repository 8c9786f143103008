"""Writer of the Helm chart's values.schema.json, from values.yaml and the settings of the worker.

`python .ci/chart.py` writes it; `tests/unit/deploy/test_chart.py` fails while it is not current. A
value has the type of its default; `_rules` has what a default cannot show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from dragoman_gateway.settings import ServeSettings
from dragoman_worker.settings import WorkerSettings

_CHART: Final = Path(__file__).parent.parent / "deploy" / "chart" / "dragoman"
SCHEMA: Final = _CHART / "values.schema.json"
_OF_RELEASE: Final = (
    *("nameOverride", "fullnameOverride", "workers", "serviceAccount", "prometheusRule", "strimzi"),
    *("clientImage", "gatewayImage", "gateway", "port", "dashboards"),
)
"""Values that belong to the release, not to one of its workers."""
_OF_THE_POD: Final = ("worker_id", "http")
"""Settings that the chart makes itself."""
_OF_THE_GATEWAY: Final = ("host", "port", "admin_host", "admin_port", "keys_file")

_FREE: Final[Mapping[str, Any]] = {"type": "object"}
_LIST: Final[Mapping[str, Any]] = {"type": "array", "items": {"type": "object"}}
_COUNT: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 0}
_POSITIVE: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 1}
_QUANTITY: Final[Mapping[str, Any]] = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?([KMGTPE]i?|m|k)?$",
}
_STRINGS: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": {"type": "string"},
}


def _only(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def _rules() -> dict[str, Any]:
    """Return the schemas of values by dotted name, where the default does not show them."""
    text = {"type": "string", "minLength": 1}
    pull = {"enum": ["Always", "IfNotPresent", "Never"]}
    digest = {"type": "string", "pattern": r"^(sha256:[0-9a-f]{64})?$"}
    duration = {"type": "string", "pattern": r"^[0-9]+(ms|s|m)$"}
    path = {"type": "string", "pattern": "^/"}
    name = {"type": "string", "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"}
    tcp_port = {"type": "integer", "minimum": 1, "maximum": 65535}
    pods = {"anyOf": [_POSITIVE, {"type": "string", "pattern": "^[0-9]+%$"}]}
    # A setting has its place in `settings`, where its name is checked.
    not_ours = {"type": "string", "minLength": 1, "not": {"pattern": "^DRAGOMAN_"}}
    return {
        **dict.fromkeys(
            ["image.pullPolicy", "clientImage.pullPolicy", "gatewayImage.pullPolicy"],
            pull,
        ),
        **dict.fromkeys(["image.digest", "clientImage.digest", "gatewayImage.digest"], digest),
        **dict.fromkeys(
            [
                *("image.repository", "clientImage.repository", "gatewayImage.repository"),
                *("gpu.resource", "gateway.keysSecret.key"),
            ],
            text,
        ),
        **dict.fromkeys(
            [
                "resources",
                "gateway.resources",
                "podSecurityContext",
                "securityContext",
                "strategy",
                "affinity",
            ],
            _FREE,
        ),
        **dict.fromkeys(
            [
                *("extraVolumes", "extraVolumeMounts", "tolerations"),
                *("imagePullSecrets", "networkPolicy.metricsFrom", "networkPolicy.egress"),
                "gateway.callersFrom",
            ],
            _LIST,
        ),
        **dict.fromkeys(
            [
                *("podLabels", "podAnnotations", "nodeSelector", "serviceAccount.annotations"),
                *("podMonitor.labels", "prometheusRule.labels"),
                *("dashboards.labels", "dashboards.annotations"),
                "gateway.service.annotations",
            ],
            _STRINGS,
        ),
        **dict.fromkeys(
            [
                "replicas",
                "gateway.replicas",
                "gpu.count",
                "keda.minReplicas",
                "keda.fallbackReplicas",
            ],
            _COUNT,
        ),
        **dict.fromkeys(
            [
                *("keda.maxReplicas", "keda.pollingSeconds", "keda.promisedSeconds"),
                *("keda.cooldownSeconds", "keda.scaleDownSeconds", "hooks.topics.partitions"),
                *("strimzi.partitions", "strimzi.replicas", "strimzi.minInsyncReplicas"),
                *("gateway.autoscaling.minReplicas", "gateway.autoscaling.maxReplicas"),
                "gateway.autoscaling.heldRequests",
                *("strimzi.retentionSeconds", "strimzi.deadLetterRetentionSeconds"),
            ],
            _POSITIVE,
        ),
        **dict.fromkeys(["shm.size", "tmp.size", "cache.size"], _QUANTITY),
        **dict.fromkeys(["podMonitor.interval", "podMonitor.scrapeTimeout"], duration),
        **dict.fromkeys(["nameOverride", "fullnameOverride"], name),
        "extraEnv": {
            "type": "array",
            "items": {"type": "object", "required": ["name"], "properties": {"name": not_ours}},
        },
        "keda.kafkaVersion": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+){2,3}$"},
        "keda.jobsPerSecond": {"type": "number", "minimum": 0},
        "keda.scaleDownAfterSeconds": {"type": "integer", "minimum": 0, "maximum": 3600},
        "model.path": path,
        **dict.fromkeys(
            ["port", "gateway.port", "gateway.adminPort"],
            tcp_port,
        ),
        "gateway.settings": _serve_schema(),
        "gateway.service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
        # 15 s for the engine, and the last commit.
        "stopMarginSeconds": {"type": "integer", "minimum": 20},
        **dict.fromkeys(
            ["podDisruptionBudget.maxUnavailable", "gateway.podDisruptionBudget.maxUnavailable"],
            pods,
        ),
        "topologySpread.maxSkew": _POSITIVE,
        "topologySpread.whenUnsatisfiable": {"enum": ["ScheduleAnyway", "DoNotSchedule"]},
        "strimzi.apiVersion": {"enum": ["kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2"]},
        "strimzi.user.authentication": {"enum": ["scram-sha-512", "tls"]},
        "prometheusRule.disabled": {
            "type": "array",
            "items": {"enum": _alerts("alerts.yaml", "keda-alerts.yaml")},
        },
        # KEDA's metrics name no job.
        "disabledAlerts": {"type": "array", "items": {"enum": _alerts("alerts.yaml")}},
        "mounts": {
            "type": "object",
            "propertyNames": {"pattern": "^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$"},
            "additionalProperties": _only(
                ("path",), path=path, secret={"type": "string"}, configMap={"type": "string"}
            ),
        },
        "settings": settings_schema(),
        "secretSettings": {
            "type": "object",
            "propertyNames": {"enum": sorted(setting_names())},
            "additionalProperties": _only(("name", "key"), name=text, key=text),
        },
    }


def _alerts(*files: str) -> list[str]:
    """Return the names of the alerts in files of the chart."""
    texts = [(_CHART / "files" / file).read_text(encoding="utf-8") for file in files]
    groups = [group for text in texts for group in yaml.safe_load(text)["groups"]]
    return sorted(rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule)


# --- settings -------------------------------------------------------------------------------------


def setting_names() -> Iterator[str]:
    """Return the dotted names of all settings that a value or a secret may give."""
    for group, schema in settings_schema(secrets=True)["properties"].items():
        yield from _leaves(schema, group)


def _leaves(schema: Mapping[str, Any], name: str) -> Iterator[str]:
    if "properties" not in schema:
        yield name
    for key, inner in schema.get("properties", {}).items():
        yield from _leaves(inner, f"{name}.{key}")


def settings_schema(*, secrets: bool = False) -> dict[str, Any]:
    """Return the JSON schema of the worker's settings, without those that the chart makes.

    Passwords are left out, because `helm get values` shows values, unless `secrets` is true.
    """
    schema = WorkerSettings.model_json_schema()
    found: dict[str, Any] = _plain(schema, schema["$defs"], secrets=secrets)
    for name in _OF_THE_POD:
        del found["properties"][name]
    engine = found["properties"]["engine"]["properties"]
    engine["options"] = _FREE
    found["properties"]["kafka"]["properties"]["topics"]["minItems"] = 1
    engine["gpus"] = {"type": ["string", "array"]}  # "all", "0,1" or [0, 1]
    return found


def _serve_schema() -> dict[str, Any]:
    """Return the JSON schema of the gateway's settings, without those that the chart makes."""
    schema = ServeSettings.model_json_schema()
    found: dict[str, Any] = _plain(schema, schema.get("$defs", {}), secrets=False)
    for name in _OF_THE_GATEWAY:
        del found["properties"][name]
    return found


def _plain(schema: Any, definitions: Mapping[str, Any], *, secrets: bool) -> Any:
    """Return a schema without references, titles, defaults, descriptions and formats."""
    if isinstance(schema, list):
        return [_plain(one, definitions, secrets=secrets) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        return _plain(named, definitions, secrets=secrets)
    dropped = {"title", "default", "description", "format", "writeOnly", "$defs", "properties"}
    found = {
        key: _plain(value, definitions, secrets=secrets)
        for key, value in schema.items()
        if key not in dropped
    }
    if "properties" in schema:
        found["properties"] = {
            name: _plain(one, definitions, secrets=secrets)
            for name, one in schema["properties"].items()
            if secrets or "writeOnly" not in json.dumps(one)
        }
    return found


# --- values ---------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the schema of all values of the chart."""
    defaults = yaml.safe_load((_CHART / "values.yaml").read_text(encoding="utf-8"))
    properties = _of(defaults, _rules())["properties"]
    worker = {name: one for name, one in properties.items() if name not in _OF_RELEASE}
    properties["workers"] = {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$"},
        "additionalProperties": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": {name: {"$ref": f"#/properties/{name}"} for name in worker},
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart dragoman",
        "type": "object",
        "additionalProperties": False,
        "properties": {**properties, "global": _FREE},
    }


def _of(value: Any, rules: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    if name in rules:
        return dict(rules[name])
    if isinstance(value, dict):
        inner = {key: _of(one, rules, f"{name}.{key}".lstrip(".")) for key, one in value.items()}
        return {"type": "object", "additionalProperties": False, "properties": inner}
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(value)]}


def text() -> str:
    """Return the file."""
    return json.dumps(schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
