"""Expiry of the TLS certificates that the settings name, as a metric that follows rotations."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dragoman_connections.settings import DragomanSettings
from dragoman_worker.metrics import Metrics

READ_EVERY_S: Final = 60.0
LARGEST_FILE: Final = 1024 * 1024
"""Bytes of a file of certificates; the bundle of all public authorities has a fifth of that."""
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
_VALIDITY: Final = 3
"""Index of the validity among the fields after the version: serial, algorithm, issuer, validity."""
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17

Kind = tuple[str, str]
"""Connection, `kafka` or `redis`, and certificate, `authority` or `client`."""


def certificate_files(settings: DragomanSettings) -> dict[Kind, Path]:
    """Return the files of certificates that the settings name."""
    redis = settings.redis.address
    named = {
        ("kafka", "authority"): settings.kafka.ssl_cafile,
        ("kafka", "client"): settings.kafka.ssl_certfile,
        ("redis", "authority"): _path(redis.file_of("ssl_ca_certs")),
        ("redis", "client"): _path(redis.file_of("ssl_certfile")),
    }
    return {kind: file for kind, file in named.items() if file is not None}


def _path(file: str | None) -> Path | None:
    return Path(file) if file else None


async def expiry_forever(files: Mapping[Kind, Path], metrics: Metrics) -> None:
    """Export when each file's certificates expire, and read it again once per minute.

    A file that cannot be read keeps its last value: the next connection reports the error.
    """
    while files:
        for (connection, certificate), file in files.items():
            times = await asyncio.to_thread(expiries, file)
            if times:
                # Any authority of a bundle serves, but a client needs its whole chain.
                expiry = max(times) if certificate == "authority" else min(times)
                metrics.certificate_expiry.labels(connection, certificate).set(expiry)
        await asyncio.sleep(READ_EVERY_S)


def expiries(file: Path) -> list[float]:
    """Return when each certificate of a PEM file expires, in seconds since 1970.

    Empty for a file that cannot be read, is too large, or holds anything but certificates.
    """
    try:
        if not file.is_file() or file.stat().st_size > LARGEST_FILE:
            return []
        return [_expiry(der) for der in _certificates(file.read_text(encoding="latin-1"))]
    except (OSError, ValueError, IndexError):
        return []


def _certificates(text: str) -> Iterator[bytes]:
    for part in text.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            yield ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{body}{_END}")


def _expiry(der: bytes) -> float:
    """Return the end of the validity of a certificate (RFC 5280, section 4.1)."""
    _, signed = _fields(der)[0]
    _, body = _fields(signed)[0]
    fields = [value for tag, value in _fields(body) if tag != _VERSION]
    tag, text = _fields(fields[_VALIDITY])[1]
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC).timestamp()


def _fields(der: bytes) -> list[tuple[int, bytes]]:
    """Return tags and contents of the DER values that stand one after the other in `der`."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & 0x80:
            octets = length & 0x7F
            length = int.from_bytes(der[at : at + octets])
            at += octets
        found.append((tag, der[at : at + length]))
        at += length
    return found
