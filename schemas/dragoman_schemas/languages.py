"""Canonical spelling of BCP-47 language tags."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import langcodes

_LONGEST_TAG: Final = 64
_NO_LANGUAGE: Final = frozenset({"und", "mul", "zxx", "mis"})


class UnknownLanguage(ValueError):
    """The tag is not a BCP-47 tag, or names no existing language."""


@lru_cache(maxsize=4096)
def normalise(tag: str) -> str:
    """Return the canonical tag: ``zh_CN`` -> ``zh-CN``, ``pt-br`` -> ``pt-BR``, ``iw`` -> ``he``.

    Raises UnknownLanguage, naming the tag.
    """
    if not _is_language(tag):
        shown = f"{tag[:40]!r} is not a language{_meant(tag)}"
        raise UnknownLanguage(f"{shown}; give a BCP-47 tag such as de or pt-BR")
    return langcodes.standardize_tag(tag)


@lru_cache(maxsize=4096)
def language_name(tag: str) -> str:
    """Return the English name of a canonical tag: `Portuguese (Brazil)`."""
    return langcodes.get(tag).display_name("en")


@lru_cache(maxsize=4096)
def lookup_tags(tag: str) -> tuple[str, ...]:
    """Return the tags under which to look for a canonical tag: exact, with script, language.

    ``zh-TW`` gives ``zh-TW`` and ``zh-Hant``, but not ``zh``, whose likely script (CLDR's likely
    subtags) is another one: terms and translations in another script would be wrong answers.
    ``zh-SG`` gives ``zh-SG``, ``zh-Hans`` and ``zh``.
    """
    given, script = langcodes.get(tag), _likely_script(tag)
    language = given.language or "und"
    shorter = (f"{language}-{script}" if script else language, language)
    tags = dict.fromkeys(langcodes.standardize_tag(other) for other in shorter)
    return (tag, *(other for other in tags if other != tag and _likely_script(other) == script))


def other_script_tag(tag: str, held: Iterable[str]) -> str | None:
    """Return the first held tag of the same language in another script; some may be invalid."""
    language, script = tag.partition("-")[0], _likely_script(tag)
    same = (other for other in held if other.partition("-")[0] == language)
    return min((one for one in same if _likely_script(one) not in {None, script}), default=None)


@lru_cache(maxsize=4096)
def _likely_script(tag: str) -> str | None:
    try:
        return langcodes.get(tag).maximize().script
    except ValueError:  # another program wrote this tag
        return None


def _meant(name: str) -> str:
    """Return a hint if this is the name of a language, such as `german`."""
    try:
        return f" (did you mean {langcodes.find(name[:_LONGEST_TAG]).to_tag()}?)"
    except (LookupError, ValueError):
        return ""


def _is_language(tag: str) -> bool:
    if len(tag) > _LONGEST_TAG or not tag.isascii() or not langcodes.tag_is_valid(tag):
        return False
    if not langcodes.tag_is_valid(langcodes.standardize_tag(tag)):
        return False  # of `zh-min-de-aa` the library makes what is no tag
    language = langcodes.get(tag).language or "und"
    return language not in _NO_LANGUAGE and not language.startswith("x-")
