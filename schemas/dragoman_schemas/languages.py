"""Canonical spelling of BCP-47 language tags."""

from __future__ import annotations

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
        raise UnknownLanguage(f"{tag[:40]!r} is not a language: give a BCP-47 tag such as de")
    return langcodes.standardize_tag(tag)


@lru_cache(maxsize=4096)
def lookup_tags(tag: str) -> tuple[str, ...]:
    """Return the tags under which to look for a canonical tag: exact, with script, language.

    ``zh-TW`` gives ``zh-TW``, ``zh-Hant``, ``zh``: a script that the tag does not name is the
    likely one.
    """
    given = langcodes.get(tag)
    language = given.language or "und"
    script = given.script or given.maximize().script
    return tuple(dict.fromkeys((tag, f"{language}-{script}" if script else language, language)))


@lru_cache(maxsize=4096)
def same_script_tags(tag: str) -> tuple[str, ...]:
    """Return those of ``lookup_tags`` that mean the same script: not ``zh`` for ``zh-TW``.

    For texts that are used as they are, where another script would be another language.
    """
    script = _likely_script(tag)
    tags = dict.fromkeys(langcodes.standardize_tag(other) for other in lookup_tags(tag))
    return (tag, *(other for other in tags if other != tag and _likely_script(other) == script))


def _likely_script(tag: str) -> str | None:
    return langcodes.get(tag).maximize().script


def _is_language(tag: str) -> bool:
    if len(tag) > _LONGEST_TAG or not tag.isascii() or not langcodes.tag_is_valid(tag):
        return False
    language = langcodes.get(tag).language or "und"
    return language not in _NO_LANGUAGE and not language.startswith("x-")
