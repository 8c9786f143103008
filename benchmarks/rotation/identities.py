"""How the roles reach Kafka and Redis in each mode, and what is rotated meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar, Final

import redis

from support.services.certificates import Authority, Certificate
from support.services.ports import free_port
from support.services.redis_server import RedisServer
from support.services.secure_broker import SecureBroker
from support.services.token_renewal import renewed

LATE_S: Final = 1.0
"""How much later than the broker a role learns its new password."""


class Identity(ABC):
    """One mode, with a user per role. `rotations` counts what was replaced."""

    def __init__(self, folder: Path, roles: Sequence[str], period_s: float) -> None:
        self.folder = folder
        self.roles = roles
        self.period_s = period_s
        self.rotations = 0
        self.problems: list[str] = []

    @abstractmethod
    def start(self, stack: ExitStack) -> None:
        """Start `broker` and `server`."""

    broker: SecureBroker
    server: RedisServer

    @abstractmethod
    def kafka(self, role: str) -> dict[str, str]:
        """Return how a role reaches Kafka."""

    def redis_url(self, role: str) -> str:
        """Return how a role reaches Redis."""
        del role
        return self.server.url

    @property
    def port(self) -> int:
        """The broker's port for the roles."""
        return int(self.kafka(self.roles[0])["bootstrap_servers"].split(":")[1])

    @abstractmethod
    def turn(self, wait: Callable[[float], bool]) -> None:
        """Rotate once, in one period; `wait` pauses and returns whether the run has ended."""

    @contextmanager
    def rotating(self) -> Iterator[None]:
        """Rotate while the context is open."""
        ended = threading.Event()

        def run() -> None:
            while not ended.is_set():
                try:
                    self.turn(ended.wait)
                except Exception as error:  # noqa: BLE001  the row has to say so
                    self.problems.append(f"{type(error).__name__}: {error}")
                    return

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


class Oauth(Identity):
    """OAUTHBEARER tokens of one period, renewed after two thirds of it."""

    def start(self, stack: ExitStack) -> None:
        """Start the services, and the renewal of tokens."""
        self.server = stack.enter_context(RedisServer(appendonly="yes"))
        self.broker = stack.enter_context(SecureBroker(self.folder, {}, reauth_ms=3_600_000))
        for role in self.roles:
            every_s = self.period_s * 2 / 3
            stack.enter_context(renewed(role, self._token(role), lambda: self.period_s, every_s))

    def kafka(self, role: str) -> dict[str, str]:
        """See Identity."""
        return {
            "bootstrap_servers": self.broker.oauth_bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_file": str(self._token(role)),
        }

    def turn(self, wait: Callable[[float], bool]) -> None:
        """Count; the renewal has threads of its own."""
        self.rotations += not wait(self.period_s * 2 / 3)

    def _token(self, role: str) -> Path:
        return self.folder / f"{role}.token"


class Scram(Identity):
    """A new password per period; sessions of half a period. A role learns it 1 s too late."""

    def start(self, stack: ExitStack) -> None:
        """Start the services with the first passwords."""
        self.server = stack.enter_context(RedisServer(appendonly="yes"))
        users = {role: f"{role}-0" for role in self.roles}
        for role, password in users.items():
            self._file(role).write_text(password)
        reauth_ms = round(self.period_s * 500)
        self.broker = stack.enter_context(SecureBroker(self.folder, users, reauth_ms=reauth_ms))

    def kafka(self, role: str) -> dict[str, str]:
        """See Identity."""
        settings = self.broker.scram_settings(role)
        del settings["sasl_plain_password"]
        return settings | {"sasl_plain_password_file": str(self._file(role))}

    def turn(self, wait: Callable[[float], bool]) -> None:
        """Change every role's password at the broker, and then in its file."""
        if wait(self.period_s - LATE_S):
            return
        passwords = {role: f"{role}-{self.rotations + 1}" for role in self.roles}
        for role, password in passwords.items():
            self.broker.change_password(role, password)
        wait(LATE_S)
        for role, password in passwords.items():
            _replace(self._file(role), password)
        self.rotations += 1

    def _file(self, role: str) -> Path:
        return self.folder / f"{role}.password"


