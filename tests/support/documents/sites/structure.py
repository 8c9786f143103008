"""The structure of built pages, read by `html.parser`, and how two builds of a site differ."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

_MARK: Final = re.compile(r"(?<![a-z0-9])zz(?:[\s+_-]|%20|$)\s*", re.IGNORECASE)
_RANDOM: Final = re.compile(r"(?<=equation-)[0-9a-f-]{36}|\b(?:tab|group)-[\w-]{5,7}(?![\w-])")
"""Ids that Sphinx and VitePress make anew in each build."""
_CALLOUT: Final = re.compile(r"(^\s*\[![\w-]+\][^\n]*\n)")
"""The title of a callout, which ends with its line: most generators leave both as they are."""
_HIDDEN: Final = frozenset({"script", "style", "link", "meta", "svg", "template"})
_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_INLINE: Final = frozenset(
    {"a", "abbr", "b", "br", "cite", "code", "del", "em", "i", "img", "ins", "kbd", "mark", "q",
     "s", "small", "span", "strong", "sub", "sup", "u", "wbr", "input", "label", "math"}
)  # fmt: skip
_NOT_PAGES: Final = frozenset(
    {"404.html", "search.html", "genindex.html", "print.html", "toc.html"}
)
_SOURCES: Final = frozenset({".md", ".mdx"})


class Event(NamedTuple):
    """A part of a page, in the order of the page."""

    kind: str
    """`heading`, `link`, `image`, `code`, `id`, `tag` or `text`: a difference is counted by it."""
    value: str


@dataclass(slots=True)
class Page:
    """A page: its parts without marks, its ids and links as they are, its unmarked texts."""

    events: list[Event] = field(default_factory=list[Event])
    ids: set[str] = field(default_factory=set[str])
    links: list[str] = field(default_factory=list[str])
    unmarked: list[str] = field(default_factory=list[str])
    """Texts of blocks that have words and no mark."""


def without_mark(text: str) -> str:
    """Return a text, or the slug of one, as it was before it was marked."""
    return _MARK.sub("", text)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._hidden = 0
        self._pre = 0
        self._text: list[str] = []
        self._block: list[str] = []
        self._spans: list[bool] = []
        """Of those that are open: whether it is Sphinx' mark of a link within the site, whose link
        is compared elsewhere."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag and what it says."""
        if tag in _HIDDEN or self._hidden:
            self._hidden += tag not in _VOID
            return
        self._end_of_text(tag)
        attributes = {name: value or "" for name, value in attrs}
        if tag == "span":
            self._spans.append("xref" in attributes.get("class", "").split())
            if self._spans[-1]:
                return
        if tag in {"pre", "code"} and "admonish" not in attributes.get("class", ""):
            self._pre += 1
        self._note(tag, attributes)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag without contents."""
        if tag not in _HIDDEN and not self._hidden:
            self._end_of_text(tag)
            self._note(tag, {name: value or "" for name, value in attrs})

    def _note(self, tag: str, attributes: dict[str, str]) -> None:
        add, page = self.page.events.append, self.page
        rest = {
            name: value for name, value in attributes.items() if name not in {"id", "href", "src"}
        }
        shown = "".join(f" {name}={_plain(value)!r}" for name, value in sorted(rest.items()))
        level = tag[1:] if re.fullmatch("h[1-6]", tag) else ""
        add(Event("heading" if level else "tag", f"<{tag}{shown}>"))
        if "id" in attributes or (tag == "a" and "name" in attributes):
            page.ids.add(attributes.get("id") or attributes.get("name", ""))
            add(Event("id", _plain(attributes.get("id", ""))))
        if "href" in attributes:
            page.links.append(attributes["href"])
            add(Event("link", _plain(attributes["href"])))
        if "src" in attributes:
            add(Event("image" if tag == "img" else "tag", attributes["src"]))

    def handle_endtag(self, tag: str) -> None:
        """Note the end of an element."""
        if self._hidden:
            self._hidden -= tag not in _VOID
            return
        self._end_of_text(tag)
        if tag == "span" and self._spans and self._spans.pop():
            return
        if tag in {"pre", "code"} and self._pre:
            self._pre -= 1
        self.page.events.append(Event("tag", f"</{tag}>"))

    def handle_data(self, data: str) -> None:
        """Keep text."""
        if not self._hidden:
            self._text.append(data)

    def _end_of_text(self, tag: str) -> None:
        text, self._text = "".join(self._text), []
        if self._pre and text.strip():
            self.page.events.append(Event("code", text))
        else:
            self._block.append(text)
            parts = (_plain(part) for part in _CALLOUT.split(text))
            self.page.events += [Event("text", plain) for plain in parts if plain]
        if tag not in _INLINE:
            self._end_of_block()

    def _end_of_block(self) -> None:
        text, self._block = " ".join("".join(self._block).split()), []
        if re.search(r"[^\W\d_]{2}", text) and not _MARK.search(text):
            self.page.unmarked.append(text)

    def close(self) -> None:
        """Note the last text."""
        super().close()
        self._end_of_text("html")


def _plain(text: str) -> str:
    return _RANDOM.sub("", without_mark(" ".join(text.split()) + " ").strip())


def read_page(html: str) -> Page:
    """Return the parts of a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page


