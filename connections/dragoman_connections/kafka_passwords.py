"""Passwords for SASL PLAIN and SCRAM that follow their file: a new one is used on reconnect."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiokafka.conn import AIOKafkaConnection, SaslPlainAuthenticator, ScramAuthenticator

from dragoman_connections.secrets import UnreadableSecret, read_secret

if TYPE_CHECKING:
    from dragoman_connections.settings import KafkaSettings

_LOG: Final = logging.getLogger(__name__)


class FilePassword(str):
    """What a password's file held at the start, with the means to read it again."""

    __slots__ = ("_last", "_path")
    _path: Path
    _last: str

    @classmethod
    def of(cls, value: str, path: Path) -> FilePassword:
        """Return the password `value`, which was read from `path`."""
        made = cls(value)
        made._path, made._last = path, value
        return made

    def now(self) -> str:
        """Return what the file holds; the last usable password while it cannot be read."""
        try:
            self._last = read_secret(self._path)
        except UnreadableSecret as error:
            _LOG.warning("the password's file cannot be used yet: %s", error)
        return self._last


def password_of(settings: KafkaSettings) -> str | None:
    """Return the password for aiokafka's clients; one from a file is read for every connection."""
    if settings.sasl_plain_password is None:
        return None
    password = settings.sasl_plain_password.get_secret_value()
    if settings.sasl_plain_password_file is None:
        return password
    # aiokafka keeps one password per client; its authenticators are made per connection.
    AIOKafkaConnection.authenticator_plain = _plain
    AIOKafkaConnection.authenticator_scram = _scram
    return FilePassword.of(password, settings.sasl_plain_password_file)


def _present(password: Any) -> str:
    return password.now() if isinstance(password, FilePassword) else str(password)


def _plain(self: AIOKafkaConnection) -> SaslPlainAuthenticator:
    return SaslPlainAuthenticator(
        loop=self._loop,
        sasl_plain_password=_present(self._sasl_plain_password),
        sasl_plain_username=self._sasl_plain_username,
    )


def _scram(self: AIOKafkaConnection) -> ScramAuthenticator:
    return ScramAuthenticator(
        loop=self._loop,
        sasl_plain_password=_present(self._sasl_plain_password),
        sasl_plain_username=self._sasl_plain_username,
        sasl_mechanism=self._sasl_mechanism,
    )
