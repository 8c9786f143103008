"""What Grafana and the alerts ask of a Prometheus: each query, and each operand of an alert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from support.ci_scripts import script

RULES: Final = Path(__file__).parents[2] / "deploy/chart/dragoman/files/alerts.yaml"
ONLY_WITH_A_GPU: Final = ("dragoman_gpu_",)
"""Beginnings of the metrics that a worker without a GPU does not have."""

_dashboards: Any = script("dashboards")
# Of a filter by a comparison only the operands have data while nothing is wrong.
_OPERATOR: Final = re.compile(
    r"\b(?:and|or|unless)\b(?: on \([^)]*\))?|\s(?:==|!=|>=|<=|>|<)\s(?:[\d.]+)?"
)


def dashboard_queries(rate_interval: str, *, unit: str | None = None) -> dict[str, str]:
    """Return the queries of all panels by dashboard, title and expression, as Grafana sends them.

    With `unit` those of its panels alone. Queries of GPUs are left out.
    """
    return {
        f"{board.name}: {panel.title}: {expression}": as_sent(expression, rate_interval)
        for board in _dashboards.BOARDS
        for panel in _dashboards.panels(board)
        for expression in _dashboards.expressions(panel)
        if unit in {None, panel.unit}
        if not any(name in expression for name in ONLY_WITH_A_GPU)
    }


def as_sent(expression: str, rate_interval: str) -> str:
    """Return a dashboard's expression with Grafana's variables filled in."""
    found = re.sub(r"\$(job|instance|replica)\b", ".*", expression)
    return found.replace("$__rate_interval", rate_interval).replace("$__range", "5m")


def alert_queries() -> dict[str, str]:
    """Return the operands of every alert's comparisons and set operators, by alert and operand."""
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {
        f"{rule['alert']}: {operand}": _of_now(operand)
        for rule in group["rules"]
        if "alert" in rule
        for operand in operands(rule["expr"])
    }


def operands(expression: str) -> Iterator[str]:
    """Yield what an alert's expression compares, joins and excludes, each by itself.

    Example: `sum (a > 0 unless b offset 1h) > 2` has the operands `a` and `b offset 1h`.
    """
    for part in _OPERATOR.split(expression):
        if operand := _balanced(part).strip():
            yield operand


def _balanced(part: str) -> str:
    """Return the part between its unmatched opening and closing parentheses."""
    start, opened = 0, []
    for place, sign in enumerate(part):
        if sign == "(":
            opened.append(place + 1)
        elif sign == ")":
            if not opened:
                return part[start:place]
            opened.pop()
    return part[opened[-1] :] if opened else part


def _of_now(operand: str) -> str:
    """Return an operand that a Prometheus which started a minute ago has data for."""
    return re.sub(r" offset \w+", "", operand)
