"""Gate `tags`: the answer has the tags of the source, and they nest as well."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dragoman_worker.ports.quality import Candidate
from dragoman_worker.quality.gates.defect import Defect, listed
from dragoman_worker.quality.gates.prose import spans

_HTML_NAMES: Final = (
    "a abbr address article aside b bdi bdo big blockquote body br button caption center cite code "
    "col colgroup dd del details dfn div dl dt em fieldset figcaption figure font footer form h1 "
    "h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link main mark "
    "meta nav ol optgroup option p pre q rp rt ruby s samp script section select small span strike "
    "strong style sub summary sup table tbody td template textarea tfoot th thead time title tr tt "
    "u ul var video wbr"
)
_HTML: Final = frozenset(_HTML_NAMES.split())
# Lone tags that stand for themselves. A lone `<time>` or `<address>` is prose as often.
_LONE: Final = frozenset({"br", "hr", "img", "wbr", "input", "p", "li", "td", "tr"})
_INLINE: Final = re.compile(r"[gx][0-9]{1,6}")
_PARTS: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:\-]*)([^<>]*?)(/?)>")
# Attributes that people read are translated.
_READ: Final = re.compile(
    r"""\s(?:title|alt|placeholder|label|content|value|summary|lang|dir|xml:lang|(?:aria|data)-[\w-]+)
    \s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Tag:
    text: str
    name: str
    kind: str
    """`open`, `close` or `empty`."""

    def __str__(self) -> str:
        slash, end = "/" * (self.kind == "close"), "/" * (self.kind == "empty")
        return f"<{slash}{self.name}{end}>"


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if tags are missing, too many or cross each other.

    Judged are numbered tags, known HTML, and every name that the source opens and closes. A lone
    `<branch>` is prose: 80 % of those are translated. A lone `<br>` and attributes are slight.
    """
    source, target = _tags(candidate.source), _tags(candidate.target)
    if not source and not target:
        return None
    certain = _paired(source) | {tag.name for tag in (*source, *target) if _INLINE.match(tag.name)}
    changed = _changed(source, target, certain)
    if changed is not None:
        return changed
    if _nests(source, certain) and not _nests(target, certain):
        return Defect("The tags of the answer cross each other.")
    others = _LONE | (_paired(target) & _HTML)
    lone = _changed(source, target, others) or _attributes(source, target, certain | _LONE)
    return None if lone is None else Defect(lone.detail, slight=True)


@lru_cache(maxsize=4)
def _tags(text: str) -> tuple[_Tag, ...]:
    found = (text[span.start : span.end] for span in spans(text) if span.kind == "tag")
    return tuple(tag for tag in map(_tag, found) if tag is not None)


def _tag(text: str) -> _Tag | None:
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    kind = "close" if parts[1] else "empty" if parts[4] else "open"
    return _Tag(text, parts[2].lower(), kind)


def _paired(tags: Iterable[_Tag]) -> frozenset[str]:
    opened = {tag.name for tag in tags if tag.kind == "open"}
    return frozenset(opened & {tag.name for tag in tags if tag.kind == "close"})


def _changed(source: Sequence[_Tag], target: Sequence[_Tag], names: Iterable[str]) -> Defect | None:
    names = frozenset(names)
    expected = Counter(str(tag) for tag in source if tag.name in names)
    found = Counter(str(tag) for tag in target if tag.name in names)
    if missing := list(expected - found):
        return Defect(f"The answer lacks {listed(missing)}.")
    if added := list(found - expected):
        return Defect(f"The answer has {listed(added)} more often than the source.")
    return None


def _nests(tags: Iterable[_Tag], names: Iterable[str]) -> bool:
    names = frozenset(names)
    opened: list[str] = []
    for tag in tags:
        if tag.name not in names or tag.kind == "empty":
            continue
        if tag.kind == "open":
            opened.append(tag.name)
        elif not opened or opened.pop() != tag.name:
            return False
    return not opened


def _attributes(
    source: Sequence[_Tag], target: Sequence[_Tag], names: Iterable[str]
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
