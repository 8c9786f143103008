"""How a document of HTML spells a text: its references, blanks and line breaks, kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from dragoman_documents.codec import InlineCode
from dragoman_documents.inline_codes import LOOKALIKE
from dragoman_documents.markup.html.blocks import HtmlPlace
from dragoman_documents.markup.html.text import (
    decoded_text,
    decoded_value,
    escaped,
    spelled,
    trimmed,
)
from dragoman_documents.markup.html.tokens import tokens
from dragoman_documents.markup.templates import is_template
from dragoman_documents.spelling import Spelling

_ODD: Final = re.compile("[&<>\n\t\r\f\u00a0]|  ")
"""What a text must hold to be spelled otherwise than a translation would be."""
_REFERENCE: Final = r"&(?:#[0-9]++;?|#[xX][0-9a-fA-F]++;?|[^\t\n\f\r <&#;\"']{1,32}+;?)"
_PIECE: Final = re.compile(rf"([\t\n\f\r][\t\n\f\r ]*+| [\t\n\f\r ]++|{_REFERENCE})")
_PRESERVED: Final = re.compile(rf"(\r\n?|{_REFERENCE})")
_TITLE: Final = re.compile(r"<title\b", re.IGNORECASE)
_BARE: Final = re.compile(r"[^\t\n\f\r >\"'][^\t\n\f\r >]*+")
"""The value of an attribute that needs no quotation marks; a `/` at its end could end the tag."""

_Piece = tuple[str, str]
"""A part of a text: decoded, and as the document spells it."""
_Spell = Callable[[str], str]


def block_spelled(
    document: str, place: HtmlPlace, text: str, codes: Sequence[InlineCode], *, xml: bool
) -> str:
    """Return the spelling of a block's translation: as its source spells what is still there."""
    default = partial(escaped, xml=xml, preserved=place.preserved)
    raws = [document[start:end] for start, end in place.texts]
    if not any(map(_ODD.search, raws)):
        return spelled(text, codes, default)
    decode = partial(decoded_text, xml=xml, preserved=place.preserved)
    pattern = _PRESERVED if place.preserved else _PIECE
    looks: list[str] = []
    pieces = [piece for each in raws for piece in _of_text(each, pattern, decode, looks)]
    spelling = Spelling(pieces, default)
    keep = spelling.keeping(text)
    if spelling.has_breaks_alone and not looks and "  " not in text:
        return spelled(text, codes, default, keep)
    in_title = not xml and _TITLE.match(document, place.block[0]) is not None
    is_text = partial(_is_text, xml=xml, in_title=in_title)
    shown = _as_in_source(codes, place.codes, looks) if looks else codes
    return spelled(text, shown, default, _checked(keep, default, decode, is_text))


def value_spelled(raw: str, text: str, codes: Sequence[InlineCode], *, xml: bool) -> str:
    """Return an attribute's value, in quotation marks where `raw` has them or it needs them."""
    quote = raw[0] if raw[0] in "\"'" else ""
    inner = raw[1:].removesuffix(quote) if quote else raw
    start, end = trimmed(inner, 0, len(inner))
    default = partial(escaped, xml=xml, quote=quote or '"')
    if quote and not _ODD.search(inner):
        return f"{quote}{inner[:start]}{spelled(text, codes, default)}{inner[end:]}{quote}"
    looks: list[str] = []
    pieces = _of_text(inner[start:end], _PIECE, decoded_value, looks)
    keep = Spelling(pieces, default).keeping(text)
    templates = [is_template(each.opening) or None for each in codes]
    shown = _as_in_source(codes, templates, looks)
    content = spelled(text, shown, default, _checked(keep, default, decoded_value))
    if quote:
        return f"{quote}{inner[:start]}{content}{inner[end:]}{quote}"
    value = f"{inner[:start]}{content}{inner[end:]}"
    if _BARE.fullmatch(value) and (value[-1] != "/" or raw[-1] == "/"):
        return value
    return f'"{spelled(text, codes, default)}"'


def _of_text(
    raw: str, pattern: re.Pattern[str], decode: _Spell, looks: list[str]
) -> Iterable[_Piece]:
    """Return the pieces of a text without what looks like a tag; that is added to `looks`."""
    parts = pattern.split(raw)
    if "&" in raw or "<" in raw:
        return _without_lookalikes(list(_pieces(parts, decode)), looks)
    blank = decode("\n")
    return [(blank, part) if index % 2 else (part, part) for index, part in enumerate(parts)]


def _pieces(parts: Sequence[str], decode: _Spell) -> Iterator[_Piece]:
    """Yield the pieces of a text: each reference is one, and each run of blanks or line break."""
    blank = decode("\n")
    for index, part in enumerate(parts):
        if not index % 2:
            yield part, part
        elif part[0] == "&":
            yield from _reference(decode(part), part)
        else:
            yield blank, part


def _reference(text: str, raw: str) -> Iterator[_Piece]:
    """Yield a reference and what follows it where it has no `;`."""
    same, most = 0, min(len(text), len(raw)) - 1
    while same < most and text[-1 - same] == raw[-1 - same]:
        same += 1
    yield text[: len(text) - same], raw[: len(raw) - same]
    if same:
        yield text[-same:], text[-same:]


def _without_lookalikes(pieces: Sequence[_Piece], looks: list[str]) -> Iterable[_Piece]:
    """Return the pieces without what looks like a tag of ours; its spelling is added to `looks`."""
    text = "".join(text for text, _ in pieces)
    found = list(LOOKALIKE.finditer(text)) if "<" in text else ()
    return _parted(pieces, found, looks) if found else pieces


def _parted(
    pieces: Iterable[_Piece], found: Sequence[re.Match[str]], looks: list[str]
) -> Iterator[_Piece]:
    inside = {place: index for index, each in enumerate(found) for place in range(*each.span())}
    first = len(looks)
    looks += [""] * len(found)
    place = 0
    for text, raw in chain.from_iterable(map(_by_characters, pieces)):
        index = inside.get(place)
        if index is None:
            yield text, raw
        else:
            looks[first + index] += raw
        place += len(text)


def _by_characters(piece: _Piece) -> Iterable[_Piece]:
    return zip(*piece, strict=True) if piece[0] == piece[1] else (piece,)


def _as_in_source(
    codes: Sequence[InlineCode], ranges: Sequence[object], looks: Sequence[str]
) -> Sequence[InlineCode]:
    """Return the codes; those without a range are spelled as they look in the source."""
    spellings = iter(looks)
    return [
        InlineCode(next(spellings, code.opening)) if at is None else code
        for code, at in zip(codes, ranges, strict=True)
    ]


def _checked(
    keep: _Spell,
    default: _Spell,
    decode: _Spell,
    is_text: Callable[[str], bool] = lambda _: True,
) -> _Spell:
    """Return `keep`, but for texts that it spells so that they would be read as others."""

    if keep is default:
        return default

    def spell(text: str) -> str:
        found = keep(text)
        return found if decode(found) == text and is_text(found) else default(text)

    return spell


def _is_text(raw: str, *, xml: bool, in_title: bool) -> bool:
    """Return whether no markup is in a text as it is spelled."""
    if "<" not in raw:
        return True
    if in_title:
        return "</" not in raw
    return all(tag.kind == "text" for _, _, tag in tokens(raw, xml=xml))
