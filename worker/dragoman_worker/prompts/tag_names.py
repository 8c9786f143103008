"""A document's tags under the names of a model that knows only ``<s1>`` … ``</s1>``.

``<g1>`` … ``</g1>`` is ``<s1>`` … ``</s1>`` there, and ``<x2/>`` is ``<s2></s2>``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dragoman_text.inline import Tag, find_tags

_DOCUMENTS: Final = re.compile(r"<(/?)([gx])([0-9]{1,6})\s*/?>", re.IGNORECASE)
_MODELS: Final = re.compile(r"<\s*(/?)\s*s([0-9]{1,6})\s*/?\s*>", re.IGNORECASE)


def renamed(text: str) -> str | None:
    """Return the text with the model's names; None if it has no tags, or others than documents'."""
    if _letters(find_tags(text)) is None:
        return None

    def name(match: re.Match[str]) -> str:
        close, letter, number = match.groups()
        return f"<{close}s{number}>" if letter in "gG" else f"<s{number}></s{number}>"

    return _DOCUMENTS.sub(name, text)


def restored(text: str, source: str) -> str:
    """Return an answer with the tags of its source in place of the model's."""
    letters = _letters(find_tags(source))
    if letters is None:
        return text

    def name(match: re.Match[str]) -> str:
        close, number = match.groups()
        letter = letters.get(number)
        if letter is None:
            return match[0]
        if letter == "x":
            return "" if close else f"<x{number}/>"
        return f"<{close}g{number}>"

    return _MODELS.sub(name, text)


def _letters(tags: list[Tag]) -> Mapping[str, str] | None:
    """Return the letter of each number; None without tags, with other tags, or if two share one."""
    letters: dict[str, str] = {}
    for tag in tags:
        if not tag.numbered or (tag.name[0] == "x") != (tag.form == "empty"):
            return None
        if letters.setdefault(tag.name[1:], tag.name[0]) != tag.name[0]:
            return None
    return letters or None
