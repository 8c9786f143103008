"""Quotas of control groups limit the cores that are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_worker.engines import machine


def counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: str, quotas: dict[str, str]
) -> int:
    for folder, text in quotas.items():
        place = tmp_path / "cgroup" / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / "cpu.max").write_text(text)
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(32)))
    return machine.cpu_cores()


@pytest.mark.parametrize(
    ("own", "quotas", "count"),
    [
        ("0::/\n", {"": "200000 100000\n"}, 2),  # a container
        ("0::/\n", {"": "max 100000\n"}, 32),
        ("0::/\n", {"": "250000 100000\n"}, 2),
        ("0::/\n", {"": "50000 100000\n"}, 1),
        ("0::/a.slice/b.service\n", {"a.slice/b.service": "400000 100000\n"}, 4),
        ("0::/a.slice/b.service\n", {"a.slice": "300000 100000\n"}, 3),
        (
            "0::/a.slice/b.service\n",
            {"a.slice/b.service": "800000 100000", "a.slice": "600000 100000"},
            6,
        ),
        ("3:cpu:/x\n0::/y\n", {"y": "500000 100000"}, 5),
        ("3:cpu:/x\n", {"x": "500000 100000"}, 32),  # version 1 alone
        ("0::/../../elsewhere\n", {}, 32),
        ("0::/\n", {"": "nonsense"}, 32),
        ("0::/\n", {"": "1000 0"}, 32),
        ("0::/\n", {"": "6400000 100000"}, 32),
    ],
)
def test_the_least_quota_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: str, quotas: dict[str, str], count: int
) -> None:
    assert counted(monkeypatch, tmp_path, own, quotas) == count


def test_without_control_groups_the_affinity_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "_OWN", tmp_path / "none")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3, 5})
    assert machine.cpu_cores() == 2
