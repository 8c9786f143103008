"""Settings of `dragoman serve`: those of Kafka and Redis, and the group `serve`."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from dragoman_connections.groups import Group
from dragoman_connections.settings import DragomanSettings
from dragoman_schemas.languages import UnknownLanguage, normalise

Api = Literal["deepl", "libretranslate"]
Names = Annotated[tuple[str, ...], NoDecode]
"""The environment may give them with commas, or as JSON."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tag(value: str) -> str:
    try:
        return normalise(value)
    except UnknownLanguage as error:
        raise ValueError(str(error)) from None


class DocumentsOfCallers(Group):
    """Where documents of callers are, and how many."""

    dir: Path | None = None
    max_bytes: Annotated[int, Field(ge=1024)] = 30_000_000
    keep_s: Annotated[int, Field(ge=60, le=2_592_000)] = 86_400
    at_once: Annotated[int, Field(ge=1, le=64)] = 4
    max_total_bytes: Annotated[int, Field(ge=1024)] = 20_000_000_000


class ServeSettings(Group):
    """Addresses, callers' keys, and bounds of the gateway."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8787
    admin_host: str = "127.0.0.1"
    admin_port: Annotated[int, Field(ge=0, le=65535)] = 9465
    keys_file: Path | None = None
    apis: Annotated[tuple[Api, ...], NoDecode] = ("deepl", "libretranslate")
    languages: Names | None = None
    formality: Names | None = None
    default_source_lang: str = "en"
    hold_s: Seconds = 55.0
    shed_after_s: Seconds = 300.0
    grace_s: Seconds = 25.0
    text_ttl_s: Annotated[int, Field(ge=60, le=2_592_000)] = 600
    text_deadline_s: Seconds = 120.0
    glossary_refresh_s: Annotated[float, Field(ge=0, le=3600)] = 5.0
    max_connections: Annotated[int, Field(ge=1)] = 4096
    max_body_bytes: Annotated[int, Field(ge=1024)] = 1024 * 1024
    allow_query_keys: bool = False
    cors_origins: Names = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    log_requests: bool = True
    documents: DocumentsOfCallers = DocumentsOfCallers()

    @field_validator("apis", "languages", "formality", "cors_origins", mode="before")
    @classmethod
    def _separated(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.startswith("["):
            return tuple(json.loads(value))
        return tuple(name.strip() for name in value.split(",") if name.strip())

    @field_validator("languages", "formality")
    @classmethod
    def _tags(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else tuple(dict.fromkeys(map(_tag, value)))

    @field_validator("default_source_lang")
    @classmethod
    def _one_tag(cls, value: str) -> str:
        return _tag(value)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not is_loopback(self.host) and self.keys_file is None:
            raise ValueError(
                f"host {self.host} can be reached from elsewhere, so keys_file is needed: make a "
                "key with `dragoman serve new-key ID`, or set host to 127.0.0.1"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("give both tls_cert and tls_key, or neither")
        return self


class GatewaySettings(DragomanSettings):
    """Settings of `dragoman serve`."""

    serve: ServeSettings = ServeSettings()
