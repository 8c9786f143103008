"""The prose of a text: what is left without placeholders, links, code and tags."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dragoman_text.spans import Span, find_spans, unprotected

_AROUND: Final = "\"'“”„‟«»‹›「」『』‘’`().,;:!?…*_"
_WITHIN: Final = str.maketrans("", "", "'’-")
_CACHED: Final = 4  # source and answer of one candidate, whichever gate asks first


@lru_cache(maxsize=_CACHED)
def spans(text: str) -> tuple[Span, ...]:
    """Return the placeholders, links, code and tags of the text."""
    return tuple(find_spans(text))


@lru_cache(maxsize=_CACHED)
def prose(text: str) -> str:
    """Return the text with each placeholder, link, code span and tag replaced by a blank."""
    found = spans(text)
    return " ".join(unprotected(text, found)) if found else text


@lru_cache(maxsize=_CACHED)
def plain(text: str) -> str:
    """Return the words of the prose that may be translated, with single blanks between them.

    Without numbers, options, file names, identifiers and `CamelCase`: they say nothing about the
    language, and translations keep them.
    """
    return " ".join(filter(_is_word, prose(text).split()))


def _is_word(token: str) -> bool:
    if token.isalpha() and (token[1:].islower() or not token.isascii()):
        return True  # most words
    core = token.strip(_AROUND)
    if not core.isascii():
        return True
    if core.startswith("-") or not core.translate(_WITHIN).isalpha():
        return False
    return core.isupper() or all(part[1:].islower() for part in core.split("-") if len(part) > 1)


@lru_cache(maxsize=_CACHED)
def letters(text: str) -> int:
    """Return the number of letters of any script."""
    return sum(map(str.isalpha, text))


@lru_cache(maxsize=_CACHED)
def weighed_letters(text: str) -> int:
    """Return the number of letters; those of Chinese, Japanese and Korean say twice as much."""
    if text.isascii():
        return letters(text)
    return sum(1 + (character >= "\u2e80") for character in text if character.isalpha())
