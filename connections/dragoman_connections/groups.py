"""Groups of settings: their rules, secrets from files, and the group `tracing`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dragoman_connections.secrets import UnreadableSecret, read_secret


class Group(BaseModel):
    """Group of settings; unknown names are refused."""

    # hidden input: an invalid value may hold a password
    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False
    )


class GroupWithSecrets(Group):
    """Group in which a secret may come from a file: `NAME_file` in place of `NAME`."""

    NO_SECRETS: ClassVar[frozenset[str]] = frozenset()
    """Names of which `NAME_file` is another setting."""

    @model_validator(mode="before")
    @classmethod
    def _secrets_from_files(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        read = dict(given)
        for option in given:
            name = str(option).removesuffix("_file")
            file = given[option]
            if (
                name == option
                or name not in cls.model_fields.keys() - cls.NO_SECRETS
                or not isinstance(file, str | Path)
            ):
                continue
            if given.get(name) is not None:
                raise ValueError(f"give only one of {name} and {option}")
            try:
                read[name] = read_secret(Path(file))
            except UnreadableSecret as error:
                raise ValueError(f"{option}: {error}") from None
        return read


class TracingSettings(Group):
    """Traces by OpenTelemetry; off by default."""

    enabled: bool = False
    endpoint: Annotated[str | None, Field(repr=False)] = None  # may hold a password
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0

    @field_validator("endpoint")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and not is_http_url(value):
            raise ValueError("give the URL of an OTLP/HTTP collector, such as http://HOST:4318")
        return value


def is_http_url(value: str) -> bool:
    """Return whether the value is a URL of HTTP with a host."""
    try:
        parts = urlsplit(value)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
