"""Tests that the chart of a release pulls the images that the release workflow pushes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest
import yaml

_ROOT = Path(__file__).parents[3]
_WORKFLOW = yaml.safe_load((_ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
_TAG, _REPOSITORY = "v0.1.0", "Some-Owner/Dragoman"
_DIGEST = "sha256:" + "0123456789abcdef" * 4


def _run(*command: str | Path) -> str:
    ended = subprocess.run(
        [str(_ROOT / ".ci" / command[0]), *map(str, command[1:])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _filled(text: str, known: Mapping[str, str]) -> str:
    """Return what the workflow makes of a text with expressions."""
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: known[found[1]], text)


def _steps(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = _WORKFLOW["jobs"][job]["steps"]
    return steps


@pytest.fixture(scope="module")
def names() -> dict[str, str]:
    """Return the outputs of the job `names`."""
    [step] = [one for one in _steps("names") if one.get("id") == "names"]
    assert step["run"].startswith('.ci/release-names "$GITHUB_REF_NAME" "$GITHUB_REPOSITORY" ')
    printed = dict(line.split("=", 1) for line in _run("release-names", _TAG, _REPOSITORY).split())
    outputs = _WORKFLOW["jobs"]["names"]["outputs"]
    given = {f"steps.names.outputs.{name}": value for name, value in printed.items()}
    return {f"needs.names.outputs.{name}": _filled(one, given) for name, one in outputs.items()}


@pytest.fixture(scope="module")
def pushed(names: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return the tag of each image, and the line that is kept of it."""
    images = _WORKFLOW["jobs"]["images"]
    [push] = [one for one in images["steps"] if one.get("id") == "push"]
    [keep] = [one for one in images["steps"] if one.get("name") == "Keep what was pushed"]
    found = {}
    for one in images["strategy"]["matrix"]["include"]:
        known = {**names, "matrix.name": one["name"], "steps.push.outputs.digest": _DIGEST}
        known["env.IMAGE"] = _filled(images["env"]["IMAGE"], known)
        line = _filled(keep["env"]["PUSHED"], known)
        found[one["name"]] = (_filled(push["with"]["tags"], known), line)
    return found


@pytest.fixture(scope="module")
def released(
    pushed: dict[str, tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> helm.Chart:
    """Return the chart as the workflow packages it."""
    folder = tmp_path_factory.mktemp("release")
    for name, (_, line) in pushed.items():
        (folder / f"image-{name}.txt").write_text(f"{line}\n", encoding="utf-8")
    _run("package-chart", _TAG, _REPOSITORY, folder, folder / "chart")
    archive = helm.package(folder / "chart" / "dragoman", destination=folder)
    return helm.Chart.load_archive(Path(archive).read_bytes())


def _images(chart: helm.Chart, values: dict[str, Any]) -> dict[str, str]:
    """Return the image of each container by its name."""
    chart.validate_schema(values)
    files = chart.render(values, name="rel", namespace="ns")
    texts = [text for file, text in files.items() if file.endswith(".yaml")]
    objects = [one for text in texts for one in yaml.safe_load_all(text) if one]
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] in _WITH_PODS]
    return {one["name"]: one["image"] for pod in pods for one in pod["containers"]}


_WITH_PODS = {"Deployment", "Job"}
_VALUES: dict[str, Any] = {
    "settings": {"engine": {"kind": "echo"}},
    "hooks": {"topics": {"enabled": True}},
}


def test_the_chart_of_a_release_pulls_the_images_that_were_pushed(
    released: helm.Chart, pushed: dict[str, tuple[str, str]]
) -> None:
    images = _images(released, _VALUES)
    assert images == {
        "worker": f"{pushed['worker'][0]}@{_DIGEST}",
        "topics": f"{pushed['client'][0]}@{_DIGEST}",
    }
    assert pushed["worker"][0] == "ghcr.io/some-owner/dragoman-worker:0.1.0"


def test_a_tag_of_a_user_takes_the_place_of_the_digest(released: helm.Chart) -> None:
    own = {"image": {"repository": "ghcr.io/some-owner/dragoman-echo", "tag": "0.1.0"}}
    assert _images(released, _VALUES | own)["worker"] == "ghcr.io/some-owner/dragoman-echo:0.1.0"


def test_a_registry_gets_names_in_lower_case(
    names: dict[str, str], pushed: dict[str, tuple[str, str]]
) -> None:
    published = [names["needs.names.outputs.charts"], *(tag for tag, _ in pushed.values())]
    assert [one for one in published if one != one.lower()] == []


def test_the_chart_of_a_release_has_its_version_and_links_to_the_runbooks_of_its_tag(
    released: helm.Chart,
) -> None:
    assert (released.version, released.metadata["appVersion"]) == ("0.1.0", "0.1.0")
    rule = {**_VALUES, "prometheusRule": {"enabled": True}}
    text = released.render(rule, name="rel")["dragoman/templates/prometheusrule.yaml"]
    page = f"https://github.com/{_REPOSITORY}/blob/{_TAG}/docs/runbooks/DragomanNoWorker.md"
    assert page in text


def test_a_push_without_a_digest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "image-worker.txt").write_text("ghcr.io/o/n-worker:0.1.0@\n", encoding="utf-8")
    command = [
        str(_ROOT / ".ci" / "package-chart"),
        _TAG,
        "o/n",
        str(tmp_path),
        str(tmp_path / "c"),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "not IMAGE:TAG@DIGEST" in ended.stderr) == (1, True)


def test_the_page_on_kubernetes_says_how_to_install_a_released_chart() -> None:
    page = (_ROOT / "docs" / "how-to" / "kubernetes.md").read_text(encoding="utf-8")
    named = _run("release-names", "v1.2.3", "OWNER/NAME")
    charts = dict(line.split("=", 1) for line in named.split())["charts"]
    assert f"helm install dragoman {charts}/dragoman --version" in page.replace("OWNER", "owner")


def test_actions_are_pinned_by_commit() -> None:
    used = [
        one["uses"] for job in _WORKFLOW["jobs"].values() for one in job["steps"] if "uses" in one
    ]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", one)] == []


def test_nothing_is_published_before_the_chart_is_packaged() -> None:
    steps = _steps("publish")
    packaged = next(n for n, step in enumerate(steps) if "helm package" in step.get("run", ""))
    publishing = ("gh-action-pypi-publish", "helm push", "gh release create")
    published = [
        number
        for number, step in enumerate(steps)
        if any(word in step.get("uses", "") + step.get("run", "") for word in publishing)
    ]
    assert len(published) == len(publishing)
    assert packaged < min(published)


def test_every_artifact_of_the_workflow_is_one_that_can_be_downloaded() -> None:
    steps = [step for job in _WORKFLOW["jobs"].values() for step in job["steps"]]
    [fetch] = [step for step in steps if "download-artifact@" in step.get("uses", "")]
    pushes = [step for step in steps if "build-push-action@" in step.get("uses", "")]
    # All are fetched, and the record that a push keeps by default is no zip: the step would fail.
    assert fetch["with"].keys() == {"path"}
    assert [step["env"]["DOCKER_BUILD_RECORD_UPLOAD"] for step in pushes] == ["false"]
