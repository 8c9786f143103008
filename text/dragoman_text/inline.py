"""Inline tags of texts: of documents (``<g1>..</g1>``, ``<x2/>``), HTML, XML, React (``<0>``).

``<branch>`` in "git checkout <branch>" is prose. A tag is markup if HTML or a document codec knows
its name, if it closes another or itself, or if it has an attribute with a value.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

Form = Literal["open", "close", "empty"]

# Linear: no repetition goes past the next "<".
TAG: Final = (
    r"<!--[^<>]{0,1000}-->"
    r"|</?(?:[A-Za-z][A-Za-z0-9:\-]{0,60}(?:\s[^<>]{0,2000})?|[0-9]{1,3}[ ]?)/?>"
)
_TAG: Final = re.compile(TAG)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9:\-]*|[0-9]+")
_DOCUMENT_TAG: Final = re.compile(r"[gx][0-9]{1,6}")
_DIGITS: Final = r"[0-9０-９]{1,6}"
_SPELLED: Final = re.compile(
    rf"[<＜]\s*+(?P<close>[/／]?)\s*+(?P<name>[gxGXｇｘＧＸ])\s*+(?P<number>{_DIGITS})"
    r"\s*+(?P<empty>[/／]?)\s*+[>＞]"
)
"""A numbered tag as models may spell it: with blanks, in capitals, in full-width characters."""
_EMPTY_NAMES: Final = "area base br col embed hr img input link meta source track wbr"
_EMPTY_ELEMENTS: Final = frozenset(_EMPTY_NAMES.split())
_NAMES: Final = (
    "a abbr acronym address article aside audio b bdi bdo big blockquote body button canvas "
    "caption center cite code colgroup data datalist dd del details dfn dialog div dl dt em "
    "fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header html i iframe ins "
    "kbd label legend li main map mark menu meter nav noscript object ol optgroup option output p "
    "picture pre progress q rp rt ruby s samp script section select small span strike strong style "
    "sub summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var "
    "video"
)
ELEMENTS: Final = _EMPTY_ELEMENTS | frozenset(_NAMES.split())
"""Elements of HTML 5, and those of HTML 4 that texts still have."""


@dataclass(frozen=True, slots=True)
class InlineTag:
    """A tag at ``start`` of a text. ``name`` is in lower case and empty for a comment."""

    start: int
    text: str
    name: str
    form: Form

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)

    @property
    def numbered(self) -> bool:
        """Whether it is one of a document: ``<g1>``, ``</g1>`` or ``<x2/>``."""
        return _DOCUMENT_TAG.fullmatch(self.name) is not None


@dataclass(frozen=True, slots=True)
class Differences:
    """Tags of a source that its translation lacks, repeats, or has in an order that crosses."""

    missing: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()


def find_tags(text: str) -> list[InlineTag]:
    """Return the tags that are markup, in order. Linear in the text."""
    if "<" not in text:
        return []
    tags = [_tag(match) for match in _TAG.finditer(text)]
    closed = {tag.name for tag in tags if tag.form == "close"}
    return [tag for tag in tags if _is_markup(tag, closed)]


def pieces(text: str) -> Iterator[str | InlineTag]:
    """Yield the text between the tags, where there is some, and the tags, in order."""
    end = 0
    for tag in find_tags(text):
        if tag.start > end:
            yield text[end : tag.start]
        yield tag
        end = tag.end
    if end < len(text):
        yield text[end:]


def pairs(tags: Iterable[InlineTag]) -> tuple[list[tuple[InlineTag, InlineTag]], list[InlineTag]]:
    """Return each opening tag with the one that closes it, and the tags without a partner.

    A closing tag ends the last open tag of its name; those opened in between remain without.
    """
    paired: list[tuple[InlineTag, InlineTag]] = []
    alone: list[InlineTag] = []
    opened: list[InlineTag] = []
    names: Counter[str] = Counter()
    for tag in tags:
        if tag.form == "open":
            opened.append(tag)
            names[tag.name] += 1
        elif tag.form == "close" and not names[tag.name]:
            alone.append(tag)
        elif tag.form == "close":
            while (last := opened.pop()).name != tag.name:
                names[last.name] -= 1
                alone.append(last)
            names[tag.name] -= 1
            paired.append((last, tag))
    return paired, sorted([*alone, *opened], key=lambda tag: tag.start)


def compare(source: str, target: str) -> Differences:
    """Return how the tags of a translation differ from those of its source; equal if not at all.

    Tags are equal if their texts are. Only tags that nest in the source can be crossed.
    """
    before, after = find_tags(source), find_tags(target)
    expected, found = _counts(before), _counts(after)
    crossed = _counts(pairs(after)[1]) - _counts(pairs(before)[1])
    return Differences(
        missing=tuple(expected - found),
        repeated=tuple(found - expected),
        crossed=tuple(crossed & expected) if expected == found else (),
    )


def respelled(target: str, source: str) -> str:
    """Return the translation with its numbered tags spelled as those of the source.

    Only tags that the source has are changed: ``< G1 >`` becomes ``<g1>`` if there is a ``<g1>``.
    """
    given = {match[0] for match in _SPELLED.finditer(source)}
    if not given:
        return target

    def spelled(match: re.Match[str]) -> str:
        name = unicodedata.normalize("NFKC", match["name"]).lower()
        close, empty = "/" * bool(match["close"]), "/" * bool(match["empty"])
        tag = f"<{close}{name}{int(match['number'])}{empty}>"
        return tag if tag in given else match[0]

    return _SPELLED.sub(spelled, target)


def _tag(match: re.Match[str]) -> InlineTag:
    text = match[0]
    name = _NAME.search(text)
    if text.startswith("<!--") or name is None:
        return InlineTag(match.start(), text, "", "empty")
    lowered = name[0].lower()
    if text.startswith("</"):
        return InlineTag(match.start(), text, lowered, "close")
    empty = text.endswith("/>") or lowered in _EMPTY_ELEMENTS
    return InlineTag(match.start(), text, lowered, "empty" if empty else "open")


def _is_markup(tag: InlineTag, closed: Collection[str]) -> bool:
    return (
        tag.form != "open"
        or tag.name in ELEMENTS
        or tag.name in closed
        or "=" in tag.text
        or tag.numbered
    )


def _counts(tags: Iterable[InlineTag]) -> Counter[str]:
    return Counter(tag.text for tag in tags)
