"""Glossary entries and protected literals that occur in a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_text.terms import Term, TermIndex
from dragoman_worker.ports import StoredGlossary
from dragoman_worker.prompts.names import base_of
from dragoman_worker.prompts.steering import occurs

MOST_TERMS: Final = 50
"""Glossary entries in one prompt at most; the others cause a warning."""


@dataclass(frozen=True, slots=True)
class JobTerms:
    """The entries of a job's own glossary and of a stored one; its own win."""

    own: TermIndex
    own_sources: frozenset[str]
    stored: StoredGlossary | None

    def find(self, text: str, source_lang: str | None) -> tuple[tuple[Term, ...], tuple[str, ...]]:
        """Return the entries that occur in a text, the longest first, and warnings."""
        found = self.own.find(text)
        warnings: list[str] = []
        if self.stored is not None and (unfit := _unfit(self.stored, source_lang)):
            warnings.append(unfit)
        elif self.stored is not None:
            others = self.stored.terms.find(text)
            found += tuple(term for term in others if _key(term.source) not in self.own_sources)
        if len(found) > MOST_TERMS:
            warnings.append(
                f"terms: {len(found)} glossary terms occur in one text; the model is given the "
                f"{MOST_TERMS} longest"
            )
        return tuple(sorted(found, key=lambda term: -len(term.source))[:MOST_TERMS]), (*warnings,)


def job_terms(glossary: Mapping[str, str] | None, stored: StoredGlossary | None) -> JobTerms | None:
    """Return the entries of a job's two glossaries, None if it has neither."""
    if not glossary and stored is None:
        return None
    own = [Term(source, (target,)) for source, target in (glossary or {}).items()]
    return JobTerms(TermIndex(own), frozenset(_key(term.source) for term in own), stored)


def occurring(
    protect: Sequence[str] | None, do_not_translate: Sequence[str] | None, text: str
) -> tuple[str, ...]:
    """Return the literals of `protect` in the text, and its words of `do_not_translate`."""
    if not protect and not do_not_translate:
        return ()
    literals = [literal for literal in protect or () if literal in text]
    words = [word for word in do_not_translate or () if word in text and occurs(word, text)]
    return tuple(dict.fromkeys((*literals, *words)))


def _unfit(glossary: StoredGlossary, source_lang: str | None) -> str | None:
    """Return why the glossary does not apply to texts in a language, None if it does."""
    if glossary.other_script is not None:
        return (
            f"glossary_id: glossary {glossary.name} has terms for {glossary.other_script}, "
            "which is another script than the target's, and is not applied"
        )
    if glossary.source_lang is None or source_lang is None:
        return None
    if base_of(glossary.source_lang) == base_of(source_lang):
        return None
    return (
        f"glossary_id: glossary {glossary.name} translates from {glossary.source_lang} and is not "
        f"applied to a text in {source_lang}"
    )


def _key(source: str) -> str:
    return source.strip().casefold()