class Mtls(Identity):
    """A new authority per period, of Kafka, Redis and the roles; both are trusted meanwhile.

    In quarters of a period: both are trusted; the servers' certificates are new; the roles' are,
    and every connection is ended, because Kafka keeps connections whose certificate has gone; the
    old authority is no longer trusted. Needs Linux and root (ss -K).
    """

    _SERVERS: ClassVar = ("broker", "redis")

    def start(self, stack: ExitStack) -> None:
        """Start the services with the first authority."""
        self.broker = stack.enter_context(SecureBroker(self.folder, {}))
        self._authority = self.broker.authority
        self._trusted = self.folder / "trusted.pem"
        shutil.copy(self._authority.ca, self._trusted)
        for role in self.roles:
            (self.folder / role).mkdir()
            self._give(role)
            shutil.copy(self._trusted, self.folder / role / "ca.pem")
        self._tls_port = free_port()
        pair = self._authority.issue("redis")
        self.server = stack.enter_context(
            RedisServer(
                appendonly="yes",
                tls_port=str(self._tls_port),
                tls_cert_file=str(pair.certificate),
                tls_key_file=str(pair.key),
                tls_ca_cert_file=str(self._trusted),
                tls_auth_clients="yes",
            )
        )

    def kafka(self, role: str) -> dict[str, str]:
        """See Identity."""
        return self.broker.mtls_settings(self.folder / role)

    def redis_url(self, role: str) -> str:
        """See Identity."""
        files = self.folder / role
        own = f"ssl_certfile={files}/client.pem&ssl_keyfile={files}/client.key"
        return f"rediss://127.0.0.1:{self._tls_port}/0?ssl_ca_certs={files}/ca.pem&{own}"

    def turn(self, wait: Callable[[float], bool]) -> None:
        """Replace the authority, in four steps."""
        old, new = self._authority, Authority(self.folder / f"authority-{self.rotations + 1}")
        self._trust([old, new])
        for step in (lambda: self._move(new), self._hand_out, lambda: self._trust([new])):
            if wait(self.period_s / 4):
                return
            step()
        self.rotations += 1
        wait(self.period_s / 4)

    def _move(self, authority: Authority) -> None:
        self._authority = authority
        self._apply()

    def _trust(self, authorities: Sequence[Authority]) -> None:
        text = "".join(one.ca.read_text() for one in authorities)
        _replace(self._trusted, text)
        for role in self.roles:
            _replace(self.folder / role / "ca.pem", text)
        self._apply()

    def _apply(self) -> None:
        """Let both servers use the present authority and trust."""
        pairs = {name: self._authority.issue(name) for name in self._SERVERS}
        self.broker.use(pairs["broker"], self._trusted)
        with redis.Redis.from_url(self.server.url) as client:
            client.config_set(
                "tls-cert-file",
                str(pairs["redis"].certificate),
                "tls-key-file",
                str(pairs["redis"].key),
                "tls-ca-cert-file",
                str(self._trusted),
            )

    def _hand_out(self) -> None:
        """Give the roles new certificates and end their connections."""
        for role in self.roles:
            self._give(role)
        with redis.Redis.from_url(self.server.url) as client:
            client.execute_command("CLIENT", "KILL", "LADDR", f"127.0.0.1:{self._tls_port}")
        ended = ["ss", "-K", "dst", "127.0.0.1", "dport", "=", str(self.port)]
        subprocess.run(ended, capture_output=True, check=True)

    def _give(self, role: str) -> None:
        pair: Certificate = self._authority.issue(role)
        _replace(self.folder / role / "client.pem", pair.certificate.read_text())
        _replace(self.folder / role / "client.key", pair.key.read_text())


MODES: Final[dict[str, type[Identity]]] = {"oauth": Oauth, "scram": Scram, "mtls": Mtls}


def _replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)
