"""Settings for Kafka and Redis that the client and the worker share."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings.exceptions import SettingsError as UnreadableSource

from dragoman_connections.groups import GroupWithSecrets, TracingSettings
from dragoman_connections.invalid_settings import in_one_line, of_environment, unknown_group
from dragoman_connections.redis_access.address import RedisAddress, hosts_of, parse_redis_url
from dragoman_schemas import names

ENV_PREFIX: Final = "DRAGOMAN_"
_KAFKA_PORT: Final = 9092
_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_TOPIC: Final = re.compile(_TOPIC_NAME.pattern + r"(:\d{1,9})?")
MOST_WEIGHT: Final = 1000
_DURABILITY = re.compile(r"none|aof|wait:[1-9]\d?|waitaof:[1-9]\d?")


class SettingsError(Exception):
    """A setting is invalid; the message names it and the fix. Commands exit with status 2."""


class KafkaSettings(GroupWithSecrets):
    """Broker, topics and credentials; the SASL and TLS names are aiokafka's."""

    bootstrap_servers: str = "127.0.0.1:9092"
    # NoDecode: the environment may give `a,b` instead of JSON
    topics: Annotated[tuple[str, ...], NoDecode] = (names.JOBS_TOPIC,)
    dead_letter_topic: str = names.DEAD_LETTER_TOPIC
    results_topic: str | None = None
    group_id: Annotated[str, Field(min_length=1)] = names.GROUP_ID
    session_timeout_s: Annotated[float, Field(ge=1, le=1800)] = 12.0
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "PLAIN"
    sasl_plain_username: str | None = None
    sasl_plain_password: SecretStr | None = None
    sasl_plain_password_file: Path | None = None
    sasl_oauth_token_file: Path | None = None
    sasl_oauth_msk_region: str | None = None
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_password: SecretStr | None = None
    ssl_password_file: Path | None = None
    ssl_check_hostname: bool = True

    @field_validator("bootstrap_servers")
    @classmethod
    def _addresses(cls, value: str) -> str:
        for server in value.split(","):
            try:
                hosts_of(server, _KAFKA_PORT)
            except ValueError:
                raise ValueError(
                    f"{server.strip()!r} is not a server: give HOST:PORT, several with commas"
                ) from None
        return value

    @model_validator(mode="after")
    def _has_credentials(self) -> Self:
        if not self.security_protocol.startswith("SASL_"):
            return self
        if self.sasl_mechanism == "OAUTHBEARER":
            if (self.sasl_oauth_token_file is None) == (self.sasl_oauth_msk_region is None):
                raise ValueError(
                    "give one of sasl_oauth_token_file and sasl_oauth_msk_region with "
                    "sasl_mechanism OAUTHBEARER"
                )
        elif not self.sasl_plain_username or self.sasl_plain_password is None:
            raise ValueError(
                "sasl_plain_username and sasl_plain_password are needed with security_protocol "
                f"{self.security_protocol}"
            )
        return self

    @field_validator("topics", mode="before")
    @classmethod
    def _comma_separated(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.startswith("["):
            try:
                return tuple(json.loads(value))
            except ValueError:
                raise ValueError("give names with commas, or a list in JSON") from None
        return tuple(name.strip() for name in value.split(",") if name.strip())

    @field_validator("topics")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one topic")
        for topic in value:
            if not _TOPIC.fullmatch(topic):
                raise ValueError(f"{topic!r} is not a topic: give NAME or NAME:WEIGHT")
            name, _, weight = topic.partition(":")
            if weight and not 1 <= int(weight) <= MOST_WEIGHT:
                raise ValueError(
                    f"{topic!r}: a weight is 1 to {MOST_WEIGHT}; omit {name} to read nothing of it"
                )
        names_given = [topic.partition(":")[0] for topic in value]
        if twice := sorted({name for name in names_given if names_given.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} is named twice")
        return value

    @field_validator("dead_letter_topic", "results_topic")
    @classmethod
    def _topic_name(cls, value: str | None) -> str | None:
        if value is not None and not _TOPIC_NAME.fullmatch(value):
            raise ValueError(f"{value!r} is not the name of a topic")
        return value

    @model_validator(mode="after")
    def _topics_differ(self) -> Self:
        """Refuse to write where jobs come from: a dead letter would be read and rejected again."""
        written = {"dead_letter_topic": self.dead_letter_topic, "results_topic": self.results_topic}
        for setting, name in written.items():
            if name in self.topic_names:
                raise ValueError(f"{setting} {name} is also one of topics; give it another name")
        if self.results_topic == self.dead_letter_topic:
            raise ValueError(
                f"results_topic {self.results_topic} is also dead_letter_topic; "
                "give it another name"
            )
        return self

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The topics without their weights."""
        return tuple(topic.partition(":")[0] for topic in self.topics)

    @property
    def topic_weights(self) -> dict[str, int]:
        """The weight of each topic; 1 by default."""
        parts = (topic.partition(":") for topic in self.topics)
        return {name: int(weight or 1) for name, _, weight in parts}


class RedisSettings(GroupWithSecrets):
    """Address of Redis, user, key prefix, lifetime of unfinished jobs, and durability."""

    # not in the repr: it may hold a password
    url: Annotated[str, Field(repr=False)] = "redis://127.0.0.1:6379/0"
    url_file: Path | None = None
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    key_prefix: str = names.KEY_PREFIX
    live_ttl_s: Annotated[int, Field(ge=60, le=315_360_000)] = 7 * 86_400
    durability: str = "none"

    @field_validator("url")
    @classmethod
    def _understood(cls, value: str) -> str:
        parse_redis_url(value)
        return value

    @field_validator("durability")
    @classmethod
    def _level(cls, value: str) -> str:
        if not _DURABILITY.fullmatch(value):
            raise ValueError("give none, aof, wait:N or waitaof:N")
        return value

    @model_validator(mode="after")
    def _one_user(self) -> Self:
        _ = self.address  # raises ValueError if the URL has a user too
        return self

    @property
    def address(self) -> RedisAddress:
        """The parsed `url`, with the user that `username` and `password` name."""
        password = self.password.get_secret_value() if self.password else ""
        return parse_redis_url(self.url).with_user(self.username or "", password)


class DragomanSettings(BaseSettings):
    """Settings of every command, from a TOML file, the environment and options; later ones win."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
    )

    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    tracing: TracingSettings = TracingSettings()
    connect_timeout_s: Annotated[float, Field(gt=0)] = 10.0

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by precedence: options, environment, file; nothing else is read."""
        del dotenv_settings, file_secret_settings
        given = dict(init_settings())
        file = given.pop("_file", {})
        return (
            InitSettingsSource(settings_cls, given),
            env_settings,
            InitSettingsSource(settings_cls, file),
        )


SomeSettings = TypeVar("SomeSettings", bound=DragomanSettings)


def load_settings(
    kind: type[SomeSettings],
    config: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> SomeSettings:
    """Read settings of `kind`; `options` maps dotted names (``kafka.group_id``) to values.

    Raises SettingsError with one line that names every invalid setting and the valid values.
    """
    file, given = _read_toml(config) if config else {}, _nested(options or {})
    if (unknown := unknown_group((given, file), ENV_PREFIX)) is not None:
        raise SettingsError(unknown)
    build: Any = kind  # takes `_file`, which is a source, not a setting
    try:
        settings: SomeSettings = build(_file=file, **given)
    except ValidationError as error:
        raise SettingsError(in_one_line(error, kind)) from None
    except UnreadableSource as error:
        raise SettingsError(of_environment(error, ENV_PREFIX)) from None
    return settings


def parse_pairs(pairs: Iterable[str] | None) -> dict[str, Any]:
    """Return the values of options `--set NAME=VALUE` by dotted name. Raises SettingsError."""
    return dict(_pair(text) for text in pairs or ())


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not all(name.split(".")):
        raise SettingsError(f"--set {text}: give NAME=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):  # no JSON, a number of 4301 digits, or nested too deeply
        return name, value


def _read_toml(path: Path) -> dict[str, Any]:
    """Return the file's settings. Raises SettingsError that names the file.

    pydantic-settings' TomlConfigSettingsSource silently ignores a missing file and a pipe.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SettingsError(f"--config {path}: there is no such file") from None
    except OSError as error:
        raise SettingsError(f"--config {path}: {error.strerror}; give a readable file") from None
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError is a ValueError
        raise SettingsError(f"--config {path} is not valid TOML: {error}") from None


def _nested(options: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        *groups, leaf = name.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
            if not isinstance(branch, dict):
                raise SettingsError(
                    f"{name}: {group} is also given as a single value; give only one"
                )
        branch[leaf] = value
    return tree
