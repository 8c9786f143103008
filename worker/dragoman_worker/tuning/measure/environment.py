"""What do an engine's figures depend on beside its settings? Version, machine and model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from dragoman_worker.engines.sizing import this_machine
from dragoman_worker.settings import EngineSettings

_DRIVER: Final = Path("/proc/driver/nvidia/gpus")


def environment(engine: EngineSettings) -> dict[str, Any]:
    """What can be told without starting the engine; what cannot is None or empty."""
    return {
        "version": _version("vllm" if engine.kind == "vllm" else "dragoman"),
        "machine": asdict(this_machine()),
        "gpus": _gpu_names(),
        "model": _files(Path(engine.model or "").expanduser()) if engine.model else [],
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _gpu_names() -> Sequence[str]:
    """By the driver: NVML's memory alone does not tell one kind from another."""
    try:
        told = [place.read_text() for place in sorted(_DRIVER.glob("*/information"))]
    except OSError:
        return []
    return [line for text in told for line in text.splitlines() if line.startswith("Model:")]


def _files(folder: Path) -> Sequence[tuple[str, int, int]]:
    """Name, bytes and time of writing of each file; reading them all would take minutes."""
    try:
        files = sorted(place for place in folder.iterdir() if place.is_file())
        found = [(place.name, place.stat()) for place in files]
    except OSError:
        return []
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
