"""English names of languages for prompts, by BCP-47 tag."""

from __future__ import annotations

import re
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
"""Languages that models list under their macrolanguage or a newer tag."""

_LISTED_AS: Final[Mapping[str, str]] = {"nb": "no", "no": "nb"}
"""Norwegian in most lists means Bokmal; Nynorsk is another written language."""

_BANGLA: Final = re.compile(r"\bBangla\b")
"""The name that Unicode gives to `bn`; every model card says Bengali."""


def tags(listing: str) -> frozenset[str]:
    """Return the set of tags in a space-separated list."""
    return frozenset(listing.split())


def load() -> None:
    """Load the language names; takes over a second, not for the event loop. Idempotent."""
    english_name("pt-PT")
    script_of("zh-TW")


@lru_cache(maxsize=4096)
def base_of(tag: str) -> str:
    """Return the language alone: ``de-AT`` -> ``de``, ``zh-Hant-HK`` and ``cmn`` -> ``zh``."""
    language = Language.get(tag).language or tag
    return _SAME.get(language, language)


def listed(tag: str, languages: frozenset[str]) -> str | None:
    """Return the entry of `languages` that means the language of `tag`, or None."""
    base = base_of(tag)
    if base in languages:
        return base
    other = _LISTED_AS.get(base)
    return other if other in languages else None


@lru_cache(maxsize=4096)
def script_of(tag: str) -> str:
    """Return the script that a tag names or implies: ``zh-TW`` -> ``Hant``, ``sr`` -> ``Cyrl``."""
    return Language.get(tag).maximize().script or ""


@lru_cache(maxsize=4096)
def english_name(tag: str) -> str:
    """Return ``Portuguese (Portugal)`` for ``pt-PT``, ``Chinese (Traditional)`` for ``zh-TW``."""
    if base_of(tag) == "zh":
        return "Chinese (Traditional)" if script_of(tag) == "Hant" else "Chinese (Simplified)"
    return _BANGLA.sub("Bengali", Language.get(tag).display_name("en"))


@lru_cache(maxsize=4096)
def plain_name(tag: str) -> str:
    """Return the name without region: ``de-AT`` -> ``German``; Chinese keeps its script."""
    if base_of(tag) == "zh":
        return english_name(tag)
    return _BANGLA.sub("Bengali", Language.get(tag).language_name("en"))


@lru_cache(maxsize=4096)
def own_name(tag: str) -> str:
    """Return the name of the language in itself, without region and script: ``Deutsch``."""
    return Language.get(base_of(tag)).autonym()


@lru_cache(maxsize=4096)
def distinct_name(tag: str) -> str:
    """Return the name with region and script only where they are not the usual ones.

    ``en-US`` -> ``English``, ``yue-HK`` -> ``Cantonese``, ``pt-PT`` -> ``Portuguese (Portugal)``.
    Brazil is always named: in prompts, Portuguese alone often means that of Portugal.
    """
    if base_of(tag) == "zh":
        return english_name(tag)
    language = Language.get(tag)
    told = Language.make(
        language=language.language,
        script=script_of(tag) if unusual_script(tag) else None,
        territory=language.territory if unusual_region(tag) or tag == "pt-BR" else None,
    )
    return _BANGLA.sub("Bengali", told.display_name("en"))


@lru_cache(maxsize=4096)
def unusual_script(tag: str) -> bool:
    """Return whether the tag names or implies another script than its language (``pa-Arab``)."""
    language = Language.get(tag)
    if language.language is None or base_of(tag) == "zh":
        return False
    return script_of(tag) != script_of(language.language)


@lru_cache(maxsize=4096)
def unusual_region(tag: str) -> bool:
    """Return whether the tag's region differs from the one its language implies (``pt-PT``)."""
    language = Language.get(tag)
    if language.territory is None or base_of(tag) == "zh":
        return False
    implied = Language.make(language=language.language).maximize().territory
    return language.territory != implied
