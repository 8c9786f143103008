"""Which tests run one after another when two run side by side (`pytest -n 2`)?

A pytest plugin, registered by conftest.py. Those of a file do, and so do files that share something
dear: two vLLMs at a time would start no sooner on two cores, and a cluster of three brokers is
built once. Long groups begin first, so that neither half waits for the other at the end.
"""

from __future__ import annotations

import fnmatch
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

_GROUPS: Final = {
    "tests/*/test_*vllm*.py": "vllm",
    "tests/contract/test_engine.py": "vllm",
    "tests/integration/test_demo.py": "vllm",
    "tests/chaos/test_*_storms.py": "storms",
}
_ORDER: Final = ("vllm", "storms", "tests/chaos/", "tests/integration/", "tests/contract/")


def group_of(node_id: str) -> str:
    """The name under which a test is kept together with others."""
    file = node_id.partition("::")[0]
    named = (group for files, group in _GROUPS.items() if fnmatch.fnmatchcase(file, files))
    return next(named, file)


def place_of(group: str) -> int:
    """How early a group begins."""
    return next((n for n, start in enumerate(_ORDER) if group.startswith(start)), len(_ORDER))


class InGroups(LoadScopeScheduling):  # type: ignore[misc]  # mypy takes xdist as untyped
    """xdist's scheduler of scopes, with groups for scopes."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


class SideBySide:
    """Puts groups in order, and hands them out."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: place_of(group_of(item.nodeid)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> InGroups:
        config.option.loadscopereorder = (
            False  # it would begin with the most tests, not the longest
        )
        return InGroups(config, log)
