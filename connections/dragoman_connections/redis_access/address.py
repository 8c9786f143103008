"""Parser of `redis.url`: one server, the primary behind Sentinels, or a Cluster.

    redis://[USER:PASSWORD@]HOST[:6379][/DB]
    unix://[USER:PASSWORD@]/PATH[?db=DB]
    redis+sentinel://[USER:PASSWORD@]HOST[:26379],HOST.../SERVICE[/DB]
    redis+cluster://[USER:PASSWORD@]HOST[:6379],HOST...

`rediss` in place of `redis` means TLS. Percent-encode special characters in user and password, or
give them by `redis.username` and `redis.password`, which are taken as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

Host = tuple[str, int]

_FORMS: Final = (
    "give redis://HOST:PORT/DB, unix:///PATH, redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB "
    "or redis+cluster://HOST:PORT,HOST:PORT, with rediss in place of redis for TLS"
)
_MISPLACED: Final = f"a host is missing or invalid (percent-encode passwords): {_FORMS}"
_SCHEME: Final = re.compile(r"(redis|rediss)(?:\+(sentinel|cluster))?")
_HOST: Final = re.compile(r"(\[[\w:.%]+\]|[^\[\]:/@,\s]+)(?::(\d{1,5}))?")
_REDIS_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_TLS_OPTIONS: Final = frozenset(
    {
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_ciphers",
        "ssl_keyfile",
        "ssl_password",
    }
)
_OPTIONS: Final = frozenset({"client_name", "db", "socket_connect_timeout", "socket_timeout"})
_SENTINEL_OPTIONS: Final = frozenset({"sentinel_password", "sentinel_username"})
_SWITCHES: Final = {
    "ssl_cert_reqs": frozenset({"none", "optional", "required"}),
    "ssl_check_hostname": frozenset({"true", "false", "True", "False", "yes", "no", "0", "1"}),
}


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Parsed `redis.url`. Its repr holds no password; the URLs of `url_of` do."""

    kind: Literal["server", "sentinel", "cluster"]
    hosts: tuple[Host, ...]
    """The servers of the URL; empty for a Unix socket."""
    service: str
    """The service name that the Sentinels monitor; empty without Sentinels."""
    shown: str
    """The address for messages: without user, password and options."""
    _scheme: str
    _user: _Secret
    _sentinel_user: _Secret
    _database: str
    _query: _Secret

    def url_of(self, host: Host | None = None) -> str:
        """Return the `redis://`, `rediss://` or `unix://` URL of one server, with its password."""
        if host is None:
            return f"unix://{self._user.text}{self.shown}{self._query.text}"
        place = f"{_bracketed(host[0])}:{host[1]}"
        return f"{self._scheme}://{self._user.text}{place}{self._database}{self._query.text}"

    def sentinel_url_of(self, host: Host) -> str:
        """Return the URL of a Sentinel, which has its own user and password."""
        place = f"{_bracketed(host[0])}:{host[1]}"
        return f"{self._scheme}://{self._sentinel_user.text}{place}{self._query.text}"

    def file_of(self, option: str) -> str | None:
        """Return the file that a TLS option names, such as `ssl_ca_certs`; None without it."""
        return dict(parse_qsl(self._query.text.removeprefix("?"))).get(option)

    def with_user(self, username: str, password: str) -> RedisAddress:
        """Return the address with this user; with neither, the address itself.

        Raises ValueError if the URL names a user already.
        """
        if not username and not password:
            return self
        if self._user.text:
            raise ValueError("give the user either in url or by username and password")
        return replace(self, _user=_Secret(_credentials(username, password)))


@dataclass(frozen=True, slots=True)
class _Secret:
    text: str

    def __repr__(self) -> str:
        return "***" if self.text else "''"


