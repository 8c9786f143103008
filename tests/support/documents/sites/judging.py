"""A site built from its source and from a translation, and how these differ."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.documents.sites.answers import Answer, sources, translate
from support.documents.sites.generators import SITES, Generator, Unbuilt
from support.documents.sites.structure import Difference, compare, read_site

_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(slots=True)
class Verdict:
    """How the translation of a site differs from its source, once both are built."""

    texts: int
    left: list[str]
    """Places of texts that keep their source though an answer was given."""
    difference: Difference = field(default_factory=Difference)
    unmarked: list[str] = field(default_factory=list[str])
    """Texts of the source that are in the output as they were."""

    @property
    def counts(self) -> Counter[str]:
        """Return the differences by kind."""
        return self.difference.counts

    @property
    def headings(self) -> list[str]:
        """Return the links to automatic ids of headings, which lead nowhere now."""
        return self.difference.headings

    def lines(self) -> list[str]:
        """Return what differs, for people."""
        return [*(f"left: {each}" for each in self.left), *self.difference.lines]


def judged(generator: Generator, answer: Answer, folder: Path) -> Verdict:
    """Build a site and its translation, and compare them. Raises Unbuilt for the source.

    The same folder serves for each answer: the source is built once.
    """
    source, translated = folder / "source", folder / answer
    if not source.is_dir():
        _copy(generator, source)
        generator.build(source, folder / "source-pages")
    _copy(generator, translated)
    done = translate(translated, answer, generator.site, generator.mdx)
    verdict = Verdict(done.texts, done.left)
    try:
        generator.build(translated, folder / f"{answer}-pages")
    except Unbuilt as error:
        verdict.difference.add("build failed", str(error))
        return verdict
    verdict.difference = compare(folder / "source-pages", folder / f"{answer}-pages")
    verdict.unmarked = _unmarked(source, folder / f"{answer}-pages")
    return verdict


def _copy(generator: Generator, folder: Path) -> None:
    shutil.copytree(SITES / generator.folder, folder)


def _unmarked(source: Path, pages: Path) -> list[str]:
    """Return the texts without a mark, less the ones of the generator itself."""
    given = _words(" ".join(path.read_text("utf-8") for path in sources(source)))
    found = {text for page in read_site(pages).values() for text in page.unmarked}
    return sorted(text for text in found if _words(text) in given)


def _words(text: str) -> str:
    """Return the words alone, to tell the texts of a site from the ones of its generator."""
    return f" {' '.join(_WORD.findall(text))} "
