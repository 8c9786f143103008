"""Tests that the Grafana dashboards are current and use metrics that exist."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from support.ci_scripts import script
from support.metric_names import metric_names

_dashboards: Any = script("dashboards")
_BOARDS = _dashboards.BOARDS
_NAMES = [board.name for board in _BOARDS]


@pytest.fixture(params=_BOARDS, ids=_NAMES)
def board(request: pytest.FixtureRequest) -> Any:
    return request.param


def _file(board: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        (_dashboards.FOLDER / f"{board.name}.json").read_text(encoding="utf-8")
    )
    return loaded


def _expressions(board: Any) -> list[str]:
    panels = _dashboards.panels(board)
    return [expression for panel in panels for expression in _dashboards.expressions(panel)]


def test_a_dashboard_is_current(board: Any) -> None:
    text = (_dashboards.FOLDER / f"{board.name}.json").read_text(encoding="utf-8")
    assert text == _dashboards.built(board), "run: python .ci/dashboards.py"


def test_there_are_three_dashboards_and_no_other_file() -> None:
    assert sorted(file.stem for file in _dashboards.FOLDER.iterdir()) == sorted(_NAMES)
    assert sorted(_NAMES) == ["fleet", "quality", "worker"]


def test_every_query_uses_metrics_that_exist_and_the_selected_job(board: Any) -> None:
    for expression in _expressions(board):
        named = re.findall(r"\bdragoman_[a-z_]+", expression)
        assert named
        assert set(named) <= metric_names()
        assert expression.count('job=~"$job"') == len(named)


def test_every_metric_is_on_a_dashboard() -> None:
    shown = {
        re.sub(r"_(bucket|sum|count)$", "", name)
        for board in _BOARDS
        for expression in _expressions(board)
        for name in re.findall(r"\bdragoman_[a-z_]+", expression)
    }
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in metric_names()}
    # The same for each topic as what is shown for all.
    by_topic = {"dragoman_class_jobs_in_flight", "dragoman_class_items_waiting"}
    # Estimates of one replica; the dashboards divide the fleet's lag by its pace.
    estimates = {"dragoman_lag_seconds", "dragoman_lag_tokens"}
    assert known - shown - by_topic == estimates, "add a panel to .ci/boards.py"


def test_panels_have_a_title_a_unit_and_a_place_of_their_own(board: Any) -> None:
    places = []
    for panel in _file(board)["panels"]:
        place = panel["gridPos"]
        assert panel["title"]
        assert place["x"] + place["w"] <= 24
        places.append((place["x"], place["y"]))
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"]
            assert all(target["datasource"] for target in [panel])
    assert len(set(places)) == len(places)


def test_a_dashboard_is_found_by_a_lasting_id_and_asks_for_its_source(board: Any) -> None:
    loaded = _file(board)
    assert loaded["uid"] == f"dragoman-{board.name}"
    names = [variable["name"] for variable in loaded["templating"]["list"]]
    assert names[:2] == ["datasource", "job"]
    assert yaml.safe_dump(loaded).count("${datasource}") >= len(loaded["panels"]) / 2
