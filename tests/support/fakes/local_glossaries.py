"""In-process glossaries that behave as those in Redis do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman_schemas.languages import lookup_tags, other_script_tag
from dragoman_text.terms import Term, TermIndex
from dragoman_worker.ports import StoredGlossary


class LocalGlossaries:
    """The Glossaries port. The same contract tests hold for it and for `RedisGlossaries`."""

    def __init__(self) -> None:
        self._glossaries: dict[str, tuple[int, str | None, dict[str, TermIndex]]] = {}
        self._versions = 0

    def put(
        self, name: str, terms: Mapping[str, Iterable[Term]], source_lang: str | None = None
    ) -> None:
        """Add or replace a glossary; `terms` maps canonical target tags to the terms."""
        self._versions += 1
        indexes = {tag: TermIndex(some) for tag, some in terms.items()}
        self._glossaries[name] = (self._versions, source_lang, indexes)

    def remove(self, name: str) -> None:
        """Remove a glossary, if it exists."""
        self._glossaries.pop(name, None)

    async def find(self, name: str, target_lang: str) -> StoredGlossary | None:
        """See Glossaries. A change is seen at once."""
        if name not in self._glossaries:
            return None
        version, source_lang, indexes = self._glossaries[name]
        tag = next((tag for tag in lookup_tags(target_lang) if len(indexes.get(tag, ()))), None)
        if tag is not None:
            return StoredGlossary(name, str(version), source_lang, indexes[tag])
        other = other_script_tag(target_lang, indexes)
        return StoredGlossary(name, str(version), source_lang, TermIndex(()), other)

    async def close(self) -> None:
        """Return at once."""
