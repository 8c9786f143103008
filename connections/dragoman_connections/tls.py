"""TLS contexts for Kafka that follow their files: a replaced certificate is used on reconnect."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from dragoman_connections.settings import KafkaSettings, SettingsError

_LOG: Final = logging.getLogger(__name__)

Signature = tuple[object, ...]


def signature(files: Iterable[Path | str | None]) -> Signature:
    """Return what changes when any of the files is written or replaced; never raises."""
    return tuple(_state(file) for file in files)


def _state(file: Path | str | None) -> Signature:
    if file is not None:
        with suppress(OSError):
            state = os.stat(file)  # noqa: PTH116  follows links, which Kubernetes swaps
            return (state.st_ino, state.st_mtime_ns, state.st_size)
    return ()


class ReloadingContext(ssl.SSLContext):
    """A client context whose connections use what its files hold when they are opened.

    OpenSSL never removes an authority from a context, so changed files make a new context, to which
    this one delegates. While files cannot be used, such as a certificate whose key has not been
    written yet, new connections use the last context that could be made.
    """

    _build: Callable[[], ssl.SSLContext]
    _files: tuple[Path | None, ...]
    _seen: Signature
    _current: ssl.SSLContext

    @classmethod
    def of(
        cls, build: Callable[[], ssl.SSLContext], files: tuple[Path | None, ...]
    ) -> ReloadingContext:
        """Build the first context. Raises what `build` raises."""
        self = cls(ssl.PROTOCOL_TLS_CLIENT)
        self._build, self._files = build, files
        self._seen = signature(files)  # before it is built: a change meanwhile is seen later
        self._current = build()
        self.check_hostname = self._current.check_hostname
        return self

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Begin a connection, as asyncio's and uvloop's transports do."""
        self._reload()
        return self._current.wrap_bio(*args, **kwargs)

    def _reload(self) -> None:
        now = signature(self._files)
        if now == self._seen:
            return
        try:
            self._current = self._build()
        except SettingsError as error:
            _LOG.warning("changed TLS files cannot be used yet: %s", error)
        else:
            self._seen = now


@dataclass(frozen=True, slots=True)
class _Kafka:
    """The settings of `kafka.*` that determine a context."""

    cafile: Path | None
    certfile: Path | None
    keyfile: Path | None
    password: str = field(repr=False)
    check_hostname: bool


def kafka_context(settings: KafkaSettings) -> ssl.SSLContext:
    """Return the one context for all clients with these settings.

    Raises SettingsError, naming the setting and the file, only if there is no earlier context.
    """
    return _shared(
        _Kafka(
            settings.ssl_cafile,
            settings.ssl_certfile,
            settings.ssl_keyfile,
            # Without any password OpenSSL would ask for one on the terminal.
            settings.ssl_password.get_secret_value() if settings.ssl_password else "",
            settings.ssl_check_hostname,
        )
    )


@lru_cache(maxsize=8)
def _shared(tls: _Kafka) -> ssl.SSLContext:
    return ReloadingContext.of(partial(_built, tls), (tls.cafile, tls.certfile, tls.keyfile))


def _built(tls: _Kafka) -> ssl.SSLContext:
    for name in ("cafile", "certfile", "keyfile"):
        _require_readable(f"kafka.ssl_{name}", getattr(tls, name))
    context = _trusting(tls.cafile)
    context.check_hostname = tls.check_hostname
    if tls.certfile is not None:
        _load_pair(context, tls, tls.certfile)
    return context


def _require_readable(name: str, file: Path | None) -> None:
    if file is not None:
        try:
            file.open("rb").close()
        except OSError as error:
            raise SettingsError(f"{name}: {file}: {error.strerror}") from None


def _trusting(cafile: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=cafile)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise SettingsError(
            f"kafka.ssl_cafile: {cafile}: it holds no PEM certificates ({_reason(error)})"
        ) from None


def _load_pair(context: ssl.SSLContext, tls: _Kafka, certfile: Path) -> None:
    try:
        context.load_cert_chain(certfile, tls.keyfile, tls.password)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"kafka.ssl_certfile, kafka.ssl_keyfile, kafka.ssl_password: {certfile} and "
            f"{tls.keyfile or 'the key in it'} are not a certificate and its key "
            f"({_reason(error)})"
        ) from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)
