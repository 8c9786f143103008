"""Secrets are recognised by type, name and form; other values stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from dragoman_connections.secrets import is_secret, masked_setting, without_secrets

SECRET_NAMES = [
    "password",
    "sentinel_password",
    "ssl_password",
    "hf_token",
    "api-key",
    "apiKey",
    "secretAccessKey",
    "aws_access_key_id",
    "OPENAI_API_KEY",
    "client_secret",
    "Authorization",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_is_recognised_by_name(name: str) -> None:
    assert is_secret(name, "hush")
    assert not is_secret(name, 7)
    assert not is_secret(name, None)


def test_a_secret_is_recognised_by_type() -> None:
    assert is_secret("anything", SecretStr("hush"))


@pytest.mark.parametrize(
    "value",
    [
        "redis://:hush@host/0",
        "http://me@host",
        "https://host/path?api_key=hush",
        "redis://:pass/word@host",
        "-----BEGIN RSA PRIVATE KEY-----\nhush",
        "hf_abcdefghijklmnopqrstuvwx",
        "Bearer hush",
        "x://[",
    ],
)
def test_a_secret_is_recognised_by_form(value: str) -> None:
    assert is_secret("anything", value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_batched_tokens", "8192"),
        ("tokenizer", "/models/tokenizer"),
        ("tokenizer_mode", "auto"),
        ("ssl_keyfile", "/etc/tls/key.pem"),
        ("sasl_plain_username", "worker"),
        ("hf_token", "true"),
        ("url", "redis://127.0.0.1:6379/0?ssl_certfile=a.pem"),
        ("key_prefix", "dragoman:"),
        ("profile", "chat"),
    ],
)
def test_other_values_stay(name: str, value: str) -> None:
    assert not is_secret(name, value)


def test_a_pair_is_shown_without_its_secret() -> None:
    assert masked_setting("engine.options.hf_token=hush") == "engine.options.hf_token=***"
    assert masked_setting("--set=redis.url=redis://:hush@h/0") == "--set=redis.url=***"
    assert masked_setting('engine.options={"hf_token": "hush"}') == "engine.options=***"
    for plain in ("engine.kind=echo", "--json", "--set", "tune"):
        assert masked_setting(plain) == plain


trees = st.recursive(
    st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), trees), st.sampled_from(SECRET_NAMES), st.integers(0, 3))
def test_a_secret_at_any_depth_is_omitted_and_named(
    tree: dict[str, Any], name: str, depth: int
) -> None:
    held: dict[str, Any] = {**tree, name: "hush-hush"}
    for _ in range(depth):
        held = {"list": [held]} if depth == 2 else {"group": held, "plain": 1}
    omitted: list[str] = []
    kept = without_secrets(held, omitted.append)
    assert "hush-hush" not in json.dumps(kept)
    assert omitted
