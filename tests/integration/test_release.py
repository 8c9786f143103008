"""What `make release` publishes holds what it should, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"^([A-Za-z0-9_.\-]+)(?:\[.*\])?==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a release and return its folder."""
    out = tmp_path_factory.mktemp("release") / "dist"
    argv = [str(_ROOT / ".ci" / "release"), str(out)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_the_checksums_are_of_every_file(dist: Path) -> None:
    found = [path for path in dist.iterdir() if path.name != "SHA256SUMS"]
    assert sorted((dist / "SHA256SUMS").read_text().splitlines()) == sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in found
    )


def test_the_wheel_holds_every_file_of_the_packages_and_no_model(dist: Path) -> None:
    packages = [path.parent for path in _ROOT.glob("*/dragoman_*/__init__.py")]
    wanted = {
        str(path.relative_to(package.parent))
        for package in packages
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wheel = only(dist, "*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == wanted
    assert {f"{package.name}/py.typed" for package in packages} <= names
    assert wheel.stat().st_size < 2_000_000


def test_the_source_archive_holds_what_building_and_testing_need(dist: Path) -> None:
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml", "LICENSE", "CHANGELOG.md", "Makefile", "requirements/cpu.lock",
        "requirements/client.lock", "tests/conftest.py", "deploy/dragoman.toml", ".ci/run",
        "docs/index.md", "schemas/dragoman_schemas/scripts/claim.lua",
    } <= names  # fmt: skip
    assert not [name for name in names if name.endswith((".safetensors", ".pyc"))]


@pytest.mark.parametrize(
    "lock", ["client", "echo", "openai", "documents", "parquet", "serve", "otel", "msk", "box"]
)
def test_the_bill_of_materials_names_what_the_lock_pins(dist: Path, lock: str) -> None:
    bill = json.loads(only(dist, f"*.{lock}.cdx.json").read_text())
    pins = set(_PIN.findall((_ROOT / "requirements" / f"{lock}.lock").read_text()))
    assert {(part["name"], part["version"]) for part in bill["components"]} == pins
    assert bill["metadata"]["component"]["name"] == "dragoman"


def tag_agrees(tag: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [str(folder / ".ci" / "tag-agrees"), tag], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def versioned(tmp_path: Path) -> Path:
    """Return a folder with version 1.2.0 and its changelog."""
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "tag-agrees"
    script.write_bytes((_ROOT / ".ci" / "tag-agrees").read_bytes())
    script.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-31\n\n- New.\n\n"
        "## [1.1.0] - 2030-01-01\n\n- Old.\n"
    )
    return tmp_path


def test_a_tag_of_the_version_prints_its_section_of_the_changelog(versioned: Path) -> None:
    status, printed = tag_agrees("v1.2.0", versioned)
    assert (status, printed.strip()) == (0, "- New.")


def test_a_tag_of_another_version_is_refused(versioned: Path) -> None:
    status, printed = tag_agrees("v1.3.0", versioned)
    assert (status, "pyproject.toml says 1.2.0" in printed) == (1, True)


def test_a_version_without_a_section_is_refused(versioned: Path) -> None:
    (versioned / "pyproject.toml").write_text('version = "1.3.0"\n')
    status, printed = tag_agrees("v1.3.0", versioned)
    assert (status, "no section '## [1.3.0]" in printed) == (1, True)
