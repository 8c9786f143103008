"""Steering of a segment: the parts that apply to its text, and warnings for unsupported ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from dragoman_text.terms import MARK, marked
from dragoman_worker.errors import UnsupportedLanguage
from dragoman_worker.prompts import names
from dragoman_worker.prompts.base import Profile, PromptInput, Steering

_MAX_CACHED_TERM_CHARS: Final = 200


def occurs(term: str, text: str) -> bool:
    """Return whether `term` occurs in `text` as a whole word, ignoring case.

    Scripts without spaces have no visible word boundaries, so there any occurrence counts.
    """
    wanted = _cached_term(term) if len(term) <= _MAX_CACHED_TERM_CHARS else _term(term)
    copy, words = _copy(text)
    word = wanted[1:-1]
    if MARK not in word:  # a single word, found in the set without a search
        return word in words
    return wanted in copy


@lru_cache(maxsize=4)
def _copy(text: str) -> tuple[str, frozenset[str]]:
    """Return the copy to search and its words; cached, as all terms of an item use the same copy.

    In it every character that can be at the edge of a word is between two marks. A term with a mark
    at each plain end then occurs exactly where it is a whole word: a search takes one pass in C,
    however often the term occurs inside other words. The words contain no empty string, so a blank
    term occurs nowhere.
    """
    copy = f"{MARK}{marked(text)}{MARK}"
    return copy, frozenset(copy.split(MARK)) - {""}


def _term(term: str) -> str:
    """Return the term as it is searched in the copy, empty if the term is blank."""
    wanted = marked(term.strip())
    if not wanted:
        return ""
    before = "" if wanted.startswith(MARK) else MARK
    after = "" if wanted.endswith(MARK) else MARK
    return f"{before}{wanted}{after}"


_cached_term = lru_cache(maxsize=4_096)(_term)
"""Cached, because each item and each piece of an item searches for all terms of the job."""


_FEW_LANGUAGES: Final = 10
"""Languages that a message lists at most; with more it names the command that lists them."""

_GIVEN: Final[Mapping[Steering, Callable[[PromptInput], bool]]] = {
    "context": lambda segment: bool(segment.context and segment.context.strip()),
    "glossary": lambda segment: bool(segment.glossary),
    "do_not_translate": lambda segment: bool(untranslated(segment)),
    # prefer_more and prefer_less fall back without a warning, by their definition.
    "formality": lambda segment: segment.formality in {"more", "less"},
    "instructions": lambda segment: bool(segment.instructions),
}


def untranslated(segment: PromptInput) -> tuple[str, ...]:
    """Return the words not to be translated that occur in the segment's text."""
    return tuple(word for word in segment.do_not_translate if occurs(word, segment.text))


def register(segment: PromptInput) -> str | None:
    """Return ``formal`` or ``informal`` if the segment demands or prefers one, else None."""
    if segment.formality in {"more", "prefer_more"}:
        return "formal"
    return "informal" if segment.formality in {"less", "prefer_less"} else None


def warnings(profile: Profile, segment: PromptInput) -> tuple[str, ...]:
    """Return one sentence per given field that the profile's prompt cannot express."""
    return tuple(
        f"{field}: ignored, the prompts of profile {profile.name} have no place for it."
        for field, given in _GIVEN.items()
        if field not in profile.takes and given(segment)
    )


def variant_warning(profile: Profile, segment: PromptInput) -> tuple[str, ...]:
    """Return a sentence if the prompt names only the language, and script or region are lost."""
    tag = segment.target_lang
    lost = "a script" if names.unusual_script(tag) else "a region"
    if not (names.unusual_script(tag) or names.unusual_region(tag)):
        return ()
    warning = (
        f"target_lang: profile {profile.name} cannot ask for {lost}, so {tag} is "
        f"{names.plain_name(tag)} as the model writes it."
    )
    return (warning,)


def simplified_only(profile: Profile, segment: PromptInput) -> tuple[str, ...]:
    """Return a sentence if traditional characters are wanted of a model with one name, Chinese."""
    tag = segment.target_lang
    if names.base_of(tag) != "zh" or names.script_of(tag) != "Hant":
        return ()
    return (f"target_lang: profile {profile.name} writes simplified characters only, not {tag}.",)


def require_languages(profile: Profile, segment: PromptInput) -> None:
    """Raise UnsupportedLanguage unless the profile supports the segment's languages."""
    if profile.needs_source and segment.source_lang is None:
        raise UnsupportedLanguage(
            f"source_lang: the prompts of profile {profile.name} name the source language, and "
            "none was given or detected"
        )
    for field, tag in (("target_lang", segment.target_lang), ("source_lang", segment.source_lang)):
        if tag is None or profile.languages is None:
            continue
        if names.listed(tag, profile.languages) is None:
            raise UnsupportedLanguage(
                f"{field}: {_translates(profile.name, profile.languages, tag)}"
            )


def _translates(name: str, languages: frozenset[str], tag: str) -> str:
    if len(languages) > _FEW_LANGUAGES:
        return (
            f"profile {name} does not know {tag}; its {len(languages)} languages are listed by "
            "`dragoman-worker profiles`"
        )
    *most, last = sorted(languages)
    return f"profile {name} translates between {', '.join(most)} and {last}, not {tag}"
