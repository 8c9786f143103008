"""Facts that results depend on besides the settings: version, machine, GPUs, model and texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from dragoman_worker.engines.machine import this_machine
from dragoman_worker.settings import EngineSettings

_DRIVER: Final = Path("/proc/driver/nvidia/gpus")


def environment(engine: EngineSettings) -> dict[str, Any]:
    """Return the facts known without starting the engine; unknown ones are None or empty."""
    return {
        "version": _version("vllm" if engine.kind == "vllm" else "dragoman"),
        "machine": asdict(this_machine()),
        "gpus": _gpu_names(),
        "model": _files(Path(engine.model or "").expanduser()) if engine.model else [],
        # Files that the settings name: of prompts, and of the echo engine's answers.
        "texts": [_digest(path) for path in (engine.profile_file, engine.echo.table) if path],
    }


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.expanduser().read_bytes()).hexdigest()
    except OSError:
        return None


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _gpu_names() -> Sequence[str]:
    """Return the GPU models as the driver names them; NVML's memory size does not identify one."""
    try:
        pages = [path.read_text() for path in sorted(_DRIVER.glob("*/information"))]
    except OSError:
        return []
    return [line for text in pages for line in text.splitlines() if line.startswith("Model:")]


def _files(folder: Path) -> Sequence[tuple[str, int, int]]:
    """Return name, bytes and modification time of each file; reading them would take minutes."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        found = [(path.name, path.stat()) for path in files]
    except OSError:
        return []
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
