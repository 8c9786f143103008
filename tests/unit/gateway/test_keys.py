"""API keys: who may ask, how a changed file counts, and what a secret leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_gateway.keys import KeyRing, new_key
from dragoman_gateway.settings import GatewaySettings
from support.fakes.played_gateway import PlayedGateway, write_keys

ASKED = {"text": "Hello.", "source_lang": "EN", "target_lang": "DE"}


def header(secret: str) -> dict[str, str]:
    return {"Authorization": f"DeepL-Auth-Key {secret}"}


def read(path: Path) -> KeyRing:
    return KeyRing(path, ("dragoman.jobs", "interactive"))


async def test_without_a_file_of_keys_anyone_on_this_machine_may_ask() -> None:
    async with PlayedGateway() as gateway:
        status, _ = await gateway.post("/v2/translate", ASKED, headers=header("whatever"))
        (job,) = gateway.client.submitted
    assert (status, job.metadata) == (200, {"api": "deepl", "key": "local"})


@pytest.mark.parametrize(
    "headers",
    [{}, header("wrong"), header(""), {"Authorization": "Basic YTpi"}, header("s3cret ä")],
)
async def test_a_missing_and_a_wrong_key_are_the_same_403(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with PlayedGateway(keys_file=write_keys(tmp_path, "s3cret")) as gateway:
        status, body = await gateway.post("/v2/translate", ASKED, headers=headers)
        assert gateway.client.submitted == []
    assert (status, body) == (403, {"message": "Wrong API key."})


async def test_a_key_is_judged_before_what_it_asks(tmp_path: Path) -> None:
    async with PlayedGateway(keys_file=write_keys(tmp_path, "s3cret")) as gateway:
        status, _ = await gateway.post("/v2/translate", {"target_lang": "nonsense"})
    assert status == 403


async def test_a_key_may_use_its_apis_only(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, 's3cret\napis = ["libretranslate"]')
    async with PlayedGateway(keys_file=keys) as gateway:
        status, body = await gateway.post("/v2/translate", ASKED, headers=header("s3cret"))
    assert (status, body) == (403, {"message": "This key may not use this API."})


async def test_keys_never_share_a_job_and_may_leave_the_memory_alone(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, "one", 'two\nmemory = "off"\nprofile = "chat"')
    async with PlayedGateway(keys_file=keys) as gateway:
        for secret in ("one", "two"):
            status, _ = await gateway.post("/v2/translate", ASKED, headers=header(secret))
            assert status == 200
        first, second = gateway.client.submitted
    assert first.job_id != second.job_id
    assert (first.memory, second.memory, second.profile) == (None, "off", "chat")


async def test_a_key_in_the_query_counts_only_where_it_is_allowed(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, "s3cret")
    found = []
    for allowed in (False, True):
        async with PlayedGateway(keys_file=keys, allow_query_keys=allowed) as gateway:
            query, _ = await gateway.post("/v2/translate?auth_key=s3cret", ASKED)
            body, _ = await gateway.post("/v2/translate", {**ASKED, "auth_key": "s3cret"})
            found.append((query, body))
    assert found == [(403, 200), (200, 200)]


def test_an_expired_key_is_none(tmp_path: Path) -> None:
    ring = read(write_keys(tmp_path, "old\nexpires = 2020-01-01T00:00:00Z", "new"))
    assert ring.find("old") is None
    assert ring.find("new") is not None


def test_a_changed_file_counts_at_once_and_a_broken_one_never(tmp_path: Path) -> None:
    said: list[str] = []
    ring = read(write_keys(tmp_path, "one"))
    write_keys(tmp_path, "one", "two")
    ring.refresh(said.append)
    assert ring.find("two") is not None
    (tmp_path / "keys.toml").write_text("[[key]\n")
    ring.refresh(said.append)
    ring.refresh(said.append)
    assert ring.find("two") is not None
    assert len(said) == 1
    write_keys(tmp_path, "one", "three")
    ring.refresh(said.append)
    assert ring.find("two") is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[[key]]\nid = "a"\nsha256 = "short"\n', "sha256"),
        (f'[[key]]\nid = "a b"\nsha256 = "{"0" * 64}"\n', "id"),
        (f'[[key]]\nid = "a"\nsha256 = "{"0" * 64}"\ncolour = 1\n', "colour"),
        (f'[[key]]\nid = "a"\nsha256 = "{"0" * 64}"\nclass = "none"\n', "class none"),
        (f'[[key]]\nid = "a"\nsha256 = "{"0" * 64}"\n' * 2, "same id"),
        (
            f'[[key]]\nid = "a"\nsha256 = "{"0" * 64}"\n[[key]]\nid = "b"\nsha256 = "{"0" * 64}"\n',
            "same sha256",
        ),
        (f'[[key]]\nid = "a"\nsha256 = "{"0" * 64}"\nexpires = 2027-01-31T00:00:00\n', "expires"),
        ('[[key]]\nid = "a"\nsha256 = "dg_canary"\n', "sha256"),
        ('[[key]]\nid = "a"\nsecret = "dg_canary"\n', "secret"),
        ('[[key]]\nid = "a"\nsecret = dg_canary\n', "keys.toml"),
        ("key = 1", "key"),
        ("\x00", "keys.toml"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match=words) as refused:
        read(path)
    assert "canary" not in str(refused.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        with pytest.raises(SettingsError, match=r"serve\.keys_file"):
            read(path)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = write_keys(tmp_path, "one")
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        read(path)
    os.chmod(path, 0o440)  # noqa: PTH101 - as a Secret of Kubernetes is mounted
    assert read(path).find("one") is not None


def test_an_empty_secret_is_none_even_if_the_file_has_its_digest(tmp_path: Path) -> None:
    ring = read(write_keys(tmp_path, ""))
    assert ring.find("") is None
    assert ring.find(None) is None


def test_a_new_key_is_found_by_its_secret_alone(tmp_path: Path) -> None:
    secret, lines = new_key("shop", free=True)
    path = tmp_path / "keys.toml"
    path.write_text(lines)
    path.chmod(0o600)
    assert secret.startswith("dg_")
    assert secret.endswith(":fx")
    assert secret not in lines
    found = read(path).find(secret)
    assert found is not None
    assert found.id == "shop"
    with pytest.raises(SettingsError, match="not a key's id"):
        new_key("no spaces")


def test_another_host_needs_keys() -> None:
    with pytest.raises(SettingsError, match="keys_file is needed"):
        load_settings(GatewaySettings, options={"serve.host": "192.0.2.1"})


@pytest.mark.parametrize("given", ["de, pt_br", '["de", "pt-BR"]'])
def test_the_environment_gives_names_with_commas_or_as_json(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE__LANGUAGES", given)
    monkeypatch.setenv("DRAGOMAN_SERVE__APIS", "deepl")
    settings = load_settings(GatewaySettings).serve
    assert (settings.languages, settings.apis) == (("de", "pt-BR"), ("deepl",))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"serve.languages": "xx-nonsense-"}, "serve.languages"),
        ({"serve.apis": "google"}, "serve.apis"),
        ({"serve.cors_origins": "[broken"}, "serve.cors_origins"),
        ({"serve.tls_cert": "/a.pem"}, "tls_key"),
        ({"serve.unknown": 1}, "serve.unknown"),
    ],
)
def test_a_wrong_setting_is_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        load_settings(GatewaySettings, options=options)
