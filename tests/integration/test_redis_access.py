"""Redis is reached by TLS, by a Unix socket and as a restricted user; a refusal is reported."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from dragoman_connections.settings import DragomanSettings, RedisSettings
from dragoman_producer.errors import StoreRefused
from dragoman_producer.operations.job_keys import JobKeys
from dragoman_producer.store import JobStore
from dragoman_schemas.jobs import DocumentRef
from dragoman_worker.deadline import Deadline
from dragoman_worker.errors import Halt, Unavailable, Unreachable
from support.builders.store_calls import (
    all_stand,
    claim_of,
    idle_store,
    is_a_wrong_setting,
    redis_store,
    request,
    result,
    settle,
    until_served,
)
from support.processes.child_process import command
from support.services.ports import free_port
from support.services.redis_cluster import RedisCluster
from support.services.redis_server import RedisServer

pytestmark = pytest.mark.redis

ACL_RULES = (
    "on >open-sesame resetkeys ~dragoman:* resetchannels -@all "
    "+evalsha +script|load +hget +hmget +hset +hsetnx +hdel +hexists +hincrby +hkeys +hgetall "
    "+del +hstrlen +scan +exists +set +pexpire +xadd +xread +xrevrange +ping +wait "
    "+unlink +rename +pttl "
    "+info +config|get +cluster|slots +role"
)
"""One user for everything, on a server or in a Cluster; tests of the roles are in
test_redis_rights.py."""


async def works(url: str) -> None:
    """Run every kind of Redis call of worker and client once."""
    settings = DragomanSettings(redis=RedisSettings(url=url))
    client, keys = JobStore(settings.redis, connect_timeout_s=5), JobKeys(settings)
    async with redis_store(url, durability="aof") as store:
        last = await client.newest_event()
        assert await client.stub("a1")
        await settle(store, "a1")
        await all_stand(store, ["a1"])
        assert "a1" in (await client.events_after(last))[1]
        wanted = request("a2", document_id="d1")
        reply = await store.claim(wanted)
        assert await client.cancel("a2") == "running"
        await client.cancel_document("d1")
        document = DocumentRef(document_id="d1", index=0, total=1)
        ended = result("cancelled", job_id="a2", document=document, error=None)
        assert await store.finish(claim_of(wanted, reply), ended)
        await store.release(claim_of(wanted, reply))
        (key,) = await keys.read(["a2"])
        assert key is not None
        assert key.status == "cancelled"
    await keys.close()
    await client.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an authority, and a certificate for 127.0.0.1."""
    directory = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)

    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test authority")
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key")
    openssl(*new, *signed, "-keyout", "redis.key", "-out", "redis.pem", *name)
    return directory


@pytest.fixture(scope="module")
def tls_url(redis_installed: str, certificates: Path) -> Iterator[str]:
    """Start a server with a TLS port, and a plain port that only the fixture uses."""
    port = free_port()
    with RedisServer(
        binary=redis_installed,
        appendonly="yes",
        tls_port=str(port),
        tls_cert_file=str(certificates / "redis.pem"),
        tls_key_file=str(certificates / "redis.key"),
        tls_ca_cert_file=str(certificates / "ca.pem"),
        tls_auth_clients="optional",
    ):
        yield f"rediss://127.0.0.1:{port}/0"


async def test_tls_with_an_own_authority(tls_url: str, certificates: Path) -> None:
    await works(f"{tls_url}?ssl_ca_certs={certificates / 'ca.pem'}")


async def test_tls_with_a_client_certificate(tls_url: str, certificates: Path) -> None:
    own = f"ssl_certfile={certificates / 'redis.pem'}&ssl_keyfile={certificates / 'redis.key'}"
    async with redis_store(f"{tls_url}?ssl_ca_certs={certificates / 'ca.pem'}&{own}") as store:
        await settle(store, "with-a-certificate")


async def test_an_unknown_authority_is_trusted_only_without_verification(tls_url: str) -> None:
    async with idle_store(RedisSettings(url=tls_url)) as store:
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await store.start(Deadline.after(0.1))
    async with redis_store(f"{tls_url}?ssl_cert_reqs=none&ssl_check_hostname=false") as trusting:
        await settle(trusting, "trusting")


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
async def test_a_missing_tls_file_is_named_at_once(
    tls_url: str, certificates: Path, option: str
) -> None:
    files = {
        "ssl_ca_certs": certificates / "ca.pem",
        "ssl_certfile": certificates / "redis.pem",
        "ssl_keyfile": certificates / "redis.key",
        option: certificates / "missing.pem",
    }
    options = "&".join(f"{name}={file}" for name, file in files.items())
    message = await is_a_wrong_setting(f"{tls_url}?{options}", rf"{option}: .*missing.pem")
    assert "no such file" in message
    client = JobStore(RedisSettings(url=f"{tls_url}?{options}"), connect_timeout_s=5)
    with pytest.raises(StoreRefused, match=rf"{option}: .*missing.pem: there is no such file"):
        await client.newest_event()
    await client.close()


