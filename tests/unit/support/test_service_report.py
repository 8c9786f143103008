"""The summary counts tests on real services and skipped tests."""

from __future__ import annotations

import os
import sys

import pytest

pytest_plugins = ["pytester"]

_CONFTEST = """
import pytest
from support.plugins.service_report import ServiceReport

def pytest_configure(config):
    config.addinivalue_line("markers", "kafka: x")
    config.addinivalue_line("markers", "redis: x")
    config.addinivalue_line("markers", "vllm: x")
    config.pluginmanager.register(ServiceReport())

@pytest.fixture
def kafka():
    return "broker"

@pytest.fixture
def redis_server():
    pytest.skip("no redis-server")
"""
_TESTS = """
import pytest

def test_with_kafka(kafka):
    assert kafka

def test_with_redis(redis_server):
    assert False

@pytest.mark.xfail
def test_expected_to_fail():
    assert False
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(_CONFTEST)
    pytester.makepyfile(_TESTS)
    return pytester


@pytest.mark.parametrize("side_by_side", [(), ("-n", "2")], ids=["one", "two"])
def test_tests_are_counted_by_the_services_whose_fixtures_they_use(
    side_by_side: tuple[str, ...], suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAGOMAN_NO_SKIPS", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    result = suite.runpytest("-p", "no:asyncio", *side_by_side)
    result.assert_outcomes(passed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*Kafka 1, Redis 0, vLLM 0, llama.cpp 0; skipped tests: 1"])


def test_fixtures_select_by_marker(suite: pytest.Pytester) -> None:
    suite.runpytest("-p", "no:asyncio", "-m", "kafka").assert_outcomes(passed=1, deselected=2)


def test_a_skip_fails_where_skips_are_forbidden(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_NO_SKIPS", "1")
    result = suite.runpytest("-p", "no:asyncio")
    outcomes = result.parseoutcomes()
    assert outcomes.get("skipped", 0) == 0
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1
    assert result.ret == pytest.ExitCode.TESTS_FAILED
