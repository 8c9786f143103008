"""Terms of a stored glossary in a text: a part of the key of its translation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman_schemas.glossaries import GlossaryEntry
from dragoman_text.terms import Term, TermIndex

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
_BYTES: Final = 8

_Key = tuple[str, bool]


class StoredTerms:
    """The terms of a glossary in all of its target languages, whichever a run asks for.

    So a language that is added asks again for nothing in the others. A changed term asks again, in
    each language, for the texts in which it occurs.
    """

    def __init__(self, terms: Mapping[str, Sequence[GlossaryEntry]]) -> None:
        """Index entries by target language; 100,000 terms take about a second."""
        self._digests: dict[_Key, bytes] = {}
        indices: dict[frozenset[_Key], list[Term]] = {}
        for tag in sorted(terms):
            entries = [Term(*each) for each in terms[tag]]
            for term in entries:
                self._add(tag, term)
            indices.setdefault(frozenset(map(_key, entries)), entries)
        # A term counts only where it is not part of a longer one of the same language.
        self._indices = [TermIndex(entries) for entries in indices.values()]

    def _add(self, tag: str, term: Term) -> None:
        spelled = _ENCODE([tag, term.source, term.targets, term.case_sensitive, term.note])
        before = self._digests.get(_key(term), b"")
        self._digests[_key(term)] = _digest(before + spelled.encode())

    @property
    def digest(self) -> str:
        """Hex digest of all terms."""
        return _digest(b"".join(map(self._digests.__getitem__, sorted(self._digests)))).hex()

    def found(self, text: str) -> list[str]:
        """Return the digests of the terms that occur in a text, sorted, in hex."""
        found = {_key(each) for index in self._indices for each in index.find(text)}
        return sorted(self._digests[key].hex() for key in found)


def _key(term: Term) -> _Key:
    return term.source, term.case_sensitive


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=_BYTES).digest()
