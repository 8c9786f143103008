"""Tokens are read for every use; one that cannot be used is an outage that names its setting."""

from __future__ import annotations

import base64
import json
import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.kafka_client import client_options
from dragoman_connections.kafka_tokens import TokenFile, UnusableToken, expiry_of, token_problem
from dragoman_connections.settings import KafkaSettings, SettingsError

SASL = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
MSK = {**SASL, "sasl_oauth_msk_region": "eu-central-1"}


def a_token(**claims: Any) -> str:
    parts = ({"alg": "none"}, claims)
    return ".".join(_part(json.dumps(part).encode()) for part in parts) + "."


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


async def test_a_replaced_file_gives_its_new_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = TokenFile(file)
    for number in range(2):
        new = a_token(exp=time.time() + 60, jti=number)
        file.write_text(f"{new}\n")
        assert await tokens.token() == new


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"a\x01auth=Bearer b", "not one bearer token"),
        (b"\xef\xbb\xbfa\xef\xbb\xbfbc", "not one bearer token"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a" * 65_537, "larger than 65,536 bytes"),
        (a_token(exp=1).encode(), "expired"),
        (a_token(exp=-1e308).encode(), "expired"),
    ],
)
async def test_an_unusable_token_is_an_outage_that_names_setting_and_file(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnusableToken, match=says) as caught:
        await TokenFile(file).token()
    assert caught.value.retriable
    assert f"kafka.sasl_oauth_token_file: {file}" in str(caught.value)


async def test_a_file_that_is_rewritten_halfway_is_an_outage_or_left_to_the_broker(
    tmp_path: Path,
) -> None:
    """A token cut anywhere has either no use now or an expiry that the broker judges."""
    file = tmp_path / "token"
    whole = a_token(exp=time.time() + 60, scope="a" * 40)
    left_to_the_broker = []
    for length in range(len(whole)):
        file.write_text(whole[:length])
        with suppress(UnusableToken):
            left_to_the_broker.append(await TokenFile(file).token())
    assert left_to_the_broker
    assert all(whole.startswith(cut) for cut in left_to_the_broker)


@given(st.binary(max_size=60))
def test_a_token_without_a_readable_expiry_is_left_to_the_broker(claims: bytes) -> None:
    assert expiry_of(f"e30.{_part(claims)}.x") == math.inf
    assert expiry_of(claims.decode("latin-1")) == math.inf


@pytest.mark.parametrize(
    "claims",
    [b"[" * 40_000, b'{"exp": "soon"}', b'{"exp": null}', b"7", b'{"exp": 1%s}' % (b"0" * 400)],
    ids=["deep", "text", "null", "no object", "beyond a float"],
)
async def test_a_hostile_expiry_is_ignored(tmp_path: Path, claims: bytes) -> None:
    file = tmp_path / "token"
    file.write_text(f"e30.{_part(claims)}.x")
    assert await TokenFile(file).token()


@pytest.mark.parametrize("given_settings", [{}, {**MSK, "sasl_oauth_token_file": "/run/token"}])
def test_oauthbearer_needs_exactly_one_source_of_tokens(given_settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="one of sasl_oauth_token_file and sasl_oauth_msk_region"):
        KafkaSettings.model_validate({**SASL, **given_settings})


def test_a_missing_signer_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(SettingsError, match=r"msk_region: aws-msk-iam.*pip install '\.\[msk\]'"):
        client_options(KafkaSettings.model_validate(MSK))


class _Signer:
    refuses = False

    @classmethod
    def generate_auth_token(cls, region: str) -> tuple[str, int]:
        if cls.refuses:
            raise LookupError("AKIASECRET")
        return f"signed-for-{region}", 900_000


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> type[_Signer]:
    module = ModuleType("aws_msk_iam_sasl_signer")
    monkeypatch.setattr(module, "MSKAuthTokenProvider", _Signer, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return _Signer


async def test_amazon_s_signer_is_asked_for_the_region_s_token(signer: type[_Signer]) -> None:
    del signer
    options = client_options(KafkaSettings.model_validate(MSK))
    assert await options["sasl_oauth_token_provider"].token() == "signed-for-eu-central-1"


async def test_missing_aws_credentials_are_an_outage_that_quotes_nothing(
    signer: type[_Signer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signer, "refuses", True)
    problem = await token_problem(KafkaSettings.model_validate(MSK))
    assert problem is not None
    assert "kafka.sasl_oauth_msk_region" in problem
    assert "AKIASECRET" not in problem


async def test_other_mechanisms_have_no_token_problem() -> None:
    assert await token_problem(KafkaSettings()) is None