async def test_a_tls_file_without_a_certificate_is_reported_at_once(
    tls_url: str, tmp_path: Path
) -> None:
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate")
    message = await is_a_wrong_setting(
        f"{tls_url}?ssl_ca_certs={rubbish}", "ssl_ca_certs: not a certificate"
    )
    assert "PEM" in message


async def test_a_unix_socket(redis_installed: str, tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    with RedisServer(binary=redis_installed, appendonly="yes", unixsocket=str(path)):
        await works(f"unix://{path}?db=1")


async def test_the_documented_rights_are_all_that_a_user_needs(
    own_redis: RedisServer,
) -> None:
    with redis.Redis.from_url(own_redis.url) as admin:
        admin.execute_command("ACL", "SETUSER", "dragoman", *ACL_RULES.split())
        await works(f"redis://dragoman:open-sesame@127.0.0.1:{own_redis.port}/0")
        # redis-py sends CLIENT SETINFO by itself and ignores a refusal
        assert {str(entry["object"]) for entry in admin.acl_log()} <= {"client|setinfo"}


async def test_a_cluster_s_user_needs_no_other_rights(redis_installed: str) -> None:
    del redis_installed
    with RedisCluster(appendonly="yes") as cluster:
        for server in cluster.servers:
            with redis.Redis.from_url(server.url) as admin:
                admin.execute_command("ACL", "SETUSER", "dragoman", *ACL_RULES.split())
        await works(cluster.url.replace("://", "://dragoman:open-sesame@"))


async def test_a_revoked_right_is_waited_for_and_a_changed_password_is_not(
    own_redis: RedisServer,
) -> None:
    """A job waits until the right is granted again; a changed password halts the worker."""

    def user(*rules: str) -> None:
        with redis.Redis.from_url(own_redis.url) as admin:
            admin.execute_command("ACL", "SETUSER", "dragoman", *rules)

    user(*ACL_RULES.split())
    async with redis_store(f"redis://dragoman:open-sesame@127.0.0.1:{own_redis.port}/0") as store:
        await settle(store, "a1")
        for right in ("hset", "evalsha"):
            user(f"-{right}")
            with pytest.raises(Unavailable, match=f"(?i)'{right}'|can't run this command"):
                await store.claim(request("a2"))
            user(f"+{right}")
        await settle(store, "a2")
        user("resetpass", ">another")
        with redis.Redis.from_url(own_redis.url) as admin:
            admin.execute_command("CLIENT", "KILL", "USER", "dragoman")
        with pytest.raises(Halt, match=r"redis\.url: .*refuses its user or password"):
            await until_served(lambda: store.claim(request("a3")))


async def test_an_invalid_password_is_reported_at_once_and_not_shown(
    own_redis: RedisServer,
) -> None:
    url = f"redis://dragoman:a-secret@127.0.0.1:{own_redis.port}/0"
    message = await is_a_wrong_setting(url, "refuses its user or password")
    assert "a-secret" not in message


async def test_a_missing_password_is_reported_at_once(redis_installed: str) -> None:
    with RedisServer(binary=redis_installed, requirepass="open-sesame") as server:
        await is_a_wrong_setting(server.url, "refuses its user or password")


async def test_a_user_without_rights_is_reported_at_once(own_redis: RedisServer) -> None:
    with redis.Redis.from_url(own_redis.url) as admin:
        admin.execute_command("ACL", "SETUSER", "nobody", "on", ">x", "-@all", "+ping", "+select")
    url = f"redis://nobody:x@127.0.0.1:{own_redis.port}/0"
    await is_a_wrong_setting(url, "refuses its user or password")


async def test_an_invalid_database_is_reported_at_once(redis_server: RedisServer) -> None:
    url = redis_server.url.removesuffix("/0") + "/99"
    await is_a_wrong_setting(url, "DB index is out of range")


def test_a_command_exits_with_2_if_redis_url_does_not_fit(redis_server: RedisServer) -> None:
    url = redis_server.url.removesuffix("/0") + "/99"
    done = subprocess.run(
        command("dragoman", "status", "a1", "--redis", url),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "redis.url" in done.stderr


async def test_an_invalid_password_of_a_cluster_is_reported_at_once(redis_installed: str) -> None:
    del redis_installed
    with RedisCluster(replicas=0) as cluster:
        url = cluster.url.replace("://", "://nobody:a-secret@")
        assert "a-secret" not in await is_a_wrong_setting(url, "invalid username-password")
