"""The pictures of the README: `make pictures` draws them anew from what the commands print.

    pictures.py [--out docs/img] [--only demo rows box]

`demo.svg` is `make demo`, `rows.svg` a table by `dragoman translate` with an estimate before it and
a rerun after it, `box.svg` a box that stays. Each has a twin for dark pages, such as
`demo-dark.svg`. `review.png` is a review page of a few made-up rows in Chromium. The
picture of the folder is drawn by benchmarks/documents/folder_picture.py.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from dragoman_producer.review.page import Review, ReviewRow, RowFinding, pages

BIN: Final = Path(sys.executable).parent
WIDTH: Final = 96
_COLORS: Final = {
    "": ((255, 255, 255), (36, 41, 47), (87, 96, 106), (5, 80, 174), (17, 99, 41)),
    "-dark": ((13, 17, 23), (230, 237, 243), (139, 148, 158), (121, 192, 255), (86, 211, 100)),
}
"""By suffix: background, text, remarks, languages and links, what is done."""
_FRAME: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
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


def drawn(lines: Iterable[str], title: str, suffix: str) -> str:
    """Return the picture of a terminal; lines with `$` are commands."""
    back, text, remark, name, done = _COLORS[suffix]
    theme = TerminalTheme(back, text, [remark] * 8, [remark] * 8)
    styles = [Style(color=f"rgb({r},{g},{b})") for r, g, b in (remark, name, done)]
    console = Console(
        record=True, width=WIDTH, file=StringIO(),
        force_terminal=True, color_system="truecolor",
    )  # fmt: skip
    for line in lines:
        console.print(_styled(line.rstrip(), *styles))
    picture = console.export_svg(
        title=title, theme=theme, code_format=_FRAME, unique_id=title.replace(" ", "-") + suffix
    )
    return _TEXT.sub(_widened, picture)


def _widened(text: re.Match[str]) -> str:
    """Return a text with the length that its wide characters have: rich counts each as one."""
    shown = unescape(text[3]).replace("\xa0", " ")
    width = float(text[2]) * cell_len(shown) / max(1, len(shown))
    return f"{text[1]}{width:g}{text[0][text.end(2) - text.start() :]}"


_TEXT: Final = re.compile(r'(<text [^>]*textLength=")([\d.]+)"[^>]*>([^<]*)</text>')


def _styled(line: str, remark: Style, name: Style, done: Style) -> Text:
    if line.startswith("$ "):
        return Text(line, style="bold")
    if line.startswith("✓"):
        return Text.assemble(("✓", done), (line[1:], remark))
    if line[:2] == "  " and line[2:4].isalpha() and line[4:5] == " ":
        return Text.assemble((line[:4], name), line[4:])
    if line.startswith("#") or line.endswith("..."):
        return Text(line, style=remark)
    return Text(line)


def ran(*command: str, cwd: Path, both: bool = True) -> list[str]:
    """Return the lines that a command prints."""
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=cwd, env={**os.environ, "COLUMNS": str(WIDTH)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if both else subprocess.DEVNULL, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def demo(folder: Path) -> list[str]:
    """Return what `make demo` prints, without its steps on stderr."""
    return ["$ make demo", *ran("dragoman-demo", "--out", "build/demo", cwd=folder, both=False)]


def rows(folder: Path) -> list[str]:
    """Return a table: an estimate, a run, a rerun."""
    words = [
        "red",
        "blue",
        "warm",
        "soft",
        "shirt",
        "hat",
        "with",
        "a",
        "long",
        "fine",
        "wool",
        "made",
        "in",
        "our",
        "shop",
        "for",
        "cold",
        "days",
    ]
    lines = ["sku,description"]
    lines += [
        f"SKU-{n},{' '.join(words[(n * k) % len(words)] for k in range(1, 20))} {n}"
        for n in range(1, 20_001)
    ]
    (folder / "products.csv").write_text("\n".join(lines) + "\n")
    command = ["translate", "products.csv", "--column", "description", "--id", "sku"]
    command += ["--from", "en", "--to", "de", "--out", "out"]
    estimate = ["--dry-run", "--rate", "270", "--price", "2.50"]
    engine = ["--engine", "echo", "--data", "box"]
    shown: list[str] = []
    for more, printed in (
        (estimate, " ".join(estimate)),
        (engine, "--model tencent/Hy-MT2-7B    # here with --engine echo"),
        (engine, "--model tencent/Hy-MT2-7B    # again: nothing is left to do"),
    ):
        found = ran("dragoman", *command, *more, cwd=folder)
        shown += [f"$ dragoman {' '.join(command)} \\", f"    {printed}"]
        shown += [line for line in found if not line.endswith("...") and "... " not in line]
        shown.append("")
    return shown[:-1]


def box(folder: Path) -> list[str]:
    """Return a box that stays, and a command in another terminal."""
    argv = [str(BIN / "dragoman"), "up", "--engine", "echo", "--data", "box"]
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said: list[str] = []
        for line in process.stdout or ():
            said.append(line.rstrip())
            if "Ctrl-C" in line:
                break
        exports = dict(
            line.strip().removeprefix("export ").split("=", 1) for line in said if "export " in line
        )
        os.environ |= exports
        answer = ran("dragoman", "submit", "--to", "de,fr", "--wait", "Good morning!", cwd=folder)
        for name in exports:
            del os.environ[name]
        process.send_signal(signal.SIGINT)
    said = [line for line in said if not line.endswith("...") and "... " not in line]
    return [
        "$ dragoman up --model tencent/Hy-MT2-7B    # here with --engine echo", *said, "",
        "# in another terminal, after the two exports",
        '$ dragoman submit --to de,fr --wait "Good morning!"', *answer,
    ]  # fmt: skip


_ROWS: Final = (
    ReviewRow(
        "mail.md", 0, "line 3", "Thank you for your order, {name}.",
        "Vielen Dank für Ihre Bestellung, {name}.", "ok",
    ),
    ReviewRow(
        "mail.md", 1, "line 5", "Your parcel leaves our warehouse on May 14.",
        "Ihr Paket verlässt am 15. Mai unser Lager.", "warn", (RowFinding("numbers", "lost 14"),),
    ),
    ReviewRow(
        "mail.md", 2, "line 7", "Track it with {tracking_code} at any time.",
        "Track it with {tracking_code} at any time.", "fail",
        (RowFinding("placeholders", "lost {tracking_code}"),),
    ),
    ReviewRow(
        "mail.md", 3, "line 9", "Questions? Just reply to this mail.",
        "Fragen? Antworten Sie einfach auf diese E-Mail.", "ok",
    ),
)  # fmt: skip


def review(out: Path) -> None:
    """Draw a review page with a warning and a failure, for light and dark pages."""
    browser = shutil.which("chromium") or sys.exit("pictures.py review needs chromium")
    run = Review("1", "de", "en", "dragoman review translated --apply edits.json")
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
        page = Path(folder) / "page.html"
        [(_, content)] = pages(run, _ROWS, len(_ROWS))
        page.write_text(content, encoding="utf-8")
        for suffix, scheme in (("", "1"), ("-dark", "0")):
            subprocess.run(
                [
                    browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    f"--user-data-dir={folder}/profile{suffix}", "--window-size=1000,618",
                    "--force-device-scale-factor=1.5",
                    f"--blink-settings=preferredColorScheme={scheme}",
                    f"--screenshot={(out / f'review{suffix}.png').absolute()}", page.as_uri(),
                ],
                check=True, capture_output=True, timeout=120,
            )  # fmt: skip


def main() -> None:
    """Draw them."""
    pictures = {"demo": demo, "rows": rows, "box": box}
    parser = argparse.ArgumentParser(description="The pictures of the README.")
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    parser.add_argument(
        "--only", nargs="+", choices=[*pictures, "review"], default=[*pictures, "review"]
    )
    given = parser.parse_args()
    if "review" in given.only:
        review(given.out)
    for name in given.only:
        if name == "review":
            continue
        with tempfile.TemporaryDirectory(prefix="pictures-") as folder:
            lines = pictures[name](Path(folder))
        lines = [line.replace(folder, "~").replace(f"{BIN.resolve()}/", "") for line in lines]
        for suffix in _COLORS:
            place = given.out / f"{name}{suffix}.svg"
            place.write_text(drawn(lines, f"dragoman {name}", suffix), encoding="utf-8")


if __name__ == "__main__":
    main()