def read_site(folder: Path) -> dict[str, Page]:
    """Return the pages of a built site by their paths."""
    found = sorted(path for path in folder.rglob("*.html") if path.name not in _NOT_PAGES)
    return {
        path.relative_to(folder).as_posix(): read_page(path.read_text("utf-8")) for path in found
    }


@dataclass(slots=True)
class Difference:
    """How a built site differs from the one of its source."""

    counts: Counter[str] = field(default_factory=Counter[str])
    """Parts that are in one of both alone, by kind; `page` for pages, `dead link` for links."""
    lines: list[str] = field(default_factory=list[str])
    """Each of them, for people."""
    headings: list[str] = field(default_factory=list[str])
    """Links to the automatic id of a heading, which changes with its text."""

    def add(self, kind: str, line: str) -> None:
        """Count and describe a difference."""
        self.counts[kind] += 1
        self.lines.append(f"{kind}: {line}")


def compare(source: Path, output: Path) -> Difference:
    """Return how two built sites differ, but for the marks in the texts of the second."""
    before, after = read_site(source), read_site(output)
    found = Difference()
    for path in sorted(before.keys() ^ after.keys()):
        found.add("page", path)
    for path in sorted(before.keys() & after.keys()):
        _compare_events(path, before[path].events, after[path].events, found)
    _compare_links(source, before, output, after, found)
    return found


def _compare_events(path: str, a: list[Event], b: list[Event], found: Difference) -> None:
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    for what, a1, a2, b1, b2 in matcher.get_opcodes():
        if what == "equal":
            continue
        for sign, part in (("-", a[a1:a2]), ("+", b[b1:b2])):
            for kind, value in part:
                found.add(kind, f"{path} {sign} {value}")


def _compare_links(
    source: Path, before: dict[str, Page], output: Path, after: dict[str, Page], found: Difference
) -> None:
    for path in sorted(before.keys() & after.keys()):
        working = {
            _plain(link) for link in before[path].links if _works(source, before, path, link)
        }
        for link in sorted(set(after[path].links)):
            if _plain(link) not in working or _works(output, after, path, link):
                continue
            if _works_without_marks(output, after, path, link):
                found.headings.append(f"{path}: {link}")
            else:
                found.add("dead link", f"{path}: {link}")


def _works(folder: Path, pages: dict[str, Page], path: str, link: str) -> bool:
    """Return whether a link leads into the site, to a file and an id that are there."""
    target = _target(folder, path, link)
    if target is None:
        return False
    fragment = unquote(urlsplit(link).fragment)
    return not fragment or target not in pages or fragment in pages[target].ids


def _works_without_marks(folder: Path, pages: dict[str, Page], path: str, link: str) -> bool:
    target, fragment = _target(folder, path, link), unquote(urlsplit(link).fragment)
    return target in pages and fragment in {_plain(each) for each in pages[target].ids}


def _target(folder: Path, path: str, link: str) -> str | None:
    """Return the path of the file that a link means; None for one that leads out or nowhere."""
    parts = urlsplit(link)
    if (parts.netloc and parts.netloc != "lamp.example") or parts.scheme not in {"", "https"}:
        return None
    if not parts.path:
        return None if parts.netloc else path
    joined = PurePosixPath("/", *PurePosixPath(path).parent.parts, unquote(parts.path))
    wanted = _normal(joined)
    if PurePosixPath(wanted).suffix in _SOURCES:
        wanted = str(PurePosixPath(wanted).with_suffix(".html"))
    for each in (wanted, f"{wanted}/index.html", f"{wanted}.html"):
        if (folder / each.lstrip("/")).is_file():
            return each.lstrip("/")
    return None


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts[1:]:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
