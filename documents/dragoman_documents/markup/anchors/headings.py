"""What has an id in a Markdown page, in its order: headings, and on some sites defined terms."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from dragoman_documents.markup.anchors.sluggers import Ids, Slugger
from dragoman_documents.markup.markdown.codec import MarkdownLayout
from dragoman_documents.markup.markdown.events import MarkdownBlock, MarkdownToken, parsed
from dragoman_documents.markup.markdown.masks import Mark
from dragoman_documents.values import is_text

_TAIL: Final = re.compile(
    rb"(?P<content>[ \t]*)(?P<list>\\?\{[^{}\r\n]*\})?[ \t]*(?P<closing>\#+)?[ \t]*"
    rb"(?P<behind>\{[^{}\r\n]*\})?[ \t]*(?=[\r\n]|\Z)"
)
_AT_END: Final = re.compile(rb"[ \t]+\\?(\{ ?[#.:][^{}\r\n]*\})\Z")
"""Attributes of a heading by the line below it, which are in its text."""
_COMMENT: Final = re.compile(r"\{/\*\s*#?(?P<id>[^\s*#]+)\s*\*/\}")
_NUMBER_SIGN: Final = re.compile(r"[\s{:]#(?P<id>[^\s#{}=]+)")
_MEMBER: Final = re.compile(r"(?:^|\s)id=(?P<quote>[\"']?)(?P<id>[^\s\"'{}]+)(?P=quote)")
_NEXT_LINE: Final = re.compile(rb"\r?\n[ \t>]*(\{:[^{}\r\n]*\})[ \t]*(?=[\r\n]|\Z)")
_TARGET_ABOVE: Final = re.compile(rb"\((?P<id>[^\s()]+)\)=[ \t]*\r?\n[ \t>]*\Z")
_LONGEST_TARGET: Final = 200
_TEMPLATE: Final = re.compile(r"\{\{|\{%")
_MARKS: Final = re.compile(r"\[\^[^\]\s]+\]")
_EMOJI: Final = re.compile(r":[A-Za-z+\-][\w+\-]*:")
_TAG: Final = re.compile(r"</?[A-Za-z>][^<>]*>|</?>")
_SMART: Final = re.compile(r"-{2,3}|\.{3}")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_NEXT: Final = re.compile(rb"[ \t]*\r?\n(?:[ \t>]*\r?\n)*[ \t>]*")
"""What may stand between a term and its definition."""
_ELEMENT: Final = re.compile(
    rb"<[A-Za-z][^<>]*?\s(?:id|name)\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>=]+))"
)


class Heading(NamedTuple):
    """A heading, its text at `[start:end)` of the page in UTF-8."""

    start: int
    end: int
    text: str | None
    """What the renderer makes an id of; None if that is known only when the site is built."""
    explicit: str | None
    """The id that the page gives to it."""
    attributes: tuple[int, int] | None
    """The place of its list of attributes."""
    behind: int
    """Where its line ends, without blanks, or behind its closing number signs."""
    is_term: bool = False
    """Whether it is no heading but a term with a definition: no syntax gives an id to it."""


def headings(
    layout: MarkdownLayout, slugger: Slugger, *, mdx: bool, reads_lists: bool
) -> list[Heading]:
    """Return the headings that the parser of a page sees, and the terms if they have ids."""
    found = [_heading(each, layout, slugger, mdx, reads_lists) for each in layout.headings]
    return sorted([*found, *_terms(layout, slugger)]) if slugger.terms else found


def ids_of(found: Sequence[Heading], slugger: Slugger) -> list[str | None]:
    """Return the id of each heading and term; None if it is known only when the site is built."""
    ids: Ids = {}
    if slugger.explicit_first:
        ids |= dict.fromkeys((each.explicit for each in found if each.explicit is not None), 0)
    return [_id_of(each, slugger, ids) for each in found]


def _id_of(heading: Heading, slugger: Slugger, ids: Ids) -> str | None:
    made = heading.explicit
    if made is None:
        if heading.text is None:
            return None
        made = slugger.unique(slugger.slug(heading.text), ids)
    ids.setdefault(made, 0)
    return made


def element_ids(source: bytes) -> frozenset[str]:
    """Return the ids and names that HTML elements of a page have."""
    if b"id" not in source and b"name" not in source:
        return frozenset()
    found = ((each[1] or each[2] or each[3] or b"") for each in _ELEMENT.finditer(source))
    return frozenset(each.decode("utf-8", "replace") for each in found)


def _heading(
    block: MarkdownBlock, layout: MarkdownLayout, slugger: Slugger, mdx: bool, reads_lists: bool
) -> Heading:
    source, tokens = layout.source, block.tokens
    start, end = tokens[0].start, tokens[-1].end
    if source[start - 1 : start] == b"\\" and source[start - 2 : start] != rb"\\":
        start -= 1
    tail = _TAIL.match(source, end)
    group = next((each for each in ("list", "behind") if tail and tail[each]), None)
    span = tail.span(group) if tail and group else None
    if block.underlined and reads_lists and (inside := _AT_END.search(source, start, end)):
        end, span = inside.start(), inside.span(1)
        tokens = _until(end, tokens, source)
    explicit = _explicit(source, span, end, start) if reads_lists else None
    if slugger.text == "raw":
        text: str | None = source[start:end].decode()
    else:
        text = _text(tokens, layout, slugger, mdx=mdx)
    if text is not None and span and not reads_lists:
        text += " " + source[slice(*span)].decode()
    last = tail.end("closing") if tail and tail["closing"] else end
    return Heading(start, end, text, explicit, span, last)


def _terms(layout: MarkdownLayout, slugger: Slugger) -> Iterator[Heading]:
    """Yield the terms of a page: each line of the block in front of a definition is one."""
    colons = [each.start for each in layout.masks.marks if _is_definition(layout.source, each)]
    if not colons:
        return
    blocks = [each for each in parsed(bytes(layout.masks.text)) if isinstance(each, MarkdownBlock)]
    starts = [each.tokens[0].start for each in blocks]
    for colon in colons:
        index = bisect_left(starts, colon) - 1
        if index >= 0 and _defines(layout.source, blocks[index], colon):
            for is_break, line in groupby(blocks[index].tokens, lambda each: each.kind == "soft"):
                if not is_break:
                    yield _term([*line], layout, slugger)


def _is_definition(source: bytes, mark: Mark) -> bool:
    """Return whether a mark lets the parser read the colon of a definition as an item's mark."""
    return mark.kind == "hidden" and source[mark.start : mark.end] == b":"


