"""Writer of the lists of vLLM's names that the table of patches is tested against.

`python .ci/vllm_names.py [WHEEL ...]` reads wheels of vLLM, or the installed package, imports
nothing of them, and writes `tests/data/vllm-names/VERSION.txt`: the names that the table of patches
needs, as far as this vLLM has them, with their parameters.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dragoman_worker.engines.vllm.patches.names import Source, installed, names_in
from dragoman_worker.engines.vllm.patches.table import PATCHES

_OUT: Final = Path(__file__).parent.parent / "tests" / "data" / "vllm-names"
_VERSION: Final = re.compile(r"^__version__ = version = '(\d+(?:\.\d+)+)", re.MULTILINE)


def listed(source: Source) -> Iterator[str]:
    """Yield those of the table's names that one vLLM has, each with its parameters."""
    wanted = {name.partition("(")[0] for patch in PATCHES.values() for name in patch.names}
    for module in sorted({name.partition(":")[0] for name in wanted}):
        for name, parameters in sorted(names_in(source(module) or "").items()):
            if f"{module}:{name}" in wanted:
                yield f"{module}:{name}" + (f"({','.join(parameters)})" if parameters else "")


def of_wheel(wheel: Path) -> Source:
    """Return the reader of a wheel's modules."""
    archive = zipfile.ZipFile(wheel)

    def source(module: str) -> str | None:
        place = module.replace(".", "/")
        for name in (f"{place}.py", f"{place}/__init__.py"):
            if name in archive.NameToInfo:
                return archive.read(name).decode()
        return None

    return source


def write(source: Source) -> None:
    """Write the list of one vLLM."""
    version = _VERSION.search(source("vllm._version") or "")
    if version is None:
        raise SystemExit("this is no vLLM: it has no version")
    file = _OUT / f"{version[1]}.txt"
    file.write_text("".join(f"{line}\n" for line in listed(source)), encoding="utf-8")
    sys.stdout.write(f"{file.relative_to(_OUT.parents[2])}\n")


def main() -> None:
    """Write the lists of the wheels, or of the installed vLLM."""
    _OUT.mkdir(parents=True, exist_ok=True)
    if not sys.argv[1:] and importlib.util.find_spec("vllm") is None:
        raise SystemExit("vLLM is not installed: give wheels")
    for source in [of_wheel(Path(name)) for name in sys.argv[1:]] or [installed]:
        write(source)


if __name__ == "__main__":
    main()
