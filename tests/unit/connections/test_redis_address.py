"""Every form of redis.url is parsed, and an invalid one is reported without its password."""

from __future__ import annotations

import pytest

from dragoman_connections.redis_access.address import parse_redis_url
from dragoman_connections.settings import (
    DragomanSettings,
    RedisSettings,
    SettingsError,
    load_settings,
)


@pytest.mark.parametrize(
    ("url", "kind", "hosts", "shown"),
    [
        ("redis://h", "server", (("h", 6379),), "h:6379"),
        ("redis://u:p%40%2F@h:1/2", "server", (("h", 1),), "h:1"),
        ("redis://[::1]:7/0", "server", (("::1", 7),), "[::1]:7"),
        ("rediss://h?ssl_ca_certs=/ca.pem", "server", (("h", 6379),), "h:6379"),
        ("unix:///run/redis.sock?db=2", "server", (), "/run/redis.sock"),
        (
            "redis+sentinel://:pw@a,b:2/main/3",
            "sentinel",
            (("a", 26379), ("b", 2)),
            "main of Sentinel a:26379,b:2",
        ),
        ("rediss+cluster://u:p@a,b:7", "cluster", (("a", 6379), ("b", 7)), "Cluster a:6379,b:7"),
        ("redis+cluster://a/0", "cluster", (("a", 6379),), "Cluster a:6379"),
    ],
)
def test_every_form_gives_kind_hosts_and_the_address_to_show(
    url: str, kind: str, hosts: tuple[tuple[str, int], ...], shown: str
) -> None:
    address = RedisSettings(url=url).address
    assert (address.kind, address.hosts, address.shown) == (kind, hosts, shown)


def test_each_server_is_reached_with_the_user_database_and_options_of_the_url() -> None:
    address = parse_redis_url(
        "rediss+sentinel://u:p%40@a:1,b:2/main/3"
        "?ssl_ca_certs=/ca.pem&sentinel_username=s&sentinel_password=q%2Fq"
    )
    assert address.url_of(("10.0.0.7", 6379)) == (
        "rediss://u:p%40@10.0.0.7:6379/3?ssl_ca_certs=%2Fca.pem"
    )
    assert address.sentinel_url_of(("a", 1)) == "rediss://s:q%2Fq@a:1?ssl_ca_certs=%2Fca.pem"
    assert address.url_of(("::1", 5)).startswith("rediss://u:p%40@[::1]:5/3")


def test_a_socket_keeps_its_user_and_database() -> None:
    url = "unix://u:p@/run/redis.sock?db=2"
    assert parse_redis_url(url).url_of() == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "give redis://HOST:PORT/DB"),
        ("http://h", "give redis://HOST:PORT/DB"),
        ("redis+sentinels://h/s", "give redis://HOST:PORT/DB"),
        ("redis://", "a host is missing"),
        ("redis://h:99999", "a host is missing or invalid"),
        ("redis://u:se/cret@h", "percent-encode passwords"),
        ("redis://a,b", "more than one host"),
        ("redis://h/x", "the database is not a number"),
        ("redis://h?db=x", "db: give the number"),
        ("redis+sentinel://h:1", "name the service"),
        ("redis+sentinel://h:1/s/x", "the database is not a number"),
        ("redis+cluster://h:1/2", "only database 0"),
        ("redis+cluster://h:1?db=1", "only database 0"),
        ("redis+cluster://a,,b", "a host is missing"),
        ("unix://run/redis.sock", "three slashes"),
        ("unix:///run/redis.sock?db=x", "db: give the number"),
        ("redis://h?ssl_ca_certs=/ca.pem", "begin the URL with rediss"),
        ("rediss://h?ssl_cert_reqs=never", "ssl_cert_reqs: give none, optional, required"),
        ("rediss://h?sentinel_password=secret", "unknown option 'sentinel_password'"),
        ("redis://h?socket_timeout=soon", "socket_timeout: give seconds"),
        ("redis://h?max_connections=1", "unknown option 'max_connections'"),
    ],
)
def test_an_invalid_url_is_refused_with_the_valid_form(url: str, message: str) -> None:
    with pytest.raises(SettingsError, match=r"^redis\.url: ") as caught:
        load_settings(DragomanSettings, options={"redis.url": url})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis://u:hidden@h", "redis+sentinel://u:hidden@h/s?sentinel_password=hidden"]
)
def test_no_password_is_shown(url: str) -> None:
    settings = RedisSettings(url=url)
    assert "hidden" not in repr(settings) + str(settings) + repr(settings.address)


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:hid/den@h",
        "redis://u:hidden@h/x",
        "http://u:hidden@h",
        "redis://u:hid#@h",
        "redis://:x?hidden@h:6379/0",
        "redis://u:x?hidden=y@h",
    ],
)
def test_an_error_holds_no_password(url: str) -> None:
    with pytest.raises(ValueError, match="give redis") as caught:
        RedisSettings(url=url)
    assert "hid" not in str(caught.value)
