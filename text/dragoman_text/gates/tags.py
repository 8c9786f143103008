"""Gate `tags`: the answer has the tags of the source, and they nest as well."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.prose import spans
from dragoman_text.inline import ELEMENTS, InlineTag, find_tags, pairs
from dragoman_text.verdicts import Candidate

# Lone tags that stand for themselves. A lone `<time>` or `<address>` is prose as often.
_LONE: Final = frozenset({"br", "hr", "img", "wbr", "input", "p", "li", "td", "tr"})
# What stands around text of a page: half a pair of these is no word of a sentence.
_MOST_BETWEEN: Final = 20
"""Characters between the tags of a pair without text."""
_NAMES_OF_FORMATTING: Final = (
    "b i u em strong span div code pre sup sub small big font tt kbd samp del ins ul ol table "
    "tbody thead h1 h2 h3 h4 h5 h6 blockquote"
)
_FORMATTING: Final = frozenset(_NAMES_OF_FORMATTING.split())
# Attributes that people read are translated.
_READ: Final = re.compile(
    r"""\s(?:title|alt|placeholder|label|content|value|summary|lang|dir|xml:lang|(?:aria|data)-[\w-]+)
    \s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.VERBOSE | re.IGNORECASE,
)


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if tags are missing, too many or cross each other.

    Judged are numbered tags, known HTML, and every name that the source opens and closes. A lone
    `<branch>` is prose: 80 % of those are translated. A lone `<br>`, attributes, and a pair that
    has lost its text are slight.
    """
    source, target = _tags(candidate.source), _tags(candidate.target)
    if not source and not target:
        return None
    numbered = {tag.name for tag in (*source, *target) if tag.numbered}
    certain = _paired(source) | numbered | (_FORMATTING & {tag.name for tag in source})
    changed = _changed(source, target, certain)
    if changed is not None:
        return changed
    if _nests(source, certain) and not _nests(target, certain):
        return Defect("The tags of the answer cross each other.")
    others = _LONE | (_paired(target) & ELEMENTS)
    lone = _changed(source, target, others) or _attributes(source, target, certain | _LONE)
    if lone is not None:
        return Defect(lone.detail, slight=True)
    emptied = _empty(candidate.target, target, certain) - _empty(candidate.source, source, certain)
    return (
        Defect(f"The answer has no text in {listed(list(emptied))}.", slight=True)
        if emptied
        else None
    )


@lru_cache(maxsize=4)
def _tags(text: str) -> tuple[InlineTag, ...]:
    """Return the tags, without those inside of code and links."""
    starts = {span.start for span in spans(text) if span.kind == "tag"}
    return tuple(tag for tag in find_tags(text) if tag.start in starts) if starts else ()


def _paired(tags: Iterable[InlineTag]) -> frozenset[str]:
    opened = {tag.name for tag in tags if tag.form == "open"}
    return frozenset(opened & {tag.name for tag in tags if tag.form == "close"})


def _changed(
    source: Sequence[InlineTag], target: Sequence[InlineTag], names: Iterable[str]
) -> Defect | None:
    names = frozenset(names)
    expected = Counter(_without_attributes(tag) for tag in source if tag.name in names)
    found = Counter(_without_attributes(tag) for tag in target if tag.name in names)
    if missing := list(expected - found):
        return Defect(f"The answer lacks {listed(missing)}.")
    if added := list(found - expected):
        return Defect(f"The answer has {listed(added)} more often than the source.")
    return None


def _without_attributes(tag: InlineTag) -> str:
    slash, end = "/" * (tag.form == "close"), "/" * (tag.form == "empty")
    return f"<{slash}{tag.name}{end}>"


def _nests(tags: Iterable[InlineTag], names: Iterable[str]) -> bool:
    names = frozenset(names)
    return not pairs(tag for tag in tags if tag.name in names and tag.form != "empty")[1]


def _empty(text: str, tags: Sequence[InlineTag], names: Iterable[str]) -> Counter[str]:
    """Return how many pairs of each tag have no letter or digit between them."""
    names = frozenset(names)
    paired = pairs(tag for tag in tags if tag.name in names and tag.form != "empty")[0]
    return Counter(
        _without_attributes(opening)
        for opening, closing in paired
        if closing.start - opening.end < _MOST_BETWEEN
        and not any(map(str.isalnum, text[opening.end : closing.start]))
    )


def _attributes(
    source: Sequence[InlineTag], target: Sequence[InlineTag], names: Iterable[str]
) -> Defect | None:
    names = frozenset(names)
    expected, found = (
        Counter(_without_read(tag.text) for tag in tags if tag.name in names)
        for tags in (source, target)
    )
    missing = list(expected - found)
    return Defect(f"The answer changes {listed(missing)}.") if missing else None


def _without_read(tag: str) -> str:
    return "".join(_READ.sub("", tag).split()).lower()
