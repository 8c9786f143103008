"""API keys: a TOML file with the SHA-256 of each secret, read again when it changes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import stat
import tomllib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, ConfigDict, Field, ValidationError

from dragoman_connections.groups import Group
from dragoman_connections.invalid_settings import in_one_line
from dragoman_connections.settings import SettingsError
from dragoman_connections.tls import signature
from dragoman_gateway.settings import Api
from dragoman_schemas.jobs import MemoryUse, Quality

Role = Literal["viewer", "translator", "operator", "admin"]
_NOBODY: Final = "0" * 64
_OTHERS: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
"""What must not be allowed on the file; its group may read it, as mounted Secrets need."""


class Key(Group):
    """A caller, and what the caller may do."""

    model_config = ConfigDict(populate_by_name=True)

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = _NOBODY
    topic: Annotated[str | None, Field(alias="class")] = None
    apis: tuple[Api, ...] = ("deepl", "libretranslate")
    max_in_flight: Annotated[int, Field(ge=1)] = 64
    max_characters_in_flight: Annotated[int, Field(ge=1)] = 1_000_000
    characters_per_month: Annotated[int | None, Field(ge=0)] = None
    requests_per_s: Annotated[float | None, Field(gt=0)] = None
    deadline_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    profile: str | None = None
    quality: Quality | None = None
    memory: MemoryUse | None = None
    glossaries: tuple[str, ...] = ()
    glossaries_max: Annotated[int, Field(ge=0)] = 100
    document_max_bytes: int | None = None
    roles: tuple[Role, ...] = ()
    expires: AwareDatetime | None = None


ANYONE: Final = Key(id="local", max_in_flight=4096, max_characters_in_flight=100_000_000)
"""The caller where no file of keys is set, which only this machine can reach."""
UNKNOWN: Final = Key(id="unknown")
"""The caller of a request whose body, which may have the key, is not read yet."""


class _File(Group):
    key: tuple[Key, ...] = ()


class KeyRing:
    """The keys of the file. While a changed file is broken, those read before count."""

    def __init__(self, path: Path | None, classes: tuple[str, ...]) -> None:
        """Read the file. Raises SettingsError."""
        self._path = path
        self._classes = classes
        self._seen = signature((path,))
        self._keys = {} if path is None else _read(path, classes)

    @property
    def alone(self) -> bool:
        """Whether all callers have one key, or none."""
        return len(self._keys) < 2

    @property
    def all(self) -> list[Key]:
        """The keys, in the order of the file."""
        return list(self._keys.values())

    def find(self, secret: str | None) -> Key | None:
        """Return the key of a secret; None if there is none, or it has expired.

        A missing and a wrong secret take the same steps, so time tells nothing about either.
        """
        if self._path is None:
            return ANYONE
        digest = hashlib.sha256((secret or "").encode("utf-8", "replace")).hexdigest()
        key = self._keys.get(digest)
        known = hmac.compare_digest(key.sha256 if key else _NOBODY, digest)
        if key is None or not known or not secret:
            return None
        return None if key.expires and key.expires <= datetime.now(UTC) else key

    def refresh(self, report: Callable[[str], None]) -> None:
        """Read the file again if it changed; keep the old keys if it cannot be used, and say so."""
        now = signature((self._path,))
        if self._path is None or now == self._seen:
            return
        self._seen = now
        try:
            self._keys = _read(self._path, self._classes)
        except SettingsError as error:
            report(f"{error}; the keys read before stay in use")


def new_key(key_id: str, *, free: bool = False) -> tuple[str, str]:
    """Return a new secret, and the lines for the file of keys. Raises SettingsError."""
    secret = f"dg_{secrets.token_urlsafe(32)}{':fx' if free else ''}"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    try:
        Key(id=key_id, sha256=digest)
    except ValidationError:
        raise SettingsError(f"{key_id!r} is not a key's id: 1-64 of A-Z a-z 0-9 . _ -") from None
    return secret, f'[[key]]\nid = "{key_id}"\nsha256 = "{digest}"\n'


def _read(path: Path, classes: tuple[str, ...]) -> dict[str, Key]:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise SettingsError(f"serve.keys_file: {path} is not a file")
        if mode & _OTHERS:
            raise SettingsError(f"serve.keys_file: others may read {path}; run `chmod 600 {path}`")
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SettingsError(f"serve.keys_file: {path}: {error.strerror}") from None
    except ValidationError as error:
        raise SettingsError(f"serve.keys_file: {path}: {in_one_line(error, _File)}") from None
    except ValueError as error:
        raise SettingsError(f"serve.keys_file: {path}: {error}") from None
    _check(path, found.key, classes)
    return {each.sha256: each for each in found.key}


def _check(path: Path, keys: Sequence[Key], classes: Sequence[str]) -> None:
    for each in keys:
        if each.topic is not None and each.topic not in classes:
            raise SettingsError(
                f"serve.keys_file: key {each.id}: class {each.topic} is not in kafka.topics"
            )
    for what in ("id", "sha256"):
        if len({getattr(each, what) for each in keys}) < len(keys):
            raise SettingsError(f"serve.keys_file: {path}: two keys have the same {what}")
