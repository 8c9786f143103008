"""In-process translation memory that behaves as the one in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman_schemas.approved import ApprovedTranslation, lookup_fields
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import ApprovedQuery, Remembered
from dragoman_worker.stores.memory_values import approved_answer

MAX_ENTRIES = 100_000


class LocalMemory:
    """The Memory port; nothing survives the process. A full tier drops its older half."""

    def __init__(self, metrics: Metrics, *, max_entries: int = MAX_ENTRIES) -> None:
        self._most = max_entries // 2
        self._new: dict[bytes, Remembered] = {}
        self._old: dict[bytes, Remembered] = {}
        self._approved: dict[bytes, ApprovedTranslation] = {}
        self._counts = metrics.memory_by_result

    async def start(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Return at once."""

    def approve(self, *translations: ApprovedTranslation) -> None:
        """Add approved translations, as an import does."""
        self._approved.update((one.field, one) for one in translations)

    async def recall(self, keys: Sequence[bytes]) -> Sequence[Remembered | None]:
        """See Memory."""
        return [self._recalled(key) for key in keys]

    async def approved(self, queries: Sequence[ApprovedQuery]) -> Sequence[Remembered | None]:
        """See Memory."""
        return [self._approved_of(query) for query in queries]

    def remember(self, key: bytes, translation: Remembered) -> None:
        """See Memory."""
        if len(self._new) >= self._most:
            self._new, self._old = {}, self._new
        self._new[key] = translation

    def _recalled(self, key: bytes) -> Remembered | None:
        found = self._new.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self.remember(key, found)
        self._counts["miss" if found is None else "hit"].inc()
        return found

    def _approved_of(self, query: ApprovedQuery) -> Remembered | None:
        text = query.text.strip()
        fields = lookup_fields(text, query.target_lang, query.source_lang, query.context)
        found = next((self._approved[one] for one in fields if one in self._approved), None)
        return None if found is None else approved_answer(query, found)
