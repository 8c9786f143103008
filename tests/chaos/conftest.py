"""What do storms stand on? Three real brokers for all of them, and a Redis of its own each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chaos.brokers import Brokers
from support.chaos.storm import Inspect, Options, Row, explained, storm
from support.chaos.system import Dragoman

Weather = Callable[..., Row]


@pytest.fixture(scope="session")
def brokers(kafka_installed: Path) -> Iterator[Brokers]:
    """A cluster of three, which every storm leaves mended."""
    with Brokers() as cluster:
        yield cluster


@pytest.fixture
def weather(brokers: Brokers, redis_installed: str, tmp_path: Path) -> Weather:
    """Run one storm, `weather(seed=1, jobs=3000, settings={...})`; fails if the promise broke."""
    del redis_installed

    def blow(
        *, settings: dict[str, Any] | None = None, inspect: Inspect | None = None, **options: Any
    ) -> Row:
        chosen = Options(**{"folder": tmp_path, "seed": 0, **options})
        row = storm(brokers, Dragoman(settings=settings), chosen, inspect)
        assert not row.broken, explained(row, Path(row.timeline), chosen)
        assert not row.failed, row.problems
        assert row.duplicate_computations < row.jobs / 2, "so many that the bound means nothing"
        return row

    return blow
