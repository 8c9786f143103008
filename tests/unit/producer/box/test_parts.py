"""Parts of a box: their settings files, their environments, and the key of the gateway."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_connections.settings import load_settings, parse_pairs
from dragoman_gateway.keys import KeyRing
from dragoman_gateway.settings import GatewaySettings
from dragoman_producer.box import gateway_part
from dragoman_producer.box.engine_choice import EngineChoice, choice_of
from dragoman_producer.box.gateway_part import own_key
from dragoman_producer.box.part_child import Part, to_toml

_NAMES = st.text("abcdefghij_", min_size=1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = _TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1)


@given(
    st.recursive(_VALUES, lambda inner: st.dictionaries(_NAMES, inner)).filter(
        lambda value: isinstance(value, dict)
    )
)
def test_settings_written_as_toml_are_read_back(settings: dict[str, object]) -> None:
    assert tomllib.loads(to_toml(settings)) == settings


def _echo(*settings: str) -> EngineChoice:
    return choice_of(model=None, server=None, engine="echo", settings=settings)


def _gateway(data: Path, *settings: str) -> Part:
    return gateway_part.gateway_part(
        _echo(*settings), data, bootstrap="127.0.0.1:1", redis_url="unix:///tmp/r.sock"
    )


def test_the_gateway_accepts_its_settings_and_its_key_alone(tmp_path: Path) -> None:
    secret = own_key(tmp_path)
    part = _gateway(tmp_path, "serve.hold_s=5", "engine.echo.latency_s=1")
    config = tmp_path / "gateway.toml"
    config.write_text(to_toml(part.settings), encoding="utf-8")
    settings = load_settings(GatewaySettings, config, parse_pairs(list(part.pairs)))
    assert (settings.serve.hold_s, settings.serve.admin_port) == (5, part.page_port)
    assert settings.redis.url == "unix:///tmp/r.sock"
    keys = KeyRing(settings.serve.keys_file, settings.kafka.topic_names)
    key = keys.find(secret)
    assert key is not None
    assert key.roles == ("admin",)
    assert keys.find("another") is None


def test_the_key_of_a_box_is_made_once_and_keys_of_others_stay(tmp_path: Path) -> None:
    secret, others = own_key(tmp_path), tmp_path / "gateway-keys.toml"
    others.write_text(others.read_text() + f'[[key]]\nid = "shop"\nsha256 = "{"1" * 64}"\n')
    assert own_key(tmp_path) == secret
    (tmp_path / "gateway.key").unlink()
    new = own_key(tmp_path)
    ring = KeyRing(others, ())
    assert len({secret, new}) == 2
    assert [ring.find(each) is not None for each in (secret, new)] == [True, True]
    assert [key.id for key in ring.all][1] == "shop"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o600}


def test_addresses_and_keys_of_a_deployment_do_not_reach_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = ("KAFKA__BOOTSTRAP_SERVERS", "REDIS__URL", "SERVE__KEYS_FILE", "SERVE__ADMIN_PORT")
    for name in (*theirs, "SERVE__CORS_ORIGINS"):
        monkeypatch.setenv(f"DRAGOMAN_{name}", "x")
    names = _gateway(tmp_path).environment
    given = {name for name in names if name.startswith("DRAGOMAN_") and "__" in name}
    assert given == {"DRAGOMAN_SERVE__CORS_ORIGINS"}


@pytest.mark.parametrize("option", [True, False])
def test_a_port_that_is_given_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: bool
) -> None:
    monkeypatch.setattr(gateway_part, "_usual_or_free_port", lambda: 1)
    assert _gateway(tmp_path).settings["serve"]["port"] == 1
    if not option:
        monkeypatch.setenv("DRAGOMAN_SERVE__PORT", "9000")
    part = _gateway(tmp_path, *(["serve.port=9000"] if option else []))
    assert "port" not in part.settings["serve"]


def test_the_gateway_is_there_where_its_extra_is_installed() -> None:
    extras = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert gateway_part.is_installed()
    named = {name.partition(">")[0].replace("-", "_") for name in extras["serve"]}
    assert named - {"dragoman[documents,gates]", "uvloop"} <= set(gateway_part._NEEDS)
