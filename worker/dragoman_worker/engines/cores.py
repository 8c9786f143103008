"""CPU cores that this process may use: by affinity and by the quotas of its control groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")


def cpu_cores() -> int:
    """Return the number of cores, at least 1; a quota of 2.5 cores counts as 2.

    Kubernetes' `limits.cpu` and systemd's `CPUQuota` are quotas: the process sees every core and
    gets the time of a few.
    """
    quotas = (int(quota) for quota in _quotas())
    return max(1, min([len(os.sched_getaffinity(0)), *quotas]))


def _quotas() -> Iterator[float]:
    """Yield the quota in cores of this process's control group and of each group above it.

    In a container the group's path is often "/", and its files lie at the root. Without version 2
    of control groups there is none.
    """
    try:
        lines = _OWN.read_text().splitlines()
    except OSError:
        return
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if own is None:
        return
    group = _CGROUPS / own
    for folder in (group, *group.parents):
        if not folder.is_relative_to(_CGROUPS):
            return
        try:
            quota, period = (folder / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):  # the root has no file, "max" no quota
            continue
