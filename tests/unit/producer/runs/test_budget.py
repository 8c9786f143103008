"""What a dry run says before anything is paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman_producer.operations.workers import LiveWorker
from dragoman_producer.runs.budget import Spent, costs, rate_of, tokens_for
from dragoman_producer.runs.events import Noted, Planned
from dragoman_producer.runs.request import Reading, RunRequest
from dragoman_producer.runs.translating import run_documents
from dragoman_producer.testing import InMemoryClient


async def planned(folder: Path, client: InMemoryClient, **more: Any) -> Planned:
    """Return what a dry run of two rows says."""
    (folder / "t.csv").write_text("id,t\n1,One shirt.\n2,One shirt.\n3,A hat.\n", "utf-8")
    reading = Reading(columns=("t",))
    given = {"dry_run": True, **more}
    request = RunRequest((folder / "t.csv",), ("de",), folder / "out", reading=reading, **given)
    events = [each async for each in run_documents(client, request)]
    return next(each for each in events if isinstance(each, Planned))


async def test_without_any_rate_the_time_is_unknown_and_rows_and_tokens_are_counted(
    tmp_path: Path,
) -> None:
    found = await planned(tmp_path, InMemoryClient())
    assert found.budget is not None
    assert (found.rows, found.segments, found.unique, found.missing) == (3, 3, 2, 2)
    assert found.budget["seconds"] is found.budget["gpu_hours"] is found.budget["price"] is None
    assert found.budget["prompt_tokens"] > 0
    assert found.budget["error"] == pytest.approx(0.4)


async def test_a_rate_gives_time_gpu_hours_and_price(tmp_path: Path) -> None:
    found = await planned(tmp_path, InMemoryClient(), rate=2.0, price=3.6)
    assert found.budget is not None
    assert found.budget["seconds"] == pytest.approx(1.0)
    assert found.budget["gpu_hours"] == pytest.approx(1 / 3600)
    assert found.budget["price"] == pytest.approx(0.001)


async def test_the_rates_of_live_workers_are_used_where_no_run_has_ended(tmp_path: Path) -> None:
    client = InMemoryClient()
    client.live = [LiveWorker("a.0", "m", 1.0), LiveWorker("a.1", "m", 1.0)]
    found = await planned(tmp_path, client)
    assert found.budget is not None
    assert found.budget["seconds"] == pytest.approx(1.0)
    assert found.budget["gpus"] == 2
    assert "2 live workers" in found.budget["seconds_by"]
    assert found.budget["seconds_at_most"]


async def test_a_run_that_has_ended_gives_its_rate(tmp_path: Path) -> None:
    client = InMemoryClient()
    await planned(tmp_path, client, dry_run=False)
    found = await planned(tmp_path, client)
    assert found.budget is not None
    assert found.budget["seconds_by"] == "earlier runs"
    assert found.missing == 0


async def test_a_run_that_takes_longer_than_results_are_kept_says_so_before_it_starts(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("t\n" + "".join(f"Shirt {n}.\n" for n in range(2_000)), "utf-8")
    client = InMemoryClient()
    client.live = [LiveWorker("a.0", "m", 0.0001)]
    request = RunRequest((tmp_path / "t.csv",), ("de",), tmp_path / "out")
    events = [each async for each in run_documents(client, request)]
    [noted] = [each.what for each in events if isinstance(each, Noted)]
    assert noted == (
        "at the rate of live workers this takes about 86.8 h, and results are kept for 24 h:"
        " if you stop the run, resume it within that time"
    )


def test_earlier_jobs_of_a_model_give_its_tokens_and_their_spread() -> None:
    same = tokens_for(1_000, 9, "en", "de", Spent("m", 4, 400, 200, 100, 4 * 0.25**2))
    assert (same.prompt, same.completion, same.error) == (500, 250, 0.05)
    spread = tokens_for(1_000, 9, "en", "de", Spent("m", 4, 400, 200, 100, 4 * 0.5**2))
    assert spread.error > 0.5


def test_the_rate_that_is_given_comes_before_those_that_are_known() -> None:
    best = rate_of(5.0, 3.0, 1.0, 1)
    assert best is not None
    assert best.texts_per_s == 5.0
    assert rate_of(None, None, 0.0, 3) is None
    assert costs(10, [], None, 1, 2.0)["price"] is None
