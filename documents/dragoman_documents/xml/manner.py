"""How the text of an XML file is spelled: its references, its CDATA, its ends of lines."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from dragoman_documents.spelling import escapes
from dragoman_documents.xml.tree import escaped, legal, text_of

_PIECE: Final = re.compile(
    r"<!\[CDATA\[.*?\]\]>|&(?:amp|lt|gt|quot|apos|#[0-9]{1,8}|#x[0-9a-fA-F]{1,7});|\r\n?",
    re.DOTALL,
)
_CDATA: Final = re.compile(r"<!\[CDATA\[((?:[^\]]|\](?!\]>))*+)\]\]>")
_NEWLINE: Final = re.compile(r"\r\n?")
Pieces = Sequence[tuple[str, str]]
"""Parts of a text, decoded and as they are spelled, as `Spelling` takes them."""


class Manner(NamedTuple):
    """How a text is spelled, and how one that takes its place is."""

    pieces: Pieces
    write: Callable[[str], str]
    opening: str = ""
    """Around all of the text: CDATA, or quotes."""
    closing: str = ""


def xml_manner(raw: str) -> Manner:
    """Return how a text of XML is spelled."""
    whole = _CDATA.fullmatch(raw)
    if whole is None:
        return Manner(list(escapes(raw, _PIECE, _meaning)), escaped)
    lines = escapes(whole[1], _NEWLINE, _meaning)
    return Manner(list(lines), _within_cdata, "<![CDATA[", "]]>")


def joined(raws: Sequence[str], manner: Callable[[str], Manner]) -> Manner:
    """Return how a text is spelled that has markup in it."""
    found = [manner(raw) for raw in raws]
    if len(found) == 1:
        return found[0]
    pieces = (piece for each in found for piece in _unwrapped(each))
    plain = next((each.write for each in found if not each.opening), escaped)
    return Manner(list(pieces), plain)


def _unwrapped(manner: Manner) -> Pieces:
    if not manner.opening:
        return manner.pieces
    texts, raws = zip(*manner.pieces, strict=True) if manner.pieces else ((), ())
    return [("".join(texts), "".join([manner.opening, *raws, manner.closing]))]


def attached(pieces: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pieces with what stands for nothing, such as a quote, at the next character."""
    held, found = "", list[tuple[str, str]]()
    for text, raw in pieces:
        if not text:
            held += raw
        elif held and text == raw and len(text) > 1:
            found += ((text[0], held + text[0]), (text[1:], text[1:]))
            held = ""
        else:
            found.append((text, held + raw))
            held = ""
    if held and found:
        text, raw = found.pop()
        if text == raw and len(text) > 1:
            found.append((text[:-1], text[:-1]))
            text = raw = text[-1]
        found.append((text, raw + held))
    return found


def trimmed(pieces: Pieces, lead: str, trail: str) -> tuple[str, Pieces, str] | None:
    """Return pieces without the blanks at the ends of their text, and how these are spelled.

    None if a blank and a letter are one piece.
    """
    cut = _cut(pieces, len(lead), from_end=False)
    if cut is None:
        return None
    begin, rest = cut
    cut = _cut(rest, len(trail), from_end=True)
    return None if cut is None else (begin, cut[1], cut[0])


def _cut(pieces: Pieces, count: int, *, from_end: bool) -> tuple[str, Pieces] | None:
    """Return the spelling of some characters at an end, and the pieces without them."""
    rest, raws = deque(pieces), deque[str]()
    pop, add = (rest.pop, raws.appendleft) if from_end else (rest.popleft, raws.append)
    while count and rest:
        text, raw = pop()
        if len(text) > count:
            if text != raw:
                return None
            place = len(text) - count if from_end else count
            first, last = text[:place], text[place:]
            raw, kept = (last, first) if from_end else (first, last)
            (rest.append if from_end else rest.appendleft)((kept, kept))
        add(raw)
        count -= min(count, len(text))
    return None if count else ("".join(raws), tuple(rest))


def is_legal(spelled: str) -> bool:
    """Return whether XML allows a text with its CDATA: `]]>` stands nowhere else."""
    return "]]>" not in spelled or "]]>" not in _CDATA.sub("", spelled)


def _meaning(spelled: str) -> str:
    return text_of(spelled.encode())


def _within_cdata(text: str) -> str:
    return legal(text).replace("]]>", "]]]]><![CDATA[>")
