"""Fixtures of the storms: three brokers for all of them, one Redis for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chaos.brokers import Brokers
from support.chaos.storm import Inspect, Options, Row, explained, storm
from support.chaos.system import Dragoman

RunStorm = Callable[..., Row]


@pytest.fixture(scope="session")
def brokers(kafka_installed: Path) -> Iterator[Brokers]:
    """Start a cluster of three brokers, which every storm leaves repaired."""
    with Brokers() as cluster:
        yield cluster


@pytest.fixture
def run_storm(brokers: Brokers, redis_installed: str, tmp_path: Path) -> RunStorm:
    """Return a function that runs one storm and fails if a guarantee broke.

    Example: `run_storm(seed=1, jobs=3000, settings={...})`. Workers have supervisors only with
    `supervised=True`.
    """
    del redis_installed

    def run(
        *,
        settings: dict[str, Any] | None = None,
        supervised: bool = False,
        inspect: Inspect | None = None,
        **options: Any,
    ) -> Row:
        chosen = Options(**{"folder": tmp_path, "seed": 0, **options})
        system = Dragoman(settings=settings, supervised=supervised)
        row = storm(brokers, system, chosen, inspect)
        assert not row.broken, explained(row, Path(row.timeline), chosen)
        assert not row.failed, row.problems
        assert row.duplicate_computations < row.jobs / 2, "more would make the bound meaningless"
        return row

    return run
