"""Do the pages for people name what the code has: settings, metrics, events, codes and files?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from dragoman_schemas.failures import RETRYABLE, FailureCode
from dragoman_worker.metrics import Metrics, TimesFamily
from dragoman_worker.process.supervisor import ReplicaMetrics
from dragoman_worker.settings import WorkerSettings

_ROOT = Path(__file__).parents[3]
_WORKER = _ROOT / "worker" / "dragoman_worker"
_OPERATIONS = _ROOT / "docs" / "operations.md"
_PAGES = [_ROOT / "README.md", _ROOT / "docs" / "internals.md", _OPERATIONS]
_LINK = re.compile(r'\]\((?!https?://)([^)#]*)(#[^)]+)?\)|(?:src|srcset)="([^"]+)"')
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _rows(heading: str) -> dict[str, list[str]]:
    """The cells behind each first cell of the first table below a heading."""
    text = _OPERATIONS.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text.split("\n## ", 1)[0], re.MULTILINE)
    assert table is not None
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.group().splitlines()[2:]]
    return {cells[0].strip().strip("`"): [cell.strip() for cell in cells[1:]] for cells in rows}


# --- settings -------------------------------------------------------------------------------------


def _settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _settings(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _as_written(default: Any) -> str:
    if default is None or default is PydanticUndefined:
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`{', '.join(default)}`"
    if isinstance(default, int):
        return f"`{default:,}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def test_every_setting_is_documented_with_its_default_and_no_other() -> None:
    documented = {name: cells[0] for name, cells in _rows("Settings").items()}
    expected = {name: _as_written(field.default) for name, field in _settings(WorkerSettings)}
    assert documented == expected | {"engine.options": "`{}`"}


# --- metrics, events, codes -----------------------------------------------------------------------


def test_every_metric_is_documented_with_its_labels_and_no_other() -> None:
    ours: list[Metrics | ReplicaMetrics] = [
        Metrics(CollectorRegistry()),
        ReplicaMetrics(CollectorRegistry()),
    ]
    expected = {
        family.name + ("_total" if family.type == "counter" else "")
        for metrics in ours
        for family in metrics.registry.collect()
    }
    documented = _rows("Metrics")
    assert set(documented) == expected
    labelled: dict[str, Sequence[str]] = {}
    for metric in (each for metrics in ours for each in metrics.registry._collector_to_names):
        if isinstance(metric, TimesFamily):
            labelled[metric.name] = metric.labels
        elif isinstance(metric, MetricWrapperBase):
            labelled[metric._name] = metric._labelnames
    for name, cells in documented.items():
        labels = labelled[name.removesuffix("_total")]
        assert cells[0] == " ".join(f"`{label}`" for label in labels), name


def _logged_events() -> set[str]:
    """The first argument of every call of a logger's method in the worker."""
    levels = {"debug", "info", "warning", "error", "critical"}
    events = {"run_failed"}  # written without a logger: structlog may be what is missing
    for path in _WORKER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in levels and node.args and isinstance(node.args[0], ast.Constant):
                events.add(str(node.args[0].value))
    return events


def test_every_log_event_is_documented_and_no_other() -> None:
    documented = {name for names in _rows("Log") for name in names.replace("`", "").split()}
    assert documented == _logged_events()


def test_every_failure_code_is_documented_with_whether_a_replay_helps() -> None:
    documented = {code: cells[1] for code, cells in _rows("Failure codes").items()}
    assert documented == {code.value: "yes" if code in RETRYABLE else "no" for code in FailureCode}


# --- links and figures ----------------------------------------------------------------------------


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    found = _LINK.findall(page.read_text(encoding="utf-8"))
    assert found
    for path, anchor, figure in found:
        target = page.parent / (path or figure) if path or figure else page
        assert target.exists(), path or figure
        if anchor:
            headings = _HEADING.findall(target.read_text(encoding="utf-8"))
            assert anchor[1:] in {_anchor(heading) for heading in headings}, path + anchor


def test_the_dark_figure_is_the_light_one_in_other_colours() -> None:
    light, dark = (
        re.sub(r"#[0-9a-f]{6}", "#", (_ROOT / "docs" / "img" / name).read_text(encoding="utf-8"))
        for name in ("flow-light.svg", "flow-dark.svg")
    )
    assert light == dark


def test_the_readme_stays_short() -> None:
    assert len((_ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 250
