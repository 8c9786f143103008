"""Everything that forked engines import at their start, as the worker's own fork server does."""

from __future__ import annotations

import importlib
from pathlib import Path

from dragoman_worker.engines.vllm.patches import fork
from dragoman_worker.settings import EngineSettings

_MODEL = Path(__file__).parents[3] / "demo" / "model"

if reason := fork.load(EngineSettings(kind="vllm", model=str(_MODEL)), verbose=False):
    raise RuntimeError(reason)
importlib.import_module("setproctitle").getproctitle()  # finds its place before a fork clears it