def parse_redis_url(url: str) -> RedisAddress:
    """Return the parsed URL. Raises ValueError that shows the valid forms, never a password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(_FORMS) from None
    if parts.scheme == "unix":
        return _socket(parts)
    scheme = _SCHEME.fullmatch(parts.scheme)
    if scheme is None:
        raise ValueError(_FORMS)
    user, _, places = parts.netloc.rpartition("@")
    query = _options(parts, tls=scheme[1] == "rediss", sentinel=scheme[2] == "sentinel")
    kind: Literal["server", "sentinel", "cluster"] = "server"
    if scheme[2] == "sentinel":
        kind = "sentinel"
    elif scheme[2] == "cluster":
        kind = "cluster"
    hosts = hosts_of(places, _SENTINEL_PORT if kind == "sentinel" else _REDIS_PORT)
    if kind == "server" and len(hosts) > 1:
        raise ValueError(f"more than one host: {_FORMS}")
    service, database = _path(parts.path, kind, query)
    names = ",".join(f"{_bracketed(host)}:{port}" for host, port in hosts)
    shown = {"server": names, "cluster": f"Cluster {names}"}
    sentinel = (query.pop("sentinel_username", ""), query.pop("sentinel_password", ""))
    return RedisAddress(
        kind=kind,
        hosts=hosts,
        service=service,
        shown=shown.get(kind, f"{service} of Sentinel {names}"),
        _scheme=scheme[1],
        _user=_Secret(f"{user}@" if user else ""),
        _sentinel_user=_Secret(_credentials(*sentinel)),
        _database=database,
        _query=_Secret(_encoded(query)),
    )


def _socket(parts: SplitResult) -> RedisAddress:
    user, _, host = parts.netloc.rpartition("@")
    if host or parts.path in {"", "/"}:
        raise ValueError("give unix:///PATH with three slashes: the path of the socket")
    query = _options(parts, tls=False, sentinel=False)
    if not query.get("db", "0").isdigit():
        raise ValueError("db: give the number of a database")
    return RedisAddress(
        kind="server",
        hosts=(),
        service="",
        shown=parts.path,
        _scheme="unix",
        _user=_Secret(f"{user}@" if user else ""),
        _sentinel_user=_Secret(""),
        _database="",
        _query=_Secret(_encoded(query)),
    )


def hosts_of(places: str, default_port: int) -> tuple[Host, ...]:
    """Return the servers of ``HOST[:PORT],HOST...``. Raises ValueError, which quotes no server."""
    hosts: list[Host] = []
    for place in places.split(","):
        found = _HOST.fullmatch(place.strip())
        if found is None or not 0 < (port := int(found[2] or default_port)) < 65_536:
            # not quoted: it may be part of a password with an unescaped `@` or `/`
            raise ValueError(_MISPLACED)
        hosts.append((unquote(found[1]).strip("[]"), port))
    return tuple(hosts)


def _path(path: str, kind: str, query: dict[str, str]) -> tuple[str, str]:
    """Return the service name and the database of the path; `db` in the query takes precedence."""
    steps = [unquote(step) for step in path.strip("/").split("/") if step]
    service = ""
    if kind == "sentinel":
        if not steps:
            raise ValueError("name the service: redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB")
        service = steps.pop(0)
    if len(steps) > 1 or not all(step.isdigit() for step in steps):
        raise ValueError(f"the database is not a number: {_FORMS}")
    in_query = query.pop("db", None)
    database = in_query or (steps[0] if steps else "0")
    if not database.isdigit():
        raise ValueError("db: give the number of a database")
    if kind == "cluster" and int(database) != 0:
        raise ValueError("a Cluster has only database 0: give redis+cluster://HOST:PORT,HOST:PORT")
    return service, f"/{int(database)}"


def _options(parts: SplitResult, *, tls: bool, sentinel: bool) -> dict[str, str]:
    given = parse_qsl(parts.query, keep_blank_values=True)
    allowed = _OPTIONS | (_TLS_OPTIONS if tls else frozenset())
    allowed |= _SENTINEL_OPTIONS if sentinel else frozenset()
    if "@" in parts.query and not parts.netloc.rpartition("@")[0]:
        raise ValueError(_MISPLACED)  # not quoted: it is the rest of a password with a `?`
    for name, value in given:
        if name in _TLS_OPTIONS and not tls:
            raise ValueError(f"{name} needs TLS: begin the URL with rediss")
        if name not in allowed:
            raise ValueError(f"unknown option {name[:40]!r}; valid are {_listed(allowed)}")
        if name in _SWITCHES and value not in _SWITCHES[name]:
            raise ValueError(f"{name}: give {_listed(_SWITCHES[name])}")
        if name.startswith("socket_") and not _seconds(value):
            raise ValueError(f"{name}: give seconds")
    return dict(given)


def _seconds(value: str) -> bool:
    try:
        return 0 < float(value) < 3600
    except ValueError:
        return False


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _credentials(user: str, password: str) -> str:
    if not user and not password:
        return ""
    return f"{quote(user, safe='')}:{quote(password, safe='')}@"


def _encoded(query: dict[str, str]) -> str:
    return f"?{urlencode(query)}" if query else ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
