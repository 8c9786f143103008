"""Tests that share something expensive run in one process."""

from __future__ import annotations

import pytest

from support.plugins.side_by_side import group_of, place_of


@pytest.mark.parametrize(
    ("node_id", "group"),
    [
        ("tests/integration/test_why_vllm.py::test_two[x]", "vllm"),
        ("tests/integration/test_vllm_engine.py::test_one", "vllm"),
        ("tests/contract/test_engine.py::test_one[vllm]", "vllm"),
        ("tests/integration/test_readme.py::test_one", "client environment"),
        ("tests/chaos/test_seeded_storms.py::test_one", "storms"),
        ("tests/chaos/test_targeted_storms.py::test_one", "storms"),
        (
            "tests/unit/worker/flow/test_fair_queue.py::test_one",
            "tests/unit/worker/flow/test_fair_queue.py",
        ),
    ],
)
def test_a_test_is_grouped_with_its_file_or_with_files_that_share_a_service(
    node_id: str, group: str
) -> None:
    assert group_of(node_id) == group


def test_engines_and_storms_start_first_and_unit_tests_last() -> None:
    groups = ["tests/unit/test_a.py", "tests/chaos/test_b.py", "storms", "vllm"]
    assert sorted(groups, key=place_of) == groups[::-1]
