"""Tests that the locks satisfy pyproject.toml, agree with each other and name no host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_ROOT = Path(__file__).parents[3]
_LOCKS = _ROOT / "requirements"


_EXTRAS = ("echo", "documents", "serve", "otel", "msk", "box")


def _locked(name: str) -> dict[str, str]:
    text = (_LOCKS / name).read_text(encoding="utf-8")
    pins = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(package): version for package, version in pins}


def _asked(*extras: str, groups: tuple[str, ...] = ()) -> list[Requirement]:
    metadata = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = list(metadata["project"]["dependencies"])
    for extra in extras:
        lines += metadata["project"]["optional-dependencies"][extra]
    for group in groups:
        lines += metadata["dependency-groups"][group]
    requirements = [Requirement(line) for line in lines]
    return [one for one in requirements if one.marker is None or one.marker.evaluate()]


@pytest.mark.parametrize(
    ("lock", "asked"),
    [
        ("client.lock", _asked()),
        *((f"{extra}.lock", _asked(extra)) for extra in _EXTRAS),
        ("cpu.lock", _asked(*_EXTRAS, groups=("dev", "deploy", "cpu-engine"))),
    ],
)
def test_a_lock_holds_what_is_asked_for(lock: str, asked: list[Requirement]) -> None:
    pins = _locked(lock)
    unmet = [
        str(one)
        for one in asked
        if not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"), prereleases=True)
    ]
    assert unmet == [], "make lock"


@pytest.mark.parametrize("lock", ["client", *_EXTRAS])
def test_users_have_the_versions_that_the_tests_ran_with(lock: str) -> None:
    tested = _locked("cpu.lock")
    pins = _locked(f"{lock}.lock")
    assert pins
    assert {name: tested.get(name) for name in pins} == pins


@pytest.mark.parametrize("lock", sorted(path.name for path in _LOCKS.glob("*.lock")))
def test_a_lock_names_no_host(lock: str) -> None:
    assert "://" not in (_LOCKS / lock).read_text(encoding="utf-8")
