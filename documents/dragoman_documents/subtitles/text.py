"""Texts of cues: tags as codes, lines joined to sentences, sentences cut into cues and lines.

Lines are joined with a blank, in scripts without blanks with nothing. A text is cut only where
joining gives it back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Final, NamedTuple

from dragoman_documents.inline_codes import ClosingCode, OpeningCode, Piece, SingleCode

_DRAWING: Final = (
    r"\{(?=\\)[^{}\n]{0,200}?\\p[1-9][0-9]?(?=[\\}])[^{}\n]{0,200}+\}"
    r"(?:[^{]|\{(?![^{}\n]{0,200}?\\p0))*+(?:\{[^{}\n]{0,200}\})?"
    r"|(?:^|(?<=\}))[ \t]*+m(?:[ \t]++-?[0-9.]++){2}"
    r"(?:[ \t]++(?:[mnlbspc]|-?[0-9.]++)(?![^ \t\n{]))++[ \t]*+(?=$|\{)"
)
"""Shapes of ASS, between their tags or left over as a line: `m 0 0 l 100 0 100 100`."""
_PRONUNCIATION: Final = r"<rt(?:[ .][^<>\n]{0,200})?>(?:[^<]|<(?!/?r[tu]))*+(?:</rt>)?"
SRT_TAG: Final = re.compile(
    rf"{_DRAWING}|</?(?i:i|b|u|s|font|c|v)(?:[ .][^<>\n]{{0,200}})?>|\{{\\[^{{}}\n]{{1,200}}\}}"
    r"|(?:\\[Nnh])++",
    re.MULTILINE,
)
"""Markup, and of ASS what players obey: its tags, and breaks and hard blanks (`\\N`, `\\h`)."""
VTT_TAG: Final = re.compile(rf"{_DRAWING}|{_PRONUNCIATION}|<[^<>\n]{{0,1000}}>", re.MULTILINE)
_NAME: Final = re.compile(r"<(/?)(?!rt[ .>])([A-Za-z]+)")
_TAG: Final = re.compile(r"</?[gx][1-9][0-9]{0,5}/?>")
_CLAUSE: Final = frozenset(",;:.!?…—–、，；：。！？،؛")
_UNSPACED_RANGES: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff"
)
"""Characters of scripts without blanks between words."""
_UNSPACED: Final = re.compile(f"[{_UNSPACED_RANGES}]")
_TOKEN: Final = re.compile(
    rf"(?P<tag>{_TAG.pattern})|(?P<blank>\s)|(?P<word>[^\s<{_UNSPACED_RANGES}]++|<)|\S"
)
"""The last kind is a character of a script without blanks."""
_NOT_FIRST: Final = frozenset("、，；：。！？」』）ーぁぃぅぇぉっゃゅょァィゥェォッャュョ")
_NOT_LAST: Final = frozenset("「『（")
_MARKS: Final = re.compile(r"[\u0e30-\u0e3a\u0e45-\u0e4e\u0eb0-\u0ebc\u102b-\u103e\u17b4-\u17d3]")
"""Vowels and tones that stay with the letter before them."""
_WIDTH: Final = 42
"""Characters per line that subtitles have by convention; ideographs count two."""
_FEWEST_WORDS: Final = 2
_NEAR: Final = 24
"""Places on each side of a share that are compared."""


def core(raw: str, tags: re.Pattern[str]) -> tuple[int, int]:
    """Return the range of a cue's text without the tags around it: `<v Ann>`, `<i>..</i>`."""
    found = list(tags.finditer(raw))
    if not found:
        return _trimmed(raw, 0, len(raw))
    partner = _partners(found)
    closing = set(partner.values())
    first, last, start, end = 0, len(found) - 1, 0, len(raw)
    while first <= last:
        start, end = _trimmed(raw, start, end)
        opens, closes = found[first].start() == start, found[last].end() == end
        if opens and (first not in partner or (closes and partner[first] == last)):
            start = found[first].end()
            if first in partner:
                end, last = found[last].start(), last - 1
            first += 1
        elif closes and last not in partner and last not in closing:
            end, last = found[last].start(), last - 1
        else:
            break
    return _trimmed(raw, start, end)


