"""What a model's identity costs at a start: made folders, read with their pages in memory and cold.

    python benchmarks/identity.py [--folder DIR] [--kinds dense,experts,pickled]

The files are sparse but for random bytes at every 64 MiB: they take a few MB of disk. `dense` has
30 files of 1 to 5 GB, `experts` 163 files with 91,280 tensors, `pickled` 30 files of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Final

from dragoman_worker.engines.vllm.file_contents import contents

_GB: Final = 10**9
_APART: Final = 64 * 1024**2
_KINDS: Final = {"dense": (30, 30), "experts": (163, 560), "pickled": (30, 0)}
"""Files, and tensors of each; 0: not of safetensors."""


def make(folder: Path, files: int, tensors: int) -> int:
    """Make the files of one kind and return their bytes."""
    drawn, total = random.Random(1), 0
    folder.mkdir()
    for number in range(files):
        size = drawn.randint(1, 5) * _GB
        head = _header(size, tensors) if tensors else b"PK"
        name = "safetensors" if tensors else "bin"
        with (folder / f"model-{number:05}.{name}").open("wb") as file:
            file.write(head)
            file.truncate(len(head) + size)
            for place in range(len(head), size, _APART):
                file.seek(place)
                file.write(os.urandom(4096))
        total += size
    (folder / "tokenizer.json").write_bytes(os.urandom(32_000_000))
    return total


def _header(size: int, tensors: int) -> bytes:
    each = size // tensors
    places = {f"layer.{n}": {"data_offsets": (n * each, (n + 1) * each)} for n in range(tensors)}
    text = json.dumps(places).encode()
    return len(text).to_bytes(8, "little") + text


def forget_pages(folder: Path) -> None:
    """Let the kernel drop the pages of the folder's files."""
    for file in folder.iterdir():
        opened = os.open(file, os.O_RDONLY)
        os.fsync(opened)
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(opened)


def measure(folder: Path) -> tuple[float, float]:
    """Return the seconds of wall time and of CPU that the contents take."""
    began, cpu = time.perf_counter(), time.process_time()
    contents(folder)
    return time.perf_counter() - began, time.process_time() - cpu


def main() -> None:
    """Print a row per kind."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--folder", type=Path, help="where the files are made; default: temporary")
    asked.add_argument("--kinds", default=",".join(_KINDS))
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        for kind in given.kinds.split(","):
            folder = Path(root, kind)
            total = make(folder, *_KINDS[kind])
            forget_pages(folder)
            cold, warm = measure(folder), min(measure(folder) for _ in range(3))
            print(
                f"{kind:8} {total / _GB:5.0f} GB: warm {warm[0]:.2f} s ({warm[1]:.2f} s CPU), "
                f"cold {cold[0]:.2f} s ({cold[1]:.2f} s CPU)"
            )


if __name__ == "__main__":
    main()
