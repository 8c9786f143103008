"""Hooks of mkdocs: links that leave docs/ lead to copies of those files in the site.

A page of docs/ links to `../deploy/dragoman.toml` as GitHub shows it. In the site such a file lies
below `project/`. Only the files of `COPIED` are there, so any other link fails the strict build.
"""

from __future__ import annotations

import os
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parent.parent
COPIED: Final = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "SECURITY.md",
    "benchmarks/reliability/*",
    "demo/model/README.md",
    "deploy/**/*",
    "tests/support/chaos/ledger.py",
)
_LINK: Final = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> None:
    """Put the version, and the repository's address if DRAGOMAN_REPOSITORY has it, on every page.

    Not by `repo_url`: with that the theme's script asks github.com from a reader's browser.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = os.environ.get("DRAGOMAN_REPOSITORY", "")
    repository = f' · <a href="{escape(address)}">repository</a>' if address else ""
    config.copyright = f"Dragoman {project['version']} · Apache-2.0{repository}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/ that pages link to."""
    for pattern in COPIED:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                name = f"project/{path.relative_to(ROOT)}"
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Rewrite each link between docs/ and the rest of the repository to where the site has it."""
    source = _in_repository(page.file.src_uri)
    if page.is_homepage:
        markdown += f"\n\n{config.copyright}\n"

    def moved(link: re.Match[str]) -> str:
        target = os.path.normpath(source.parent / link[2])
        return link[1] + os.path.relpath(_in_site(Path(target)), Path(page.file.src_uri).parent)

    return _LINK.sub(moved, markdown)


def _in_repository(uri: str) -> Path:
    project = uri.removeprefix("project/")
    return Path(project) if project != uri else Path("docs", uri)


def _in_site(path: Path) -> Path:
    return path.relative_to("docs") if path.is_relative_to("docs") else Path("project", path)