def _trimmed(raw: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without blanks at its ends; a slice per tag would take quadratic time."""
    while start < end and raw[start].isspace():
        start += 1
    while start < end and raw[end - 1].isspace():
        end -= 1
    return start, end


def _partners(found: Sequence[re.Match[str]]) -> dict[int, int]:
    """Return the closing tag of each opening one that has one; they nest."""
    opened: list[tuple[str, int]] = []
    partners: dict[int, int] = {}
    for index, match in enumerate(found):
        name = _NAME.match(match[0])
        if name is None or match[0].endswith("/>"):
            continue
        if not name[1]:
            opened.append((name[2].lower(), index))
        elif opened and opened[-1][0] == name[2].lower():
            partners[opened.pop()[1]] = index
    return partners


def pieces_of(raw: str, tags: re.Pattern[str], decode: Callable[[str], str]) -> Iterator[Piece]:
    """Yield the pieces of a cue's text: tags in pairs, or single ones."""
    found = list(tags.finditer(raw))
    partners = _partners(found) if found else {}
    closing = set(partners.values())
    end = 0
    for index, match in enumerate(found):
        yield decode(raw[end : match.start()])
        if index in closing:
            yield ClosingCode()
        elif index in partners:
            yield OpeningCode(match[0], found[partners[index]][0])
        else:
            yield SingleCode(match[0])
        end = match.end()
    yield decode(raw[end:])


def joined(text: str) -> str:
    """Return a text with our tags in one line."""
    return "".join(glue + line for glue, line in _lines(text)) if "\n" in text else text


def breaks_of(text: str) -> list[tuple[int, int]]:
    """Return where a text with our tags, once it is joined, had its line breaks."""
    found: list[tuple[int, int]] = []
    end = 0
    for glue, line in _lines(text):
        found.append((end, end + len(glue)))
        end += len(glue) + len(line)
    return found[1:]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a text with what joins it to the one before."""
    lines = [line for each in text.split("\n") if (line := each.strip(" \t"))]
    shown = [_TAG.sub("", line) for line in lines]
    following = _following(shown)
    before = ""
    for index, line in enumerate(lines):
        before = shown[index - 1][-1:] or before if index else ""
        after = following[index - 1] if index else ""
        spaced = before and after and not _is_unspaced(before) and not _is_unspaced(after)
        yield " " if spaced else "", line


def _following(shown: Sequence[str]) -> list[str]:
    """Return for each line the first character that is shown behind it; empty at the end."""
    found: list[str] = []
    after = ""
    for line in reversed(shown):
        found.append(after)
        after = line[:1] or after
    return found[::-1]


def _is_unspaced(character: str) -> bool:
    return _UNSPACED.match(character) is not None


def width(text: str) -> int:
    """Return how wide a text is shown, without its tags: ideographs count two."""
    shown = _TAG.sub("", text) if "<" in text else text
    return len(shown) if shown.isascii() else len(shown) + len(_UNSPACED.findall(shown))


class _Place(NamedTuple):
    """Where a text may be cut: `[start:end)` is dropped there, `offset` is the width before."""

    start: int
    end: int
    offset: int
    depth: int
    clause: bool


def _places(text: str) -> Iterator[_Place]:
    """Yield the places at which a text can be cut so that joining gives it back."""
    before, blanks, offset, depth, unspaced = "", "", 0, 0, False
    place = _Place(0, 0, 0, 0, clause=False)
    for token in _TOKEN.finditer(text):
        kind, spelled = token.lastgroup, token[0]
        if kind == "tag":
            depth += 0 if "x" in spelled else -1 if spelled.startswith("</") else 1
        elif kind == "blank":
            blanks += spelled
            place = _Place(token.start(), token.end(), offset, depth, before[-1:] in _CLAUSE)
            offset += 1
        else:
            either, unspaced = unspaced or kind is None, kind is None
            if blanks == " " and not either and before:
                yield place
            elif not blanks and either and before and _may_part(before[-1], spelled):
                start = token.start()
                yield _Place(start, start, offset, depth, before[-1] in _CLAUSE)
            before, blanks = spelled, ""
            offset += 2 if unspaced else len(spelled)


def is_long(text: str) -> bool:
    """Return whether a text has enough words for its translation to be a cue of its own."""
    return len(text.split()) >= _FEWEST_WORDS or len(_UNSPACED.findall(text)) >= 2 * _FEWEST_WORDS


def _may_part(before: str, after: str) -> bool:
    return after not in _NOT_FIRST and before not in _NOT_LAST and not _MARKS.match(after)


def cut(text: str, shares: Sequence[int], mark: str, *, nested: bool) -> str | None:
    """Return a text with marks that part it by shares, at the clause or word nearest to each.

    `nested`: whether a pair of tags may be parted. None if there are fewer pieces than shares.
    """
    if len(shares) == 1:
        return text
    places = [place for place in _places(text) if nested or not place.depth]
    if len(places) < len(shares) - 1:
        return None
    total, whole = width(text), max(sum(shares), 1)
    parts: list[str] = []
    last, end, done = -1, 0, 0
    for index, share in enumerate(shares[:-1]):
        done += share
        allowed = range(last + 1, len(places) - (len(shares) - 2 - index))
        last = _nearest(places, allowed, total * done / whole, total / len(shares))
        parts += (text[end : places[last].start], mark)
        end = places[last].end
    return "".join([*parts, text[end:]])


def _nearest(places: Sequence[_Place], allowed: range, wanted: float, mean: float) -> int:
    """Return the place nearest to an offset; the end of a clause may be a third farther."""
    middle = bisect_left(places, wanted, allowed.start, allowed.stop, key=lambda each: each.offset)

    def cost(index: int) -> float:
        return abs(places[index].offset - wanted) - (mean / 3 if places[index].clause else 0)

    near = range(max(allowed.start, middle - _NEAR), min(allowed.stop, middle + _NEAR))
    return min(near, key=cost)


def longest(source: Sequence[str]) -> int:
    """Return how wide the lines of a cue may be."""
    return max([_WIDTH, *map(width, source)])


def wrapped(text: str, source: Sequence[str]) -> str:
    """Return a cue's text in lines of 42 characters, or as long as those of its source."""
    count = ceil(width(text) / longest(source))
    return (cut(text, [1] * count, "\n", nested=True) if count > 1 else None) or text
