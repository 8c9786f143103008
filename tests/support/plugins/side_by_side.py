"""Groups of tests that run one after another in one process of `pytest -n`.

A pytest plugin, registered by conftest.py. The tests of a file form a group, and so do files that
share something expensive: two vLLMs at a time would start no sooner on two cores, a cluster of
three brokers and the client's environment are built once. Long groups start first, so that no
process is left alone with one at the end.
"""

from __future__ import annotations

import fnmatch
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

_GROUPS: Final = {
    "tests/integration/test_*vllm*.py": "vllm",
    "tests/contract/test_engine.py": "vllm",
    "tests/integration/test_demo.py": "vllm",
    "tests/integration/test_read_only_root.py": "vllm",
    "tests/chaos/test_*_storms.py": "storms",
    "tests/chaos/test_dead_letter_faults.py": "storms",
    "tests/integration/test_light_client.py": "client environment",
    "tests/integration/test_readme.py": "client environment",
    "tests/integration/test_kafka_rights.py": "secured broker",
    "tests/integration/test_secure_broker.py": "secured broker",
}
_ORDER: Final = (
    "vllm",
    "storms",
    "client environment",
    "tests/contract/test_crash_points.py",
    "tests/chaos/",
    "tests/integration/test_translate_documents.py",
    "tests/unit/worker/job/test_odd_records.py",
    "tests/unit/worker/process/test_supervisor.py",
    "secured broker",
    "tests/integration/",
    "tests/unit/producer/runs/",
    "tests/unit/producer/review/",
    "tests/unit/worker/tuning/",
    "tests/contract/",
)


def group_of(node_id: str) -> str:
    """Return the name of the group that a test belongs to."""
    file = node_id.partition("::")[0]
    named = (group for files, group in _GROUPS.items() if fnmatch.fnmatchcase(file, files))
    return next(named, file)


def place_of(group: str) -> int:
    """Return the place of a group in the order of starts, 0 first."""
    return next((n for n, start in enumerate(_ORDER) if group.startswith(start)), len(_ORDER))


class InGroups(LoadScopeScheduling):  # type: ignore[misc]  # mypy takes xdist as untyped
    """xdist's scheduler by scopes, with these groups as scopes."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


class SideBySide:
    """Plugin that orders the tests by group and schedules whole groups."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: place_of(group_of(item.nodeid)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> InGroups:
        config.option.loadscopereorder = (
            False  # True would start the group with the most tests, not the longest
        )
        return InGroups(config, log)
