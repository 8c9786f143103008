"""A real Kafka with SCRAM over TLS, mutual TLS, OAUTHBEARER and access control lists.

The plain listener stays open for the test itself: its user is a super user. `grant` gives all
other users their rights.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import admin
from confluent_kafka.admin import AdminClient

from support.services.certificates import Authority, Certificate
from support.services.kafka_broker import KafkaBroker
from support.services.ports import free_ports

_ADMIN: Final[Any] = admin
"""Untyped: the stubs lack its access control classes."""
_MODULE: Final = "org.apache.kafka.common.security"
_CLUSTER: Final = "kafka-cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """One operation on one resource, such as `Right("topic", "jobs", "read")`."""

    kind: str
    name: str
    operation: str

    def binding(self, user: str) -> Any:
        """Return the access control entry that grants the right to `user`."""
        return _ADMIN.AclBinding(*self._of(user))

    def binding_filter(self, user: str) -> Any:
        """Return the filter that matches that entry."""
        return _ADMIN.AclBindingFilter(*self._of(user))

    def _of(self, user: str) -> tuple[Any, ...]:
        return (
            _ADMIN.ResourceType[self.kind.upper()],
            self.name,
            _ADMIN.ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            _ADMIN.AclOperation[self.operation.upper()],
            _ADMIN.AclPermissionType.ALLOW,
        )


def cluster_right(operation: str) -> Right:
    """Return an operation on the cluster itself."""
    return Right("broker", _CLUSTER, operation)


class SecureBroker(KafkaBroker):
    """One node with `users` (names to SCRAM passwords) and a listener per mechanism.

    `reauth_ms` is the interval at which clients of the SCRAM and OAUTH listeners re-authenticate.
    """

    def __init__(
        self, folder: Path, users: Mapping[str, str], *, reauth_ms: int | None = None
    ) -> None:
        super().__init__()
        self.authority = Authority(folder / "authority")
        self._server = self.authority.issue("broker")
        self._scram_users = dict(users)
        self._reauth_ms = reauth_ms
        self._scram_port, self._mtls_port, self._oauth_port = free_ports(3)

    @property
    def scram_bootstrap(self) -> str:
        """Address of the listener with SASL_SSL and SCRAM-SHA-512."""
        return f"127.0.0.1:{self._scram_port}"

    @property
    def mtls_bootstrap(self) -> str:
        """Address of the SSL listener; the user is the client certificate's common name."""
        return f"127.0.0.1:{self._mtls_port}"

    @property
    def oauth_bootstrap(self) -> str:
        """Address of the listener with OAUTHBEARER and the tokens of `unsecured_token`."""
        return f"127.0.0.1:{self._oauth_port}"

    def scram_settings(self, user: str) -> dict[str, str]:
        """Return the `kafka` settings for one of the users."""
        return {
            "bootstrap_servers": self.scram_bootstrap,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": user,
            "sasl_plain_password": self._scram_users[user],
            "ssl_cafile": str(self.authority.ca),
        }

    def mtls_settings(self, files: Path) -> dict[str, str]:
        """Return the `kafka` settings for `ca.pem`, `client.pem` and `client.key` in a folder."""
        return {
            "bootstrap_servers": self.mtls_bootstrap,
            "security_protocol": "SSL",
            "ssl_cafile": str(files / "ca.pem"),
            "ssl_certfile": str(files / "client.pem"),
            "ssl_keyfile": str(files / "client.key"),
        }

    def restart_with_a_new_authority(self) -> None:
        """Restart with a new authority; certificates of the old one are no longer trusted."""
        self.kill()
        self.authority = Authority(self.authority.ca.parent)
        self._server = self.authority.issue("broker")
        self._write_keystore()
        self.restart()

    def use(self, pair: Certificate, trusted: Path) -> None:
        """Present another certificate and trust the authorities of a PEM file, without a restart.

        Open connections stay. Kafka reads a file again if its path is another one.
        """
        keys = pair.key.with_suffix(f".{uuid.uuid4().hex[:8]}.keystore")
        authorities = keys.with_suffix(".truststore")
        keys.write_text(pair.key.read_text() + pair.certificate.read_text())
        shutil.copy(trusted, authorities)
        files = {"keystore": keys, "truststore": authorities}
        entries = [
            _ADMIN.ConfigEntry(
                f"listener.name.mtls.ssl.{store}.location",
                str(file),
                incremental_operation=_ADMIN.AlterConfigOpType.SET,
            )
            for store, file in files.items()
        ]
        resource = _ADMIN.ConfigResource(
            _ADMIN.ConfigResource.Type.BROKER, "0", incremental_configs=entries
        )
        client = self._client()
        for future in client.incremental_alter_configs([resource]).values():
            future.result(timeout=30)

    def change_password(self, user: str, password: str) -> None:
        """Give a SCRAM user another password; open connections stay until they expire."""
        self._scram_users[user] = password
        scram = _ADMIN.ScramCredentialInfo(_ADMIN.ScramMechanism.SCRAM_SHA_512, 4096)
        change = _ADMIN.UserScramCredentialUpsertion(user, scram, password=password.encode())
        client = self._client()
        for future in client.alter_user_scram_credentials([change]).values():
            future.result(timeout=30)

    # --- rights ---------------------------------------------------------------------------------

    def grant(self, user: str, rights: Iterable[Right]) -> None:
        """Grant rights to a user, in force when this returns."""
        wanted = [right.binding(user) for right in rights]
        client = self._client()  # a request ends with its client
        for future in client.create_acls(wanted).values():
            future.result(timeout=30)

    def revoke(self, user: str, rights: Iterable[Right]) -> None:
        """Revoke rights, in force when this returns."""
        filters = [right.binding_filter(user) for right in rights]
        client = self._client()
        for future in client.delete_acls(filters).values():
            future.result(timeout=30)

    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    # --- layout ---------------------------------------------------------------------------------

    def _format_arguments(self) -> list[str]:
        return [
            f"--add-scram=SCRAM-SHA-512=[name={name},password={password}]"
            for name, password in self._scram_users.items()
        ]

    def _more_properties(self, properties: dict[str, object]) -> dict[str, object]:
        listeners = (
            f"{properties['listeners']},SCRAM://127.0.0.1:{self._scram_port},"
            f"MTLS://127.0.0.1:{self._mtls_port},OAUTH://127.0.0.1:{self._oauth_port}"
        )
        protocols = (
            f"{properties['listener.security.protocol.map']},"
            "SCRAM:SASL_SSL,MTLS:SSL,OAUTH:SASL_PLAINTEXT"
        )
        return {
            **properties,
            "listeners": listeners,
            "listener.security.protocol.map": protocols,
            **_ACCESS,
            **self._tls(),
            **self._sasl(),
        }

    def _tls(self) -> dict[str, object]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._write_keystore(),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.ca,
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        }

    def _write_keystore(self) -> Path:
        keys = self._server.key.with_name("broker.keystore.pem")
        keys.write_text(self._server.key.read_text() + self._server.certificate.read_text())
        return keys

    def _sasl(self) -> dict[str, object]:
        scram, oauth = "listener.name.scram", "listener.name.oauth"
        properties: dict[str, object] = {
            f"{scram}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{scram}.scram-sha-512.sasl.jaas.config": (
                f"{_MODULE}.scram.ScramLoginModule required;"
            ),
            f"{oauth}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{oauth}.oauthbearer.sasl.jaas.config": (
                f"{_MODULE}.oauthbearer.OAuthBearerLoginModule required "
                'unsecuredLoginStringClaim_sub="broker";'
            ),
        }
        if self._reauth_ms is not None:
            properties[f"{scram}.scram-sha-512.connections.max.reauth.ms"] = self._reauth_ms
            properties[f"{oauth}.oauthbearer.connections.max.reauth.ms"] = self._reauth_ms
        return properties


_ACCESS: Final[dict[str, object]] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "false",
}


def unsecured_token(user: str, lifetime_s: float = 60.0) -> str:
    """Return an unsigned OAUTHBEARER token for the OAUTH listener."""
    now = time.time()
    header = {"alg": "none"}
    claims = {"sub": user, "iat": now, "exp": now + lifetime_s}
    return ".".join((_part(header), _part(claims), ""))


def _part(content: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
