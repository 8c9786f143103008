"""TLS contexts follow their files; an unusable file is named."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from dragoman_connections.settings import KafkaSettings, SettingsError
from dragoman_connections.tls import kafka_context
from support.services.certificates import Authority, Certificate


class Files:
    """The PEM files of one client."""

    def __init__(self, directory: Path, authority: Authority, name: str) -> None:
        directory.mkdir()
        self.ca, self.certificate, self.key = (
            directory / name for name in ("ca.pem", "client.pem", "client.key")
        )
        self.trust(authority)
        self.put(authority.issue(name))

    def trust(self, authority: Authority) -> None:
        shutil.copy(authority.ca, self.ca)

    def put(self, pair: Certificate) -> None:
        shutil.copy(pair.certificate, self.certificate)
        shutil.copy(pair.key, self.key)

    def settings(self, **more: object) -> KafkaSettings:
        return KafkaSettings.model_validate(
            {
                "security_protocol": "SSL",
                "ssl_cafile": self.ca,
                "ssl_certfile": self.certificate,
                "ssl_keyfile": self.key,
                **more,
            }
        )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"))


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> Files:
    return Files(tmp_path / "client", authority, "ann")


@asynccontextmanager
async def server(authority: Authority) -> AsyncIterator[int]:
    """Provide a port whose server answers with the common name of the client's certificate."""
    pair = authority.issue("server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.ca)
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_REQUIRED

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = dict(part[0] for part in writer.get_extra_info("peercert")["subject"])
        writer.write(subject["commonName"].encode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as listening:
        yield listening.sockets[0].getsockname()[1]


async def who(context: ssl.SSLContext, port: int) -> str:
    """Return the name under which a server accepts this context. Raises ssl.SSLError."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_new_connection_uses_the_present_certificate(
    files: Files, authority: Authority, run: object
) -> None:
    async def both() -> tuple[str, str]:
        context = kafka_context(files.settings())
        async with server(authority) as port:
            first = await who(context, port)
            files.put(authority.issue("bob"))
            return first, await who(context, port)

    assert run(both()) == ("ann", "bob")  # type: ignore[operator]


async def test_a_replaced_authority_is_trusted_and_the_old_one_no_longer(
    files: Files, authority: Authority, other: Authority
) -> None:
    context = kafka_context(files.settings())
    async with server(authority) as old, server(other) as new:
        with pytest.raises(ssl.SSLError):
            await who(context, new)
        files.trust(other)
        files.put(other.issue("ann"))
        assert await who(context, new) == "ann"
        with pytest.raises(ssl.SSLError):
            await who(context, old)


async def test_a_pair_that_is_half_written_leaves_the_old_one_in_use(
    files: Files, authority: Authority
) -> None:
    context = kafka_context(files.settings())
    pair = authority.issue("bob")
    async with server(authority) as port:
        shutil.copy(pair.certificate, files.certificate)
        assert await who(context, port) == "ann"
        files.key.unlink()
        assert await who(context, port) == "ann"
        shutil.copy(pair.key, files.key)
        assert await who(context, port) == "bob"


async def test_unusable_files_are_tried_again_without_a_visible_change(
    files: Files, authority: Authority
) -> None:
    context = kafka_context(files.settings())
    pair = authority.issue("bob")
    shutil.copy(pair.certificate, files.certificate)
    async with server(authority) as port:
        for key, user in ((b"?" * pair.key.stat().st_size, "ann"), (pair.key.read_bytes(), "bob")):
            files.key.write_bytes(key)
            os.utime(files.key, (0, 0))  # two writes within one tick of the file system's clock
            assert await who(context, port) == user


async def test_links_that_are_swapped_count_as_a_change(
    tmp_path: Path, files: Files, authority: Authority
) -> None:
    pair = authority.issue("bob")
    link = tmp_path / "current"
    link.symlink_to(files.certificate.parent)
    context = kafka_context(
        files.settings(ssl_certfile=link / "client.pem", ssl_keyfile=link / "client.key")
    )
    new = tmp_path / "new"
    new.mkdir()
    shutil.copy(pair.certificate, new / "client.pem")
    shutil.copy(pair.key, new / "client.key")
    async with server(authority) as port:
        link.unlink()
        link.symlink_to(new)
        assert await who(context, port) == "bob"


def test_all_clients_with_equal_settings_share_a_context(files: Files) -> None:
    assert kafka_context(files.settings()) is kafka_context(files.settings())


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile"])
def test_a_file_that_is_not_there_is_named_with_its_setting(files: Files, name: str) -> None:
    missing = files.ca.with_name("none.pem")
    with pytest.raises(SettingsError, match=rf"^kafka\.{name}: .*none\.pem: No such file"):
        kafka_context(files.settings(**{name: missing}))


def test_an_authority_s_file_without_a_certificate_is_named(files: Files) -> None:
    files.ca.write_text("")
    with pytest.raises(SettingsError, match=r"^kafka\.ssl_cafile: .*ca\.pem: it holds no"):
        kafka_context(files.settings())


def test_a_pair_that_does_not_match_is_a_settings_error_at_the_start(
    files: Files, authority: Authority
) -> None:
    shutil.copy(authority.issue("bob").key, files.key)
    with pytest.raises(SettingsError, match=r"kafka\.ssl_keyfile.*client\.key are not a cert"):
        kafka_context(files.settings())


def test_an_encrypted_key_without_a_password_does_not_prompt(files: Files) -> None:
    encrypted = files.key.with_name("encrypted.key")
    subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-in", files.key, "-passout", "pass:x", "-out", encrypted],
        check=True,
        capture_output=True,
    )
    with_password = {"ssl_keyfile": encrypted, "ssl_password": "x"}
    kafka_context(files.settings(**with_password))
    with pytest.raises(SettingsError, match=r"kafka\.ssl_password"):
        kafka_context(files.settings(ssl_keyfile=encrypted))
