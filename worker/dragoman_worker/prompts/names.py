"""What is a language called in a prompt? English names for BCP-47 tags."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from langcodes import Language

_SAME: Final[Mapping[str, str]] = {
    "arb": "ar",
    "cmn": "zh",
    "ekk": "et",
    "lvs": "lv",
    "pes": "fa",
    "swh": "sw",
    "tl": "fil",
    "zsm": "ms",
}
"""Members that models list as the whole."""

_LISTED_AS: Final[Mapping[str, str]] = {"nb": "no", "no": "nb"}
"""What most lists call Norwegian is Bokmal; Nynorsk is another written language."""


def tags(listing: str) -> frozenset[str]:
    """A set of languages from a list of tags with spaces between."""
    return frozenset(listing.split())


def load() -> None:
    """Read the languages' names, more than a second: not on the event loop. Idempotent."""
    english_name("pt-PT")
    script_of("zh-TW")


@lru_cache(maxsize=4096)
def base_of(tag: str) -> str:
    """The language alone: ``de-AT`` -> ``de``, ``zh-Hant-HK`` -> ``zh``, ``cmn`` -> ``zh``."""
    language = Language.get(tag).language or tag
    return _SAME.get(language, language)


def listed(tag: str, languages: frozenset[str]) -> str | None:
    """The entry of `languages` that means the language of `tag`, or None."""
    base = base_of(tag)
    if base in languages:
        return base
    other = _LISTED_AS.get(base)
    return other if other in languages else None


@lru_cache(maxsize=4096)
def script_of(tag: str) -> str:
    """The script that the tag says or implies: ``zh-TW`` -> ``Hant``, ``sr`` -> ``Cyrl``."""
    return Language.get(tag).maximize().script or ""


@lru_cache(maxsize=4096)
def english_name(tag: str) -> str:
    """``pt-PT`` -> ``Portuguese (Portugal)``, ``zh-TW`` -> ``Chinese (Traditional)``."""
    if base_of(tag) == "zh":
        return "Chinese (Traditional)" if script_of(tag) == "Hant" else "Chinese (Simplified)"
    return Language.get(tag).display_name("en")


@lru_cache(maxsize=4096)
def plain_name(tag: str) -> str:
    """The language without its region: ``de-AT`` -> ``German``; Chinese keeps its script."""
    if base_of(tag) == "zh":
        return english_name(tag)
    return Language.get(tag).language_name("en")


@lru_cache(maxsize=4096)
def unusual_region(tag: str) -> bool:
    """Whether the tag asks for a region other than the one its language implies (``pt-PT``)."""
    language = Language.get(tag)
    if language.territory is None or base_of(tag) == "zh":
        return False
    implied = Language.make(language=language.language).maximize().territory
    return language.territory != implied
