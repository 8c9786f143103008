"""Translations in which nothing could be read as syntax, found by one look: most of them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import plain
from dragoman_documents.markup.markdown.inlines import normalized
from dragoman_documents.markup.markdown.parts import ADDRESS, DELIMITERS, glued
from dragoman_documents.markup.markdown.spelled import (
    MARK,
    ShortLinks,
    between_marks,
    ends_of,
    joined,
    unmarked,
)
from dragoman_documents.spelling import Kept, Spelling
from dragoman_text.spans import has_letters

_NUMBER: Final = "[1-9][0-9]{0,5}"
_BRACKETED: Final = r"(?<![^ ])\[[^\W\d_]{2,30}\](?=[ ,;])"
_BRACED: Final = r"(?<=[ ])\{[^\W\d_]{2,30}\}(?=[ ])"
"""A word in brackets, which is a link where its label is defined, and one in braces."""
_LABEL: Final = re.compile(r"\[([^\[\]]+)\]")
_PLAIN: Final = re.compile(
    r"(?=[^\W\d_]|<[gx]|\[)(?!(?:import|export)\b)"
    r"(?:[^\\`*\[\]|~_<&:$%^{}#=!\r\n\v\f]++"
    r"|!(?!<)|:(?=[ ]|\Z|</g)|&(?=[ ])|%(?!%)|#(?=\w)|(?<=[^\W_])_(?=[^\W_])"
    rf"|{_BRACKETED}|{_BRACED}"
    rf"|<g{_NUMBER}>(?!</)|</g{_NUMBER}>|<x{_NUMBER}/>)*+(?<![ \t])"
)
"""A text with tags and without a character that could be syntax where it stands."""
_TAG: Final = re.compile(rf"<(g{_NUMBER}|/g{_NUMBER}|x{_NUMBER}/)>")
_PAIR: Final = re.compile(r"<g([0-9]+)>.*?</g\1>")
_TIGHT: Final = re.compile(
    r"(?<=[\w>])<g|(?<=\S)<g[0-9]+>(?![^\W_])|<g[0-9]+>(?=[\s_]|<[g/]|\Z)"
    r"|</g[0-9]+>(?=[\w<])|(?<![^\W_])</g[0-9]+>(?=[^\s.,;:!?)])|(?:[\s_]|[^/]>)</g"
)
"""A tag whose delimiter might not open or close there."""
_RUNS: Final = "*_~"
"""What a delimiter beside a code could be read together with."""
_BEHIND: Final = re.compile("[/0-9]>[:(]")
"""A tag, and what could be a target behind it."""
_OF_LINES: Final = re.compile(r"^\\|[\r\n]")
"""A code that is a line break, or has one."""


class SpelledOnce(NamedTuple):
    """A translation that has one way to be written."""

    text: str
    is_literal: bool
    """Whether its source is on one line and spelled as it is, without links by reference."""

    @property
    def holds(self) -> bool:
        """Whether Markdown can hold it."""
        return True

    @property
    def is_plain(self) -> bool:
        """Whether it has one way to be written."""
        return True

    @property
    def doubtful(self) -> tuple[tuple[int, int], ...]:
        """Parts and places of the characters that could be read as syntax."""
        return ()

    def plainest(self) -> str:
        """Return it as it is."""
        return self.text

    def escaped(self, _places: Iterable[tuple[int, int]] | None = None) -> str:
        """Return it as it is."""
        return self.text


def written(
    text: str,
    codes: Sequence[InlineCode],
    spelling: Spelling | None,
    links: ShortLinks,
    *,
    outermost: bool,
) -> str | None:
    """Return how a translation is written, with line breaks between marks; None if in doubt.

    Without a `spelling` its source is spelled as it is. `outermost`: a unit of a whole block.
    Words in brackets and in braces must be text where it stands: compare `has_links`.
    """
    if not _PLAIN.fullmatch(text):
        return None
    if spelling and not (spelling.has_breaks_alone and _are_on_one_line(links)):
        return None
    if not codes and spelling is None:
        return text if "<" not in text and has_letters(text) else None
    parts = None
    if _are_plain(text, codes, outermost=outermost):
        parts = _rendered(text, codes, links)
    if parts is None:
        return None
    if spelling is not None:
        _add_breaks(parts, spelling.kept(plain(text)))
    return "".join(parts)


def has_links(text: str, labels: Container[str]) -> bool:
    """Return whether words in brackets may be links: labels, or inside of the brackets of one."""
    if "</g" in text and _PAIR.sub("", text).count("[") < text.count("["):
        return True
    return any(normalized(each) in labels for each in _LABEL.findall(text))


def keeps_constructs(source: str, text: str, codes: Sequence[InlineCode]) -> bool:
    """Return whether a translation that `written` returned has the constructs of its source.

    Neither of them has what constructs begin with but in their codes, which are the same.
    """
    if _PLAIN.fullmatch(source) is None or any(each in source or each in text for each in "[{"):
        return False
    return not codes or ("@" not in source and all(each.opening[:2] != "[[" for each in codes))


def finished(content: str, raw: str, *, mdx: bool) -> str:
    """Return what is written without marks, and without breaks that could begin another block.

    `raw` is its source, which may have them.
    """
    if MARK not in content:
        return content
    bare = unmarked(content)
    return bare if bare == raw else joined(content, mdx=mdx)


def _are_on_one_line(links: ShortLinks) -> bool:
    return not any("\n" in text or "\r" in text for ends in links.values() for text in ends)


def _are_plain(text: str, codes: Sequence[InlineCode], *, outermost: bool) -> bool:
    """Return whether these codes are syntax wherever they stand in this text."""
    delimits = runs = False
    for code in codes:
        if (code.closing or code.opening)[-1] == "]" and _BEHIND.search(text):
            return False
        if code.closing is not None:
            delimits |= code.opening in DELIMITERS or code.closing in DELIMITERS
        elif _OF_LINES.search(code.opening) or ADDRESS.match(code.opening):
            return False
        else:
            runs |= code.opening[0] in _RUNS or code.opening[-1] in _RUNS
    if delimits and runs:
        return False
    if delimits and (not outermost or _TIGHT.search(text)):
        return False
    return text[0].isalpha() or has_letters(_TAG.sub("", _PAIR.sub("", text)))


def _rendered(text: str, codes: Sequence[InlineCode], links: ShortLinks) -> list[str] | None:
    """Return texts and codes, by turns; None if the tags do not fit."""
    raws: dict[str, str] = {}
    for number, code in enumerate(codes, 1):
        if code.closing is None:
            raws[f"x{number}/"] = code.opening
        else:
            raws[f"g{number}"], raws[f"/g{number}"] = code.opening, code.closing
    parts = _TAG.split(text)
    tags = parts[1::2]
    if len(tags) != len(raws) or raws.keys() != set(tags) or not _nest(tags):
        return None
    parts[1::2] = [raws[tag] for tag in tags]
    end = ends_of(links)
    for at, tag in enumerate(tags) if links else ():
        if tag[0] == "/" and raws[tag] in links:
            inside = "".join(parts[2 * tags.index(tag[1:]) + 2 : 2 * at + 1])
            parts[2 * at + 1] = end(raws[tag], inside)
    for index in range(2, len(parts) - 1, 2):
        if not parts[index] and glued(parts[index - 1], parts[index + 1]):
            return None
    return parts


def _nest(tags: Sequence[str]) -> bool:
    opened: list[str] = []
    for tag in tags:
        if tag[0] == "g":
            opened.append(f"/{tag}")
        elif tag[0] == "/" and (not opened or opened.pop() != tag):
            return False
    return True


def _add_breaks(parts: list[str], kept: Sequence[Kept]) -> None:
    """Put line breaks into texts that stand by turns with codes, each between marks."""
    place, rest = 0, iter(kept)
    each = next(rest, None)
    for index in range(0, len(parts), 2):
        text, start = parts[index], place
        made: list[str] = []
        end = start + len(text)
        while each is not None and each.start < end:
            if each.end <= end:
                made.append(f"{text[place - start : each.start - start]}{between_marks(each.raw)}")
                place = each.end
            each = next(rest, None)
        if made:
            parts[index] = "".join(made) + text[place - start :]
        place = end
