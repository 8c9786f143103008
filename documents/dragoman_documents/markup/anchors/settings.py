"""How the pages of a site keep the ids of headings: by its configuration, which is never run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from dragoman_documents.markup.anchors.mkdocs import anchors_of
from dragoman_documents.markup.anchors.sluggers import WITH_TERMS
from dragoman_documents.markup.sites import Anchors, Ids, Site, site
from dragoman_documents.site_recognition import Recognized, content

CHOICES: Final = ("auto", "attributes", "comment", "html", "none")
"""The choices of `--anchors`."""
_NOTEBOOK: Final = Anchors("nbconvert", "html")
_NO_HEADING_IDS: Final = re.compile(rb"headingIds[\"']?\s*:\s*false")
_HEADING_ANCHORS: Final = re.compile(rb"heading_anchors")
_TERM_IDS: Final = re.compile(rb"autodefinitiontermid[\"']?\s*[=:]\s*true", re.IGNORECASE)


@dataclass(slots=True)
class AnchorSettings:
    """Knows the anchors of sites, and keeps what it found in each configuration."""

    choice: str = "auto"
    """One of CHOICES."""
    _found: dict[tuple[str, Path | None, bool], Anchors] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise ValueError(f"anchors: {self.choice!r} is none of {', '.join(CHOICES)}")

    def of(self, format_name: str, known: Recognized | None) -> Anchors | None:
        """Return how documents of a format and site keep ids; None if their format has none."""
        if format_name == "ipynb":
            made = _NOTEBOOK
        elif format_name in ("markdown", "mdx"):
            mdx = format_name == "mdx"
            key = (known.name if known else "", known.config if known else None, mdx)
            if key not in self._found:
                self._found[key] = _of_site(known, mdx=mdx)
            made = self._found[key]
        else:
            return None
        return self._chosen(made)

    def _chosen(self, made: Anchors) -> Anchors:
        if self.choice == "none" or (self.choice != "auto" and made.slugger != "nbconvert"):
            is_label = self.choice == "attributes" and made.slugger == "myst-parser"
            ids: Ids = "label" if is_label else cast("Ids", self.choice)
            return made._replace(ids=ids, guesses=False)
        return made


def _of_site(known: Recognized | None, *, mdx: bool) -> Anchors:
    row = site(known.name if known else None)
    made = Anchors(row.slugger, row.ids, row.comment, guesses=known is None)
    if known is None or known.config is None:
        return made
    if row.name == "mkdocs":
        return anchors_of(known.config) or made
    if row.name == "hugo":
        return made._replace(slugger=WITH_TERMS) if _gives_terms_ids(known.config) else made
    return made._replace(ids=_ids(row, content(known.config), known.config.name, mdx=mdx))


def _gives_terms_ids(config: Path) -> bool:
    """Return whether Hugo's configuration, a file or a folder, gives ids to terms too."""
    files = [config] if config.is_file() else (config / "_default").glob("*")
    return any(_TERM_IDS.search(content(each)) for each in files)


def _ids(row: Site, config: bytes, name: str, *, mdx: bool) -> Ids:
    """Return the syntax of a site as far as its configuration changes it."""
    if row.name == "docusaurus" and mdx and _NO_HEADING_IDS.search(config):
        return "comment"
    if row.name == "sphinx" and name == "conf.py" and not _HEADING_ANCHORS.search(config):
        return "none"  # links to headings are by labels of their own
    return row.ids
