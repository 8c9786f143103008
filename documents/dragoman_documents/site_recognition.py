"""Which site a file belongs to: by the configuration of its generator, which is never run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from dragoman_documents.markup.sites import NAMES, site

_LONGEST: Final = 256 * 1024
"""Bytes of a configuration that are looked at."""


class Recognized(NamedTuple):
    """The site of a file."""

    name: str
    mdx: bool
    """Whether its `.md` files are MDX."""
    config: Path | None = None
    """The file or folder that shows the site; None: the user named it."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """What shows a site in its folder."""

    site: str
    name: re.Pattern[str]
    beside: str | None = None
    """A path in the same folder that must exist."""
    holds: re.Pattern[bytes] | None = None
    """What the file must hold."""


_JS: Final = r"\.config\.[cm]?[jt]s"
_MARKS: Final = (
    _Mark("docusaurus", re.compile("docusaurus" + _JS)),
    _Mark("vitepress", re.compile(r"\.vitepress")),
    _Mark("vuepress", re.compile(r"\.vuepress")),
    _Mark("mkdocs", re.compile(r"mkdocs\.ya?ml|zensical\.toml")),
    _Mark("quarto", re.compile(r"_quarto\.ya?ml")),
    _Mark("mdbook", re.compile(r"book\.toml")),
    _Mark("antora", re.compile(r"antora\.ya?ml")),
    _Mark("astro", re.compile("astro" + _JS)),
    _Mark("hugo", re.compile(r"hugo\.(?:toml|ya?ml|json)")),
    _Mark("hugo", re.compile("config"), "config/_default"),
    _Mark(
        "hugo",
        re.compile(r"config\.(?:toml|ya?ml|json)"),
        "content",
        re.compile(rb"baseurl", re.IGNORECASE),  # `base_url` is Zola's
    ),
    _Mark("mintlify", re.compile(r"mint\.json")),
    _Mark("mintlify", re.compile(r"docs\.json"), holds=re.compile(rb'mintlify|"navigation"')),
    _Mark("sphinx", re.compile(r"myst\.ya?ml")),
    _Mark("sphinx", re.compile(r"conf\.py"), holds=re.compile(rb"myst_|recommonmark")),
    _Mark("sphinx", re.compile(r"_config\.ya?ml"), "_toc.yml"),  # Jupyter Book
    _Mark(
        "jekyll",
        re.compile(r"_config\.(?:ya?ml|toml)"),
        holds=re.compile(rb"\A(?!(?s:.*)^source_dir:)", re.MULTILINE),  # Hexo's
    ),
    _Mark("obsidian", re.compile(r"\.obsidian")),
)
"""In one folder the first that fits decides: many repositories have a `_config.yml` as well."""
_DOCUSAURUS: Final = _MARKS[0].name
_PLAIN_MD: Final = re.compile(rb"""\bformat["']?\s*:\s*["'](?:md|detect)["']""")
"""Docusaurus reads `.md` as CommonMark then; in a comment it says nothing."""
_COMMENTS: Final = re.compile(rb"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_OUTSIDE: Final = re.compile(rb"""["']\.\./([^"'\\\n]+)["']""")
"""A folder of pages beside the folder of the configuration."""


@dataclass(slots=True)
class Sites:
    """Recognizes sites, and keeps what it found in each folder."""

    named: str | None = None
    """The site of all files, if the user named it."""
    _of_folders: dict[Path, Recognized | None] = field(default_factory=dict)
    _shown_in: dict[Path, Recognized | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.named is not None and self.named not in NAMES:
            raise ValueError(f"there is no site {self.named!r}; known: {', '.join(NAMES)}")

    def of(self, source: Path) -> Recognized | None:
        """Return the site of a file: shown nearest at or above it, up to its repository's root."""
        folder = Path(os.path.abspath(source)).parent  # noqa: PTH100  resolves `..`, not links
        if folder not in self._of_folders:
            self._of_folders[folder] = self._of_folder(folder)
        found = self._of_folders[folder]
        if self.named is None or (found is not None and found.name == self.named):
            return found
        return Recognized(self.named, site(self.named).mdx)

    def _of_folder(self, folder: Path) -> Recognized | None:
        for above in (folder, *folder.parents):
            if above not in self._shown_in:
                self._shown_in[above] = _shown_in(above)
            found = self._shown_in[above] or _beside(above, folder)
            if found is not None:
                # the README beside the configuration is no page
                return found._replace(mdx=found.mdx and folder != above)
            if (above / ".git").exists():
                break
        return None


def _shown_in(folder: Path) -> Recognized | None:
    """Return the site whose configuration is in a folder."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208  names alone are needed
    except OSError:
        return None
    for mark in _MARKS:
        for name in filter(mark.name.fullmatch, names):
            config = folder / name
            if mark.beside is not None and not (folder / mark.beside).exists():
                continue
            if mark.holds is None or mark.holds.search(content(config)):
                return Recognized(mark.site, _is_mdx(mark.site, config), config)
    return None


def _beside(above: Path, folder: Path) -> Recognized | None:
    """Return the Docusaurus site in `website` whose pages are beside it, as `../docs`."""
    if folder == above or not (above / "website").is_dir():
        return None
    found = _shown_in(above / "website")
    if found is None or found.config is None or not _DOCUSAURUS.fullmatch(found.config.name):
        return None
    roots = (each.decode("utf-8", "replace") for each in _OUTSIDE.findall(content(found.config)))
    return found if any(folder.is_relative_to(above / each) for each in roots) else None


def _is_mdx(name: str, config: Path) -> bool:
    if name == "docusaurus" and _PLAIN_MD.search(_COMMENTS.sub(b"", content(config))):
        return False
    return site(name).mdx


def content(config: Path) -> bytes:
    """Return the bytes of a configuration; none of what is no file."""
    try:
        if not config.is_file():  # a pipe would block
            return b""
        with config.open("rb") as file:
            return file.read(_LONGEST)
    except OSError:
        return b""
