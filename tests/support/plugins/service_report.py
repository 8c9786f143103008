"""Markers and counts of tests that ran against a real Kafka, Redis, vLLM and llama.cpp.

A pytest plugin, registered by conftest.py. Using a service's fixture marks the test, so that
`-m kafka` selects it and the summary counts it. With DRAGOMAN_NO_SKIPS=1 a skip is a failure, so
that `make test` and CI never report success for a test that did not run.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

# fixture -> the marker of its service
_MARKER_OF = {
    "kafka": "kafka",
    "own_kafka": "kafka",
    "redis_server": "redis",
    "own_redis": "redis",
    "redis_url": "redis",
    "demo_model": "vllm",
    "vllm_engine": "vllm",
    "vllm_server": "vllm",
    "llama_installed": "llama_cpp",
}
_SERVICES = {"kafka": "Kafka", "redis": "Redis", "vllm": "vLLM", "llama_cpp": "llama.cpp"}


class ServiceReport:
    """Counts outcomes per service over one run."""

    def __init__(self) -> None:
        self._passed: Counter[str] = Counter()
        self._skipped = 0
        self._skips_forbidden = os.environ.get("DRAGOMAN_NO_SKIPS") == "1"

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for fixture in getattr(item, "fixturenames", ()):
                if marker := _MARKER_OF.get(fixture):
                    item.add_marker(marker)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        # An expected failure is reported as skipped too, but it did run.
        if report.skipped and not hasattr(report, "wasxfail") and self._skips_forbidden:
            _fail(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.skipped and self._skips_forbidden:
            _fail(report)
        return report

    # With several processes, all of their reports arrive here.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped += 1
        if report.when == "call" and report.passed:
            self._passed.update(name for name in _SERVICES if name in report.keywords)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._skipped += report.skipped

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        counts = ", ".join(f"{title} {self._passed[name]}" for name, title in _SERVICES.items())
        terminalreporter.section("services", sep="-")
        terminalreporter.line(
            f"passed against the real thing: {counts}; skipped tests: {self._skipped}",
            yellow=self._skipped > 0,
        )


def _fail(report: Any) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{reason}\n(a skip is a failure while DRAGOMAN_NO_SKIPS=1)"
