"""All settings of the worker with their defaults and bounds, validated at start."""

from __future__ import annotations

import json
import os
import re
import socket
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from dragoman_connections.groups import Group, GroupWithSecrets, is_http_url
from dragoman_connections.settings import DragomanSettings
from dragoman_schemas.jobs import OnFail, QualityLevel
from dragoman_worker.recognition import recognized_profile

_GPU: Final = re.compile(r"[0-9]+|(?:GPU|MIG)-[0-9A-Za-z/-]+")
MOST_REPLICAS: Final = 64
"""Upper bound, above what any machine can use: each engine takes a core and a GPU share."""
VLLM_SIGN_WITHIN_S: Final = 10.0
"""Least `supervisor.stuck_after_s` with vLLM: twice the 5 s that lay between two messages of a
healthy engine with `disable_log_stats` on one H100 (vLLM 0.26)."""


class EchoSettings(Group):
    """The echo engine, which needs no model (docs/reference/settings.md)."""

    mode: Literal["tag", "identity", "table"] = "tag"
    table: Path | None = None
    latency_s: Annotated[float, Field(ge=0)] = 0.0
    latency_spread: Annotated[float, Field(ge=0, le=1)] = 0.0
    faults: bool = False
    stall_file: Path | None = None

    @model_validator(mode="after")
    def _table_given(self) -> EchoSettings:
        if self.mode == "table" and self.table is None:
            raise ValueError("mode 'table' needs a file: give engine.echo.table")
        return self


