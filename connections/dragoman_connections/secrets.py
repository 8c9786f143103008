"""Secrets in settings: read from files, and recognised so that none is written or logged.

A value is a secret by its type (``SecretStr``), by its name (a password, a token, a key to a
service), or by its form (a URL with credentials, a private key, a token of a known service). Paths,
numbers and switches are not secrets: ``ssl_keyfile`` and ``max_num_batched_tokens`` stay.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr

MASK: Final = "***"
_MOST_BYTES: Final = 65_536
"""Largest secret file: far above any password, URL or token, so that no other file is read."""

_NAMES: Final = re.compile(
    r"(^|_)(pass(word|wd|phrase)?|pwd|secret|token|credentials?|authorization|bearer|signature|sig"
    r"|(api|access|private|secret|account|shared|encryption)_?key)(_(id|value|string))?$"
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\b(AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[a-z]_[A-Za-z0-9]{16,}|\beyJ[\w-]{10,}\.[\w-]{10,}\."
    r"|^(Bearer|Basic) \S+$"
)


class UnreadableSecret(Exception):
    """A secret's file cannot be used. The message names the file and never quotes its content."""


def read_secret(path: Path) -> str:
    """Return the text of a secret's file without its byte order mark and its final line break.

    Raises UnreadableSecret if it is missing, empty, no regular file, not UTF-8, has a NUL, or is
    larger than 64 KiB.
    """
    try:
        content = _content(path)
        text = content.decode("utf-8-sig")  # Windows editors write a byte order mark
    except OSError as error:
        raise UnreadableSecret(f"{path}: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise UnreadableSecret(f"{path}: it is not UTF-8") from None
    except ValueError:  # a NUL in the path
        raise UnreadableSecret(f"{str(path)!r}: it is not a path") from None
    if len(content) > _MOST_BYTES:
        raise UnreadableSecret(f"{path}: it is larger than {_MOST_BYTES:,} bytes")
    if "\0" in text:  # SASL PLAIN separates by NUL; text in UTF-16 has many
        raise UnreadableSecret(f"{path}: it contains a NUL byte")
    if not (secret := text.removesuffix("\n").removesuffix("\r")):
        raise UnreadableSecret(f"{path}: it is empty")
    return secret


def _content(path: Path) -> bytes:
    # A pipe would block the start until somebody writes, and give its content to one process only.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # Windows has no such flag
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnreadableSecret(f"{path}: it is not a regular file")
        return file.read(_MOST_BYTES + 1)


def is_secret(name: str, value: object) -> bool:
    """Return whether the value under this name must not be written or logged."""
    if isinstance(value, SecretStr):
        return True
    if not isinstance(value, str) or not value:
        return False
    words = _CAMEL.sub("_", name).lower().replace("-", "_")
    if _NAMES.search(words) and value.lower() not in {"true", "false", "none"}:
        return True
    return bool(_FORMS.search(value)) or _is_url_with_credentials(value)


def without_secrets(
    tree: Mapping[str, Any], left_out: Callable[[str], None] = lambda _: None, *, prefix: str = ""
) -> dict[str, Any]:
    """Return the tree without its secrets, at any depth.

    ``left_out`` is called with the dotted name of each secret. A list that holds a secret is
    omitted as a whole.
    """
    kept: dict[str, Any] = {}
    for name, value in tree.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping):
            kept[name] = without_secrets(value, left_out, prefix=f"{dotted}.")
        elif _holds_secret(str(name), value):
            left_out(dotted)
        else:
            kept[name] = value
    return kept


def masked_setting(pair: str) -> str:
    """Return ``NAME=VALUE`` for display, with ``***`` in place of a secret value."""
    if pair.startswith("--set="):
        return f"--set={masked_setting(pair.removeprefix('--set='))}"
    name, _, text = pair.partition("=")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return f"{name}={MASK}" if _holds_secret(name.rpartition(".")[2], value) else pair


def _holds_secret(name: str, value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_secret(str(inner), part) for inner, part in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_secret(name, part) for part in value)
    return is_secret(name, value)


def _is_url_with_credentials(value: str) -> bool:
    if "://" not in value:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return True  # not parseable, so it may hold a password
    # A password with an unescaped `/` ends the host early, so `@` counts anywhere.
    return "@" in value.partition("?")[0] or any(
        is_secret(name, given) for name, given in parse_qsl(parts.query)
    )
