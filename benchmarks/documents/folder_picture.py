"""The picture of a run over a folder: docs/img/folder.svg, from the output of real commands.

    folder_picture.py [--out docs/img/folder.svg]

Starts `dragoman up` with the demonstration model, unless the environment names Kafka and Redis,
translates the demonstration's folder and one more file twice, and draws what both runs print.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

BIN: Final = Path(sys.executable).parent
COMMAND: Final = ("translate", "holiday", "--from", "en", "--to", "de,fr,es,ja", "--out", "out")
WIDTH: Final = 92
FRAME: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})"
       clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""
"""As that of rich, without fonts that are loaded from elsewhere."""


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """Give the environment of commands: as it is if it names Kafka, else of own services."""
    if "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS" in os.environ:
        yield dict(os.environ)
        return
    data = tempfile.mkdtemp(prefix="box-")
    argv = [str(BIN / "dragoman"), "up", "--engine", "demo", "--json", "--data", data]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        found = json.loads(child.stdout.readline() if child.stdout else "")
        yield {
            **os.environ,
            "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": found["bootstrap_servers"],
            "DRAGOMAN_REDIS__URL": found["redis_url"],
        }
    finally:
        child.terminate()
        child.wait()
        shutil.rmtree(data, ignore_errors=True)


def ran(folder: Path, env: dict[str, str]) -> list[str]:
    """Run the command; return the lines that it prints, in order."""
    done = subprocess.run(
        [str(BIN / "dragoman"), *COMMAND],
        cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    return [*done.stdout.splitlines(), f"exit status {done.returncode}"]


def issues(report: Path) -> Iterator[str]:
    """Yield a line per thing to look at in a report."""
    for document in json.loads(report.read_text())["documents"]:
        for issue in document.get("issues", ()):
            yield f"{document['output']}, {issue['place']}: {issue['code']}"


def drawn(first: list[str], again: list[str], found: list[str]) -> str:
    """Return the picture."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    dim, remark = "#9a9b99", "cyan"
    console.print(Text("$ dragoman " + " ".join(COMMAND), style="bold"))
    for line in first:
        console.print(Text(line, style="" if line.startswith("out/") else remark))
    console.print(Text("\n$ dragoman " + " ".join(COMMAND), style="bold"))
    for line in again:
        console.print(Text(line, style=remark))
    console.print(Text("\n# out/report.json, what to look at:", style=dim))
    for line in found or ["nothing"]:
        console.print(Text(line))
    return console.export_svg(title="dragoman translate", theme=MONOKAI, code_format=FRAME)


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/img/folder.svg"))
    arguments = parser.parse_args()
    with serving() as env, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(str(files("dragoman_demo") / "holiday"), folder / "holiday")
        (folder / "holiday" / "sea.jpg").write_bytes(b"\xff\xd8\xff")
        first = ran(folder, env)
        found = list(issues(folder / "out" / "report.json"))
        again = ran(folder, env)
    arguments.out.write_text(drawn(first, again, found), encoding="utf-8")


if __name__ == "__main__":
    main()
