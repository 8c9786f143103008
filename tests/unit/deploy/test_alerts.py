"""Tests of the alerts: promtool's cases, existing metrics, and a runbook for each."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman_schemas.failures import FailureCode
from support.metric_names import metric_names

_ROOT = Path(__file__).parents[3]
_CHART = _ROOT / "deploy" / "chart"
_FILES = _CHART / "dragoman" / "files"
_RULES, _OF_KEDA = _FILES / "alerts.yaml", _FILES / "keda-alerts.yaml"
_CASES = sorted(Path(__file__).parent.glob("alerts*_test.yaml"))
_RUNBOOKS = _ROOT / "docs" / "runbooks"


def _rules() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for file in (_RULES, _OF_KEDA):
        groups += yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


_NAMES = [rule["alert"] for rule in _rules()]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, set[bool]]:
    """Whether each alert is expected to fire, over all cases."""
    found: dict[str, set[bool]] = {}
    for file in _CASES:
        for case in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]:
            for one in case["alert_rule_test"]:
                found.setdefault(one["alertname"], set()).add(bool(one["exp_alerts"]))
    return found


@pytest.mark.parametrize("cases", _CASES, ids=lambda file: file.stem)
def test_alerts_fire_and_are_silent_in_the_cases_of_promtool(cases: Path, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: make services")
    text = cases.read_text(encoding="utf-8")
    copy = tmp_path / cases.name
    copy.write_text(
        re.sub(r"^rule_files: .*", f"rule_files: [{_RULES}, {_OF_KEDA}]", text, flags=re.MULTILINE)
    )
    command = [promtool, "test", "rules", str(copy)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("alert", _NAMES)
def test_an_alert_has_a_firing_and_a_silent_case(
    alert: str, verdicts: dict[str, set[bool]]
) -> None:
    assert verdicts[alert] == {True, False}


@pytest.mark.parametrize("rule", _rules(), ids=_NAMES)
def test_an_alert_says_what_to_do_and_links_its_runbook(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["action"]
    page = _ROOT / rule["annotations"]["runbook_url"]
    assert page == _RUNBOOKS / f"{rule['alert']}.md"
    assert page.read_text(encoding="utf-8").startswith(f"# {rule['alert']}\n")


def test_the_index_of_the_runbooks_lists_every_alert_with_its_severity() -> None:
    index = (_RUNBOOKS / "index.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|", index, re.MULTILINE))
    assert listed == {rule["alert"]: rule["labels"]["severity"] for rule in _rules()}
    pages = {page.stem for page in _RUNBOOKS.glob("*.md")} - {"index"}
    assert pages == set(_NAMES)


def test_the_site_has_every_runbook() -> None:
    navigation = (_ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [name for name in _NAMES if f"- runbooks/{name}.md\n" not in navigation] == []


@pytest.mark.parametrize("code", FailureCode)
def test_the_runbook_of_dead_letters_names_the_cause_of_each_code(code: FailureCode) -> None:
    named = f"`{code}`" in (_RUNBOOKS / "DragomanDeadLetters.md").read_text(encoding="utf-8")
    assert named == (code not in {FailureCode.CANCELLED, FailureCode.DEADLINE_EXCEEDED})


def test_alerts_use_metrics_that_exist() -> None:
    for rule in _rules():
        named = set(re.findall(r"\bdragoman_[a-z_]+", rule["expr"]))
        assert named
        assert named <= metric_names()


def test_no_alert_names_a_job_because_a_pod_monitor_names_it_differently() -> None:
    assert not [rule["alert"] for rule in _rules() if re.search(r"job\s*=", rule["expr"])]
