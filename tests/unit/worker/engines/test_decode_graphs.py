from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from dragoman_worker.engines.decode_graphs import LARGEST, VLLM_LARGEST, graph_sizes


@pytest.mark.parametrize("sequences", [513, 600, 700, 1_000, 1_023, 1_024])
def test_graphs_reach_all_sequences_and_each_size_is_there_once(sequences: int) -> None:
    sizes = graph_sizes({}, 0.0625, sequences)
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == sequences
    assert all(after - before <= 16 for before, after in pairwise(sizes))


@pytest.mark.parametrize("sequences", [1_025, 4_096, 100_000])
def test_more_sequences_take_no_more_memory_for_graphs(sequences: int) -> None:
    assert graph_sizes({}, 0.0625, sequences) == graph_sizes({}, 0.0625, LARGEST)


@pytest.mark.parametrize("sequences", [1, 256, VLLM_LARGEST])
def test_up_to_vllms_largest_the_sizes_are_vllms(sequences: int) -> None:
    assert graph_sizes({}, 0.0625, sequences) == []


@pytest.mark.parametrize(
    "options",
    [
        {"enforce_eager": True},
        {"compilation_config": {"cudagraph_mode": "NONE"}},
        {"cudagraph_capture_sizes": [1, 2]},
        {"max_cudagraph_capture_size": 64},
        {"speculative_config": {"method": "ngram"}},
        {"kv_transfer_config": {"kv_connector": "LMCacheConnectorV1"}},
        {"scheduler_cls": "own.Scheduler"},
        {"performance_mode": "interactivity"},
        {"data_parallel_size": 4},
        {"pipeline_parallel_size": 2},
        {"enable_chunked_prefill": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_where_nothing_is_grouped_or_the_user_decides_the_sizes_are_vllms(
    options: dict[str, Any],
) -> None:
    assert graph_sizes(options, 0.0625, 1_024) == []


@pytest.mark.parametrize(
    "options",
    [
        {"enforce_eager": False},
        {"speculative_config": None},
        {"pipeline_parallel_size": 1},
        {"tensor_parallel_size": 2},
        {"enable_chunked_prefill": True},
    ],
)
def test_an_option_that_says_what_vllm_does_anyway_changes_nothing(options: dict[str, Any]) -> None:
    assert graph_sizes(options, 0.0625, 1_024)[-1] == 1_024


def test_without_groups_the_sizes_are_vllms() -> None:
    assert graph_sizes({}, 0, 1_024) == []
