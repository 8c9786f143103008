"""The package by itself: its README runs beside `dragoman_text` and parsers, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
REFUSING = """
import sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    allowed = sys.stdlib_module_names | {
        "dragoman_documents", "dragoman_text", "babel", "charset_normalizer", "langcodes",
        "language_data", "marisa_trie", "numpy",
        "pyarrow", "pyromark", "sentencex", "yaml", "_yaml",
    }

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"dragoman_documents imports {name}", name=name)

sys.meta_path.insert(0, Refuse())
"""
EVERY_FORMAT = """
from dragoman_documents import registry
for name in sorted(registry.ours()):
    if registry.is_streamed(name):
        assert registry.streamed_format(name).name == name
    else:
        assert registry.codec(name).name == name
"""


def alone(code: str) -> str:
    path = os.pathsep.join(str(ROOT / folder) for folder in ("documents", "text"))
    done = subprocess.run(
        [sys.executable, "-c", REFUSING + code],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_lines_of_the_readme_run_without_kafka_redis_and_the_client() -> None:
    readme = (ROOT / "documents" / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert alone(code).endswith("Ein [Link](https://example.org) in einem *Absatz*.\n\n")


def test_every_format_loads_without_kafka_redis_and_the_client() -> None:
    alone(EVERY_FORMAT)