def _defines(source: bytes, block: MarkdownBlock, colon: int) -> bool:
    """Return whether a colon defines the text before it, which no other one defines."""
    start, end = block.tokens[0].start, block.tokens[-1].end
    if block.level or block.kind == "cell" or not _NEXT.fullmatch(source, end, colon):
        return False
    return start - source.rfind(b"\n", 0, start) == colon - source.rfind(b"\n", 0, colon)


def _term(tokens: Sequence[MarkdownToken], layout: MarkdownLayout, slugger: Slugger) -> Heading:
    start, end = tokens[0].start, tokens[-1].end
    text = _text(tokens, layout, slugger, mdx=False)
    return Heading(start, end, text, None, None, end, is_term=True)


def _until(end: int, tokens: Sequence[MarkdownToken], source: bytes) -> list[MarkdownToken]:
    """Return the tokens before a place; the one that crosses it is cut."""
    kept = [token for token in tokens if token.start < end]
    if kept and kept[-1].kind == "text" and kept[-1].end > end:
        last = kept[-1]
        kept[-1] = MarkdownToken("text", last.start, end, source[last.start : end].decode())
    return kept


def _explicit(source: bytes, span: tuple[int, int] | None, end: int, start: int) -> str | None:
    if span is not None:
        found = _id_in(source[slice(*span)].decode("utf-8", "replace"))
        if found is not None:
            return found
    following = _NEXT_LINE.match(source, end)
    if following is not None:
        return _id_in(following[1].decode("utf-8", "replace"))
    line = source.rfind(b"\n", 0, start) + 1
    above = _TARGET_ABOVE.search(source, max(0, line - _LONGEST_TARGET), line)
    return above["id"].decode("utf-8", "replace") if above else None


def _id_in(attributes: str) -> str | None:
    """Return the id in a list of attributes or a comment of MDX."""
    found = _COMMENT.search(attributes)
    if found is None:
        inside = attributes.lstrip("\\")
        found = _NUMBER_SIGN.search(inside) or _MEMBER.search(inside[1:-1])
    return found["id"] if found else None


# --- texts ----------------------------------------------------------------------------------------


def _text(
    tokens: Sequence[MarkdownToken], layout: MarkdownLayout, slugger: Slugger, *, mdx: bool
) -> str | None:
    pieces = list(_pieces(tokens, layout, slugger, mdx=mdx))
    return None if None in pieces else "".join(each for each in pieces if each is not None)


def _pieces(
    tokens: Sequence[MarkdownToken], layout: MarkdownLayout, slugger: Slugger, *, mdx: bool
) -> Iterator[str | None]:
    source, images = layout.source, list[bool]()
    for token in tokens:
        raw = source[token.start : token.end]
        if token.kind == "open":
            images.append(raw.startswith(b"!["))
        elif token.kind == "close":
            images.pop()
        elif True in images and slugger.text != "alternative":
            continue
        elif token.kind == "text":
            yield _written(token, raw.decode(), layout, slugger, mdx=mdx)
        elif token.kind == "soft":
            yield " "
        elif token.kind == "single":
            yield _single(raw.decode())


def _written(
    token: MarkdownToken, raw: str, layout: MarkdownLayout, slugger: Slugger, *, mdx: bool
) -> str | None:
    """Return a text as the renderer reads it: with the syntax of its site that CommonMark lacks."""
    masked = layout.masks.text[token.start : token.end].decode("utf-8", "replace") != raw
    text = raw if masked or slugger.text == "spelled" else token.text
    if masked and _TEMPLATE.search(text) and slugger.text != "spelled":
        return None
    if masked:
        text = _MARKS.sub("", text) if slugger.text != "spelled" else text
        text = _TAG.sub("", text) if mdx else text
        text = _ESCAPED.sub(r"\1", text) if slugger.text != "spelled" else text
    if not slugger.emoji:
        text = _EMOJI.sub("", text)
    return _SMART.sub("", text) if slugger.smart else text


def _single(raw: str) -> str:
    """Return the text of inline code, a formula or an address in angle brackets."""
    if raw.startswith("`"):
        inside = raw.strip("`")
        spaced = inside.startswith(" ") and inside.endswith(" ") and bool(inside.strip())
        return inside[1:-1] if spaced else inside
    if raw.startswith("<") and not raw.startswith("<!"):
        return raw[1:-1]
    return raw.strip("$") if raw.startswith("$") and is_text(raw) else ""
