"""Certificates of a test authority, made by openssl, as strict as Python 3.13 asks for."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "rsa:2048", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificate:
    """The PEM files of one subject."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a folder; `ca` is what clients and servers trust."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = folder / "ca.key"
        self.ca = folder / "ca.pem"
        folder.mkdir(parents=True, exist_ok=True)
        _openssl(
            *("req", "-x509", *_KEY, "-days", "2", "-subj", "/CN=test authority"),
            *("-keyout", str(self._key), "-out", str(self.ca)),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )

    def issue(self, name: str, into: Path | None = None, *, days: int = 2) -> Certificate:
        """Sign a new key for `name`, valid for 127.0.0.1 and localhost too.

        The files are `NAME.pem` and `NAME.key` (PKCS#8); an earlier pair is replaced.
        """
        folder = into or self._folder
        folder.mkdir(parents=True, exist_ok=True)
        pair = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
            "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always\n"
        )
        _openssl(
            *("req", "-new", *_KEY, "-subj", f"/CN={name}"),
            *("-keyout", str(pair.key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-out", str(pair.certificate)),
            *("-CA", str(self.ca), "-CAkey", str(self._key), "-CAcreateserial"),
            *("-days", str(days), "-extfile", str(extensions)),
        )
        return pair


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
