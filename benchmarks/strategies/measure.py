"""Measurements beside the answers: the GPU ten times per second, and CPU seconds per process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import psutil
from pipeline import GpuBusy

__all__ = ["GpuBusy", "cpu_cores", "cpu_now", "percentiles", "series", "tree"]


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants; nothing if it has exited."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_now(pids: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Return CPU seconds so far: `<name>` is the processes, `<name>.engine` vLLM below them."""
    spent: dict[str, float] = {}
    for name, tops in pids.items():
        for top in tops:
            for process in tree(top):
                part = name if process.pid == top or _is_ours(process) else f"{name}.engine"
                spent[part] = spent.get(part, 0.0) + _cpu(process)
    return spent


def cpu_cores(
    before: Mapping[str, float], after: Mapping[str, float], seconds: float
) -> dict[str, float]:
    """Return the cores kept busy in between, by name, without idle ones."""
    cores = {name: (after[name] - before.get(name, 0.0)) / seconds for name in after}
    return {name: round(used, 3) for name, used in cores.items() if used >= 0.001}


def percentiles(seconds: Sequence[float]) -> dict[str, float] | None:
    """Return p50, p95 and p99 in ms, by nearest rank."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    ranks = {name: math.ceil(share * len(ordered)) - 1 for name, share in _SHARES.items()}
    return {name: round(ordered[rank] * 1000, 1) for name, rank in ranks.items()}


def series(gpu: GpuBusy, start: float, end: float) -> list[list[float]]:
    """Return seconds since the start and GPU utilisation in percent, ten samples per second."""
    return [[round(at - start, 1), busy] for at, busy in gpu.samples if start <= at <= end]


_SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
_OURS = ("dragoman_worker", "dragoman-worker")


def _is_ours(process: psutil.Process) -> bool:
    """Return whether a process is ours: a replica below its supervisor is not an engine.

    By its title: a replica that is forked has no command of its own.
    """
    try:
        return any(part.startswith(_OURS) for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def row_figures(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return rates and latencies of a run, from the report of a child or driver."""
    seconds = report["end"] - report["start"]
    jobs = report["jobs"]
    return {
        "jobs": jobs,
        "seconds": round(seconds, 3),
        "jobs_per_s": round(jobs / seconds, 3),
        "output_tokens_per_s": round(report["tokens"] / seconds, 1),
        "prompt_tokens_per_s": round(report["prompt_tokens"] / seconds, 1),
        "latency_ms": percentiles(report["latencies"]),
    }
