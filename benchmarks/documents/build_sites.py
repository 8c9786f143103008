"""Sites, built by their own generators from their sources and from translations.

    PYTHONPATH=tests build_sites.py [GENERATOR..] [--answer identity|mark] [--show N] [--install]

Translates the sites of `tests/data/sites` by the code that a run executes, with the source's texts
as the answer or with a mark before each of them; builds both with the real generator; compares
headings, links, code blocks, images, ids, all other markup and, without the marks, the text that
readers see; and follows each internal link that worked in the source. Links to the automatic ids
of headings are listed apart: these ids change with the text. A generator that is not installed is
named and counts as not run. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support.documents.sites.answers import Answer
from support.documents.sites.generators import GENERATORS, INSTALLED, Generator, Unbuilt
from support.documents.sites.judging import Verdict, judged

PACKAGES = (
    "@docusaurus/core", "@docusaurus/preset-classic", "@mdx-js/mdx", "react", "react-dom",
    "remark", "remark-gfm", "remark-html", "remark-math", "vitepress",
)  # fmt: skip


def install() -> None:
    """Install the generators that are not development dependencies, as far as they can be."""
    npm = INSTALLED / "npm"
    npm.mkdir(parents=True, exist_ok=True)
    for command in (
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(npm), *PACKAGES],
        ["apt-get", "install", "--yes", "--no-install-recommends", "jekyll"],
        ["cargo", "install", "--quiet", "--root", str(INSTALLED / "mdbook"), "mdbook"],
    ):
        if shutil.which(command[0]) is None or subprocess.run(command, check=False).returncode:
            print("not installed:", " ".join(command), file=sys.stderr)


def judge(generator: Generator, answers: list[Answer], show: int) -> bool:
    """Build and compare a site, print the result, and return whether nothing differs."""
    if not generator.needs():
        print(f"| {generator.name} | | not run: not installed | | | |")
        return True
    try:
        with tempfile.TemporaryDirectory(prefix="dragoman-sites-") as folder:
            verdicts = {answer: judged(generator, answer, Path(folder)) for answer in answers}
    except Unbuilt as error:
        print(f"| {generator.name} | | not run: the source is not built | | | |\n{error}")
        return False
    for answer, verdict in verdicts.items():
        print(row(generator, answer, verdict), flush=True)
        headings = [f"link to a heading: {each}" for each in verdict.headings]
        unmarked = [f"not sent: {each}" for each in verdict.unmarked if answer == "mark"]
        for lines in (verdict.lines(), headings, unmarked):
            print(*(f"    {line}\n" for line in lines[:show]), sep="", end="")
    return not any(verdict.lines() for verdict in verdicts.values())


def row(generator: Generator, answer: Answer, verdict: Verdict) -> str:
    """Return a row of the table."""
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(verdict.counts.items())) or "0"
    cells = (
        generator.name, answer, counts, f"{verdict.texts} ({len(verdict.left)} left)",
        str(len(verdict.headings)), str(len(verdict.unmarked)) if answer == "mark" else "",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Judge the sites, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [each.name for each in GENERATORS]
    parser.add_argument("generators", nargs="*", metavar="GENERATOR", help=", ".join(names))
    parser.add_argument("--answer", choices=("identity", "mark"), help="default: both")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="differences of each")
    parser.add_argument("--install", action="store_true", help=f"into {INSTALLED.name}, and stop")
    arguments = parser.parse_args()
    if arguments.install:
        install()
        return
    if unknown := set(arguments.generators) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    print("| generator | answer | differences | texts | links to headings | texts not sent |")
    print("|---|---|---|---|---|---|")
    answers: list[Answer] = [arguments.answer] if arguments.answer else ["identity", "mark"]
    chosen = arguments.generators or names
    results = [judge(each, answers, arguments.show) for each in GENERATORS if each.name in chosen]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
