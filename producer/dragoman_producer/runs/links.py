"""Links to headings that worked in the sources and are dead in the translations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dragoman_documents.markup.anchors.resolving import Pages
from dragoman_documents.markup.anchors.settings import AnchorSettings
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.site_recognition import Sites
from dragoman_producer.runs.extracting import Children
from dragoman_producer.runs.paths import shown
from dragoman_producer.runs.reading import question
from dragoman_producer.runs.refusals import DocumentRefused
from dragoman_producer.runs.request import RunRequest
from dragoman_producer.runs.selecting import FoundFile, Selection, output_of


class PagePairs:
    """Makes pairs of the pages of a request."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._sites = Sites(request.reading.site)
        self._anchors = AnchorSettings(request.anchors)

    def of(self, found: FoundFile, output: Path, lang: str) -> PagePair | None:
        """Return a page and its translation; None if its format has no links to headings."""
        anchors = self._anchors.of(found.format or "", self._sites.of(found.source))
        if anchors is None:
            return None
        asked = question(self._request, found.source, found.format or "", found.site, lang)
        return PagePair(found.path, found.source, output, asked, anchors)


class PagePair(NamedTuple):
    """A page and its translation."""

    path: str
    """Of the source, relative to the folder that was given."""
    source: Path
    output: Path
    question: dict[str, Any]
    """What a child needs to read it: see `reading.question`."""
    anchors: Anchors


@dataclass(frozen=True, slots=True)
class Dead:
    """A link that worked in the source and leads nowhere in the output."""

    path: str
    line: int
    target: str
    reason: Literal["anchor", "file"]


@dataclass(slots=True)
class Links:
    """What became of the links with fragments of the outputs."""

    fragments: int = 0
    dead: int = 0
    dead_in_source: int = 0
    new: list[Dead] = field(default_factory=list)

    def add(self, other: Links) -> None:
        """Add the links of another language."""
        self.fragments += other.fragments
        self.dead += other.dead
        self.dead_in_source += other.dead_in_source
        self.new += other.new

    def reported(self) -> dict[str, Any]:
        """Return as JSON values."""
        new = [
            {"path": each.path, "line": each.line, "target": each.target, "reason": each.reason}
            for each in self.new
        ]
        return {
            "fragments": self.fragments, "dead": self.dead,
            "dead_in_source": self.dead_in_source, "new": new,
        }  # fmt: skip


class _Link(NamedTuple):
    pair: PagePair
    line: int
    target: str
    page: str
    fragment: str


class LinkCheck:
    """Follows the links with fragments of the outputs in one language. It uses no network."""

    def __init__(
        self, children: Children, pairs: Sequence[PagePair], sources: Iterable[str]
    ) -> None:
        """Prepare; `sources` are the paths of all sources, translated or not."""
        self._children = children
        self._pairs = {pair.path: pair for pair in pairs}
        self._pages = Pages({*self._pairs, *sources})
        self._ids: dict[Path, frozenset[str]] = {}

    async def check(self) -> Links:
        """Return the links that are dead; pages that cannot be read have none."""
        found = await asyncio.gather(*(self._links(pair) for pair in self._pairs.values()))
        links = [link for some in found for link in some]
        await self._learn([self._pairs[each.page] for each in links if each.page in self._pairs])
        dead = [each for each in links if not self._works(each, "output")]
        known = [self._pairs[each.page] for each in dead if each.page in self._pairs]
        await self._learn(known, "source")
        result = Links(len(links), len(dead))
        for each in dead:
            if each.page in self._pairs and not self._works(each, "source"):
                result.dead_in_source += 1
            else:
                reason: Literal["anchor", "file"] = "anchor" if each.page in self._pairs else "file"
                path = shown(str(each.pair.output))
                result.new.append(Dead(path, each.line, each.target, reason))
        return result

    def _works(self, link: _Link, side: Literal["source", "output"]) -> bool:
        pair = self._pairs.get(link.page)
        return pair is not None and link.fragment in self._ids[getattr(pair, side)]

    async def _links(self, pair: PagePair) -> list[_Link]:
        answer = await self._asked(pair, pair.output, wants_ids=False)
        if answer["ids"] is not None:
            self._ids[pair.output] = frozenset(answer["ids"])
        links: list[_Link] = []
        for line, target in answer["links"]:
            place = self._pages.of(pair.path, target)
            if place is not None:
                links.append(_Link(pair, line, target, *place))
        return links

    async def _learn(
        self, pairs: Iterable[PagePair], side: Literal["source", "output"] = "output"
    ) -> None:
        """Read the ids of pages that are not known."""
        paths = {getattr(pair, side): pair for pair in pairs}
        wanted = [(path, pair) for path, pair in paths.items() if path not in self._ids]
        answers = await asyncio.gather(
            *(self._asked(pair, path, wants_ids=True) for path, pair in wanted)
        )
        for (path, _), answer in zip(wanted, answers, strict=True):
            self._ids[path] = frozenset(answer["ids"])

    async def _asked(self, pair: PagePair, path: Path, *, wants_ids: bool) -> dict[str, Any]:
        asked = {**pair.question, "path": str(path), "wants_ids": wants_ids}
        try:
            return await self._children.links({**asked, "anchors": pair.anchors})
        except DocumentRefused:
            return {"links": [], "ids": []}


async def checked(request: RunRequest) -> tuple[int, Links]:
    """Return the number of translations that are there, and what became of their links."""
    pairs, lang = PagePairs(request), request.to[0]
    found = [each for each in Selection(request, [lang]).files() if each.reason is None]
    made = [
        pairs.of(each, output, lang)
        for each in found
        if (output := _output(request, each.path, lang)) is not None
    ]
    known = [each for each in made if each is not None]
    children = Children()
    try:
        links = await LinkCheck(children, known, [each.path for each in found]).check()
    finally:
        await children.close()
    return len(known), links


def _output(request: RunRequest, path: str, lang: str) -> Path | None:
    """Return where the translation of a path is; None if there is none."""
    return next((each for each in _outputs(request, path, lang) if each.is_file()), None)


def _outputs(request: RunRequest, path: str, lang: str) -> Iterator[Path]:
    yield output_of(request, path, lang)
    yield output_of(replace(request, layout="suffix"), path, lang)
    yield request.out / path
