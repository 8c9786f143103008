"""Writer of the Grafana dashboards in boards.py.

`python .ci/dashboards.py` writes them beside the alerts in the Helm chart, from where the compose
file takes them too; `tests/unit/deploy/test_dashboards.py` fails while they are not current.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from boards import BOARDS, JOB, Board, Chart, Figure, Query
from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueGraphMode,
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableRefresh,
)

FOLDER: Final = Path(__file__).parent.parent / "deploy/chart/dragoman/files/dashboards"
_JOBS: Final = '__name__=~"dragoman_replica_up|dragoman_gateway_held"'
_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")


def panels(board: Board) -> Iterator[Figure | Chart]:
    """Return the panels of a dashboard in their order."""
    return (panel for row in board.rows.values() for panel in row)


def expressions(panel: Figure | Chart) -> list[str]:
    """Return the expressions of a panel's queries."""
    if isinstance(panel, Figure):
        return [panel.expression]
    return [expression for expression, _ in panel.queries]


def _target(query: Query, number: int) -> prometheus.Dataquery:
    expression, legend = query
    return prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(chr(65 + number))


def _figure(panel: Figure, span: int) -> stat.Panel:
    built = stat.Panel().title(panel.title).description(panel.about).datasource(_SOURCE)
    built = built.unit(panel.unit).decimals(1).span(span).height(4).no_value("-")
    built = built.graph_mode(BigValueGraphMode.AREA)
    return built.with_target(_target((panel.expression, ""), 0))


def _chart(panel: Chart, span: int) -> timeseries.Panel:
    built = timeseries.Panel().title(panel.title).description(panel.about).datasource(_SOURCE)
    built = built.unit(panel.unit).min(0).span(span).height(8).line_width(1)
    built = built.fill_opacity(25 if panel.stacked else 8)
    built = built.legend(
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
        .show_legend(True)
    ).tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    if panel.stacked:
        built = built.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    for number, query in enumerate(panel.queries):
        built = built.with_target(_target(query, number))
    return built


def _variable(name: str, query: str, label: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(_SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .include_all(True)
        .multi(True)
        .all_value(".*")
        .current({"selected": True, "text": "All", "value": "$__all"})  # type: ignore[arg-type]
    )


def _variables(board: Board) -> Iterator[Any]:
    yield dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    yield _variable("job", f"label_values({{{_JOBS}}}, job)", "Job")
    if board.by_replica:
        of_job = f"dragoman_replica_up{{{JOB}}}"
        yield _variable("instance", f"label_values({of_job}, instance)", "Worker")
        yield _variable("replica", f"label_values({of_job}, replica)", "Replica")


def built(board: Board) -> str:
    """Return a dashboard in Grafana's JSON."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(f"dragoman-{board.name}")
        .description(board.about)
        .tags(["dragoman"])
        .time("now-3h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
    )
    for variable in _variables(board):
        made = made.with_variable(variable)
    for title, panels in board.rows.items():
        made = made.with_row(dashboard.Row(title))
        figures = sum(isinstance(panel, Figure) for panel in panels)
        for panel in panels:
            if isinstance(panel, Figure):
                made = made.with_panel(_figure(panel, 24 // figures))
            else:
                made = made.with_panel(_chart(panel, 8))
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"


def main() -> None:
    """Write every dashboard."""
    FOLDER.mkdir(exist_ok=True)
    for board in BOARDS:
        (FOLDER / f"{board.name}.json").write_text(built(board), encoding="utf-8")


if __name__ == "__main__":
    main()
