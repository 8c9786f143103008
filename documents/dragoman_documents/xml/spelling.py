"""How an XML file spells a text: its references, literal characters and line ends, kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from dragoman_documents.inline_codes import plain
from dragoman_documents.spelling import Spelling

_MARKUP: Final = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_ODD: Final = re.compile(
    rf"&[^&;\s]*+;|\r\n?+|[\t\n]|_x[0-9a-fA-F]{{4}}_\n?+|{_MARKUP.pattern}", re.DOTALL
)
"""What may stand for other text; `_x000D_` does so in workbooks."""

Spell = Callable[[str], str]


def keeping(raws: Sequence[str], read: Spell, write: Spell, text: str) -> Spell:
    """Return how to spell a translation: as the source's texts spell what is still there.

    It is given the translation without tags, and called with the texts between them in their
    order. `read` decodes a source's text, `write` spells what the source says nothing of.
    """
    if all(write(read(raw)) == raw for raw in raws):
        return write
    if plain(text) != text:  # what looks like a tag is text here; it is spelled as usual
        text = text.replace("<", "\0")
    keep = Spelling((each for raw in raws for each in _pieces(raw, read)), write).keeping(text)

    def spell(part: str) -> str:
        found = keep(part)
        bare = _MARKUP.sub("\0", found) if "<" in found else found
        is_same = "]]>" not in bare and read(found) == read(write(part))
        return found if is_same else write(part)

    return spell


def kept(raw: str, read: Spell, write: Spell, text: str) -> str:
    """Return a translation without tags, as its source spells what is still there."""
    return keeping([raw], read, write, text)(text)


def _pieces(raw: str, read: Spell) -> list[tuple[str, str]]:
    """Return a text in pieces; what stands for nothing is one piece with its neighbor."""
    found: list[tuple[str, str]] = []
    nothing = ""
    for each in _parts(raw):
        text = read(each)
        if text and nothing and text == each:
            found += ((text[0], nothing + each[0]), (text[1:], each[1:]))
            nothing = ""
        elif text:
            found.append((text, nothing + each))
            nothing = ""
        elif found:
            text, spelled = found.pop()
            if text == spelled:
                found.append((text[:-1], text[:-1]))
                text = spelled = text[-1:]
            found.append((text, spelled + each))
        else:
            nothing += each
    return found


def _parts(raw: str) -> Iterator[str]:
    end = 0
    for match in _ODD.finditer(raw):
        if match.start() > end:
            yield raw[end : match.start()]
        yield match[0]
        end = match.end()
    if end < len(raw):
        yield raw[end:]
