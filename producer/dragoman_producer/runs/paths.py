"""Paths of documents in the manifest and for people, and digests of files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def stored(path: str) -> str | bytes:
    """Return a path as the manifest holds it: bytes if its name is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def loaded(path: str | bytes) -> str:
    """Return the path of `stored`."""
    return path if isinstance(path, str) else os.fsdecode(path)


def shown(path: str | bytes) -> str:
    """Return a path for people and for JSON."""
    return encodable(loaded(path))


def encodable(text: str) -> str:
    """Return a text with escapes for halves of characters, which no encoding has."""
    return text.encode("utf-8", "backslashreplace").decode()


def sha256_of(path: Path) -> str | None:
    """Return the hex digest of a file, None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