class EngineSettings(GroupWithSecrets):
    """The engine and its model; `options` are passed on to vLLM unchanged."""

    NO_SECRETS: ClassVar[frozenset[str]] = frozenset({"profile"})

    kind: Literal["vllm", "openai", "echo"] = "vllm"
    model: str | None = None
    # Not in the repr: it may hold a password. NoDecode: the environment may give `a,b`, not JSON.
    url: Annotated[tuple[str, ...], NoDecode, Field(repr=False)] = ()
    api_key: SecretStr | None = None
    api_key_file: Path | None = None
    ca_file: Path | None = None
    tokenizer: str | None = None
    profile: str = "hy-mt2"
    profile_file: Path | None = None
    replicas: int | Literal["auto"] = "auto"
    gpus: Literal["all"] | tuple[str, ...] = "all"
    options: dict[str, Any] = Field(default_factory=dict)
    prefill_share: Annotated[float, Field(ge=0, le=0.2)] = 0.0625
    patches: Literal["auto", "off"] = "auto"
    exact_lengths: bool | Annotated[float, Field(gt=0, le=10)] = False
    echo: EchoSettings = EchoSettings()

    @model_validator(mode="before")
    @classmethod
    def _profile_of_file_or_model(cls, given: Any) -> Any:
        """Set `profile`, unless it is given, to the name in `profile_file`, or by the model's."""
        if not isinstance(given, dict) or given.get("profile"):
            return given
        if file := given.get("profile_file"):
            name = _name_in(file)
        else:
            name = recognized_profile(str(given.get("model") or ""))
        return given if name is None else {**given, "profile": name}

    @property
    def grouped_share(self) -> float:
        """Return `prefill_share`, or 0 if vLLM is to stay as it is."""
        return self.prefill_share if self.patches == "auto" else 0.0

    @field_validator("url", mode="before")
    @classmethod
    def _addresses(cls, value: object) -> object:
        given = value
        if isinstance(value, str):
            given = json.loads(value) if value.startswith("[") else value.split(",")
        if not isinstance(given, list | tuple) or not all(isinstance(url, str) for url in given):
            raise ValueError("give the URL of a server, such as http://HOST:8000, or a list")
        urls = tuple(url.strip().rstrip("/").removesuffix("/v1").rstrip("/") for url in given)
        if not all(map(is_http_url, urls)) or any("?" in url or "#" in url for url in urls):
            raise ValueError(
                "give the URL of a server, such as http://HOST:8000, without a query; or a list"
            )
        return tuple(dict.fromkeys(urls))

    @field_validator("replicas", mode="before")
    @classmethod
    def _replica_count(cls, value: object) -> object:
        count = int(value) if isinstance(value, str) and value.isdecimal() else value
        if count == "auto" or (type(count) is int and 1 <= count <= MOST_REPLICAS):
            return count
        raise ValueError(f"give a number of engines from 1 to {MOST_REPLICAS}, or 'auto'")

    @field_validator("gpus", mode="before")
    @classmethod
    def _gpu_names(cls, value: object) -> object:
        names = value.split(",") if isinstance(value, str) else value
        names = [names] if isinstance(names, int) else names
        if isinstance(names, list | tuple) and all(type(name) in {str, int} for name in names):
            found = tuple(str(name).strip() for name in names)
            if found == ("all",):
                return "all"
            if found and all(_GPU.fullmatch(name) for name in found):
                return found
        raise ValueError("give 'all', or a list of GPU indices or UUIDs as nvidia-smi shows them")

    @field_validator("options")
    @classmethod
    def _from_text(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {name.replace("-", "_"): _literal(option) for name, option in value.items()}

    @model_validator(mode="after")
    def _model_given(self) -> EngineSettings:
        if self.kind == "vllm" and self.url and not self.model:
            raise ValueError("engine.url is given: set engine.kind = 'openai' to use that server")
        if self.kind == "vllm" and not self.model:
            raise ValueError(
                "engine.model is missing: give a model folder or name, or engine.kind = 'echo'"
            )
        if self.kind == "openai" and not self.url:
            raise ValueError("engine.url is missing: give the server's, such as http://HOST:8000")
        return self


class LimitsSettings(Group):
    """Limits of the work in flight; those left at None follow from the engine's real limits."""

    max_in_flight_jobs: Annotated[int, Field(ge=1)] | None = None
    max_in_flight_bytes: Annotated[int, Field(ge=1_000_000)] = 64 * 1024 * 1024
    partition_span: Annotated[int, Field(ge=1)] = 5_000
    max_engine_items: Annotated[int, Field(ge=1)] | None = None
    engine_oversubscription: Annotated[float, Field(ge=1, le=4)] = 1.2
    max_engine_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 4_096
    max_planned_tokens: Annotated[int, Field(ge=1)] | None = None
    plan_budget_s: Annotated[float, Field(gt=0)] = 10.0


class RetrySettings(Group):
    """Attempts of a failed generation, and the delays between them."""

    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    initial_s: Annotated[float, Field(ge=0)] = 0.2
    max_s: Annotated[float, Field(ge=0)] = 5.0
    attempt_timeout_s: Annotated[float, Field(gt=0)] = 300.0
    poison_after: Annotated[int, Field(ge=2)] = 4


class QualitySettings(Group):
    """Quality settings for jobs that do not give their own."""

    level: QualityLevel = "basic"
    max_attempts: Annotated[int, Field(ge=1, le=5)] = 3
    on_fail: OnFail = "fail"
    timeout_s: Annotated[float, Field(gt=0)] = 2.0
    token_style: Literal["tags", "brackets", "braces"] = "tags"  # noqa: S105 - no password


class MemorySettings(Group):
    """The translation memory; trouble with it costs hits, never a job."""

    enabled: bool | None = None
    max_mb: Annotated[int, Field(ge=1, le=1_000_000)] = 256
    ttl_s: Annotated[int, Field(ge=60, le=315_360_000)] = 30 * 86_400


class GlossarySettings(Group):
    """Stored glossaries."""

    refresh_s: Annotated[float, Field(gt=0)] = 5.0


class ShutdownSettings(Group):
    """Time limit of a drain."""

    grace_s: Annotated[float, Field(ge=0)] = 25.0


class SupervisorSettings(Group):
    """Supervision of the replicas by `run`."""

    stuck_after_s: Annotated[float, Field(ge=1)] = 60.0
    start_within_s: Annotated[float, Field(ge=1)] = 1_800.0


class HttpSettings(Group):
    """Address of /startupz, /livez, /readyz and /metrics; port 0 selects a free port."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"  # empty would be every address
    port: Annotated[int, Field(ge=0, le=65_535)] = 9464


class LogSettings(Group):
    """Format and level of the log on stderr, and a line per job."""

    format: Literal["json", "text"] = "json"
    level: Literal["debug", "info", "warning", "error"] = "info"
    jobs: bool = False


class WorkerSettings(DragomanSettings):
    """All settings of `dragoman-worker`."""

    model_config = SettingsConfigDict(extra="forbid")

    connect_timeout_s: Annotated[float, Field(gt=0)] = 60.0
    worker_id: str = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    engine: EngineSettings = Field(default_factory=EngineSettings)
    limits: LimitsSettings = LimitsSettings()
    retry: RetrySettings = RetrySettings()
    quality: QualitySettings = QualitySettings()
    memory: MemorySettings = MemorySettings()
    glossary: GlossarySettings = GlossarySettings()
    shutdown: ShutdownSettings = ShutdownSettings()
    supervisor: SupervisorSettings = SupervisorSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="before")
    @classmethod
    def _every_group_is_read(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Let a missing `engine` be reported together with the other problems, not before them.

        What one file of settings has for `dragoman serve` is left out.
        """
        return {"engine": {}} | {name: given[name] for name in given if name != "serve"}

    @model_validator(mode="after")
    def _echo_is_not_judged(self) -> WorkerSettings:
        """Set `quality.level` to off with the echo engine, unless it is given."""
        if self.engine.kind == "echo" and "level" not in self.quality.model_fields_set:
            unjudged = self.quality.model_copy(update={"level": "off"})
            object.__setattr__(self, "quality", unjudged)  # frozen for everybody else
        return self

    @model_validator(mode="after")
    def _vllm_is_given_time_to_answer(self) -> WorkerSettings:
        if self.engine.kind == "vllm" and self.supervisor.stuck_after_s < VLLM_SIGN_WITHIN_S:
            raise ValueError(
                f"supervisor.stuck_after_s: give at least {VLLM_SIGN_WITHIN_S:.0f} with vLLM, "
                "whose signs of life can be 5 s apart"
            )
        return self

    @property
    def memory_enabled(self) -> bool:
        """Whether answers are remembered: by default with vLLM, but not those of exact lengths."""
        if self.memory.enabled is not None:
            return self.memory.enabled
        return self.engine.kind == "vllm" and not self.engine.exact_lengths

    @model_validator(mode="after")
    def _real_answers_are_remembered(self) -> WorkerSettings:
        if self.memory.enabled and self.engine.exact_lengths:
            raise ValueError(
                "memory.enabled: answers of engine.exact_lengths are no translations; "
                "set one of the two to false"
            )
        return self


def _name_in(file: Any) -> str | None:
    """Return the profile's name; None for a wrong file, which is reported when it is read."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        name = tomllib.loads(Path(file).expanduser().read_text(encoding="utf-8")).get("name")
        return name if isinstance(name, str) else None
    return None


def _literal(value: Any) -> Any:
    """Parse the text of an environment variable that is JSON, such as `64` or `{"a": 1}`."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value
