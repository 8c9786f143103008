"""The folder of documents: one folder for each, and what is left over."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from dragoman_connections.settings import SettingsError
from dragoman_documents.recognition import format_of
from dragoman_documents.registry import formats

ID: Final = re.compile(r"[0-9A-F]{32}")
_LEFT_S: Final = 60.0
_UPLOAD_S: Final = 600.0
_KEY_FILE: Final = "secret"
_NAME_BYTES: Final = 200
_FACTOR: Final = 4
"""A document takes about so many times its bytes: itself, the manifest, the output."""
_SUFFIX: Final = re.compile(r"\.[a-z0-9]{1,16}\Z")


class DocumentFolder:
    """Paths, room and remains. Its methods block for moments."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        """Make the folder. Raises SettingsError."""
        self.path = path
        self._most = most_bytes
        self._used = 0
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._secret = self._read_secret()
        except OSError as error:
            raise SettingsError(
                f"serve.documents.dir: {self.path} cannot be written: {error.strerror}"
            ) from None

    def _read_secret(self) -> bytes:
        """Return the secret of all gateways on this folder, made by the first."""
        name = self.path / _KEY_FILE
        if not name.exists():
            fresh = self.path / f".{secrets.token_hex(8)}"
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                f.write(secrets.token_bytes(32))
            try:
                os.link(fresh, name)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return name.read_bytes()

    def document_key(self, document_id: str) -> str:
        """Return the secret of a document, which is stored nowhere."""
        return hmac.new(self._secret, document_id.encode(), "sha256").hexdigest().upper()

    def of(self, document_id: str) -> Path:
        """Return the folder of a document."""
        return self.path / document_id

    def has_room(self, size: int) -> bool:
        """Return whether a document of so many bytes, and its translation, find room."""
        free = shutil.disk_usage(self.path).free
        return _FACTOR * size < free and self._used + size <= self._most

    def ids(self) -> list[str]:
        """Return the ids of all documents."""
        return [each.name for each in self.path.iterdir() if ID.fullmatch(each.name)]

    def measure(self) -> None:
        """Count the bytes of all documents."""
        self._used = sum(_sizes(self.path))

    def remove(self, document_id: str) -> None:
        """Remove a document."""
        shutil.rmtree(self.of(document_id), ignore_errors=True)

    def remove_left_over(self, ids: Collection[str]) -> list[str]:
        """Remove what has no record: documents that ended, and uploads that broke off."""
        removed = [each for each in ids if self._is_left_over(self.of(each))]
        for each in removed:
            self.remove(each)
        return removed

    def _is_left_over(self, folder: Path) -> bool:
        try:
            files = [folder, *(folder / "in").iterdir()]
            newest = max(each.stat().st_mtime for each in files)
        except OSError:
            return folder.exists() and time.time() - folder.stat().st_mtime > _LEFT_S
        uploading = any(each.name == ".part" for each in files)
        return time.time() - newest > (_UPLOAD_S if uploading else _LEFT_S)


def safe_name(given: str) -> str:
    """Return a file's name without a path and control characters, of at most 200 bytes."""
    name = re.split(r"[/\\]", given)[-1]
    name = "".join(each for each in name if each.isprintable() and each not in ':"').strip(". ")
    encoded = name.encode("utf-8", "replace")
    if len(encoded) > _NAME_BYTES:
        suffix = suffix_of(name)
        stem = encoded[: _NAME_BYTES - len(suffix)].decode("utf-8", "ignore")
        name = stem.removesuffix(suffix) + suffix
    return name.encode("utf-8", "replace").decode()


def suffix_of(name: str) -> str:
    """Return the longest suffix of a known format, or the last one, in lower case."""
    lowered = name.lower()
    known = [each for found in formats().values() for each in found if lowered.endswith(each)]
    if known and (longest := max(known, key=len)).startswith("."):
        return longest
    match = _SUFFIX.search(lowered)
    return match[0] if match else ""


def is_known(path: Path) -> bool:
    """Return whether a file has a format that is translated."""
    return format_of(path) is not None


def _sizes(folder: Path) -> list[int]:
    found: list[int] = []
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                found.append((Path(where) / name).stat().st_size)
            except OSError:
                continue
    return found
