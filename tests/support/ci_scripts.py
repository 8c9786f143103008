"""Import of the scripts in .ci, which is no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).parents[2] / ".ci"


def script(name: str) -> ModuleType:
    """Return the module `.ci/NAME.py`, which may import its neighbours."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", _FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(_FOLDER))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(_FOLDER))
    return module
