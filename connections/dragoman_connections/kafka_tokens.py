"""Tokens for SASL OAUTHBEARER: read from a file, or signed with AWS credentials for Amazon MSK.

aiokafka asks for a token whenever it opens a connection. A broker that limits sessions to the life
of their token (`connections.max.reauth.ms`) closes the connection, and the next one uses a new
token. A token that cannot be used now counts as an outage, because its file is about to be
replaced; at the start of a command it is a settings error.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import AuthenticationFailedError, KafkaConnectionError

from dragoman_connections.secrets import UnreadableSecret, read_secret
from dragoman_connections.settings import SettingsError
from dragoman_connections.terminal import how_to_install

if TYPE_CHECKING:
    from dragoman_connections.settings import KafkaSettings

_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""The characters that RFC 6750 allows in a bearer token."""


class UnusableToken(KafkaConnectionError):  # type: ignore[misc]  # aiokafka has no types
    """No valid token can be had now. The message names the setting, and never quotes the token."""


class _CheckedAuthenticator(OAuthAuthenticator):  # type: ignore[misc]
    async def step(self, payload: bytes | None) -> Any:
        # RFC 7628: the broker answers a valid token with nothing, another one with its error.
        if payload:
            raise AuthenticationFailedError("the broker rejects the token")
        return await super().step(payload)


def _checked(self: AIOKafkaConnection) -> OAuthAuthenticator:
    return _CheckedAuthenticator(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


def token_provider(settings: KafkaSettings) -> AbstractTokenProvider:
    """Return the source of tokens that the settings name. Raises SettingsError.

    From then on aiokafka's connections fail if the broker rejects their token. aiokafka 0.14
    ignores the answer: clients then read empty metadata and recover a minute later than needed.
    """
    AIOKafkaConnection.authenticator_oauth = _checked  # the class is fixed in its `create_conn`
    if settings.sasl_oauth_token_file is not None:
        return TokenFile(settings.sasl_oauth_token_file)
    if settings.sasl_oauth_msk_region is not None:
        return MskTokens(settings.sasl_oauth_msk_region)
    raise SettingsError("kafka.sasl_oauth_token_file: it is needed with OAUTHBEARER")


async def token_problem(settings: KafkaSettings) -> str | None:
    """Return why no valid token can be had now; None if there is one, or none is needed."""
    sasl = settings.security_protocol.startswith("SASL_")
    if not sasl or settings.sasl_mechanism != "OAUTHBEARER":
        return None
    try:
        await token_provider(settings).token()
    except UnusableToken as error:
        return str(error.args[0])
    return None


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the token from its file for every connection, so a replaced file needs no restart."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the file's present token. Raises UnusableToken if it is invalid or has expired."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> str:
        try:
            token = read_secret(self._path).strip()
        except UnreadableSecret as error:
            raise UnusableToken(f"kafka.sasl_oauth_token_file: {error}") from None
        if not _BEARER.fullmatch(token):
            raise UnusableToken(
                f"kafka.sasl_oauth_token_file: {self._path}: its content is not one bearer token"
            )
        expired_s = time.time() - expiry_of(token)
        if expired_s >= 0:
            raise UnusableToken(
                f"kafka.sasl_oauth_token_file: {self._path}: its token expired "
                f"{expired_s:.0f} s ago; see that the program that renews it runs"
            )
        return token


def expiry_of(token: str) -> float:
    """Return the `exp` claim of a JSON Web Token, in seconds since 1970; infinity without one.

    The signature is not verified: only the broker's opinion of it matters.
    """
    try:
        _, claims, _ = token.split(".")
        padded = claims + "=" * (-len(claims) % 4)
        expiry = json.loads(base64.urlsafe_b64decode(padded))["exp"]
        return float(expiry) if isinstance(expiry, int | float) else float("inf")
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return float("inf")


class MskTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Signs a token for every connection with the AWS credentials of this process.

    boto3 finds the credentials: an IAM role of the pod or machine, or the environment. A token is
    valid for 15 minutes.
    """

    def __init__(self, region: str) -> None:
        """Load the signer. Raises SettingsError if it is not installed."""
        self._region = region
        self._signer = _msk_signer()

    async def token(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a new token. Raises UnusableToken without valid credentials."""
        try:
            token, _ = await asyncio.to_thread(self._signer.generate_auth_token, self._region)
        # Errors of AWS libraries have no common class, and their texts may quote credentials.
        except Exception as error:  # noqa: BLE001
            raise UnusableToken(
                "kafka.sasl_oauth_msk_region: no token could be signed "
                f"({type(error).__name__}); check the AWS credentials of this process"
            ) from None
        return str(token)


def _msk_signer() -> Any:
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: PLC0415  an extra
    except ImportError:
        raise SettingsError(
            "kafka.sasl_oauth_msk_region: aws-msk-iam-sasl-signer-python is not installed; "
            f"{how_to_install('msk')}"
        ) from None
    return MSKAuthTokenProvider
