"""The jobs that a storm sends, with their required outcomes."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dragoman_schemas.fingerprint import fingerprint
from support.chaos.odd_ones import odd_one, sendable
from support.chaos.sent import Kind, Sent
from support.chaos.texts import TaggedTexts, Texts

CANCEL_AFTER_S: Final = 3.0
DOCUMENT_SIZE: Final = 500


_SHARES: Final = {
    Kind.PLAIN: 840,
    Kind.DUPLICATE: 50,
    Kind.CONFLICT: 15,
    Kind.TRANSIENT: 30,
    Kind.FATAL: 20,
    Kind.CANCEL: 10,
    Kind.LATE: 8,
    Kind.TOO_SLOW: 7,
    Kind.INVALID: 10,
    Kind.UNREADABLE: 10,
    Kind.ODD: 15,
}
MIXED_IN: Final = frozenset({Kind.ODD.value, Kind.POISON.value})
"""Kinds that a storm may leave out."""
_ENDS: Final = {
    Kind.FATAL: frozenset({"failed"}),
    Kind.INVALID: frozenset({"failed"}),
    Kind.POISON: frozenset({"failed"}),
    Kind.LATE: frozenset({"expired"}),
    Kind.TOO_SLOW: frozenset({"expired"}),
    # A finish that is already running when the cancellation comes wins.
    Kind.CANCEL: frozenset({"cancelled", "completed"}),
}
_COMPLETED: Final = frozenset({"completed"})


class Load:
    """An endless stream of records, the same for the same seed (except deadlines).

    Duplicates and conflicts take the id of one of the latest 500 plain jobs. The records with
    the numbers of `poison` kill the process that works on them. Each odd record comes once.
    """

    def __init__(
        self,
        seed: int,
        run: str,
        kinds: frozenset[str],
        poison: frozenset[int] = frozenset(),
        texts: Texts | None = None,
        *,
        documents: bool = False,
    ) -> None:
        self._documents = documents
        self._random = random.Random(f"load {seed}")
        self._run = run
        self._texts = texts or TaggedTexts(run)
        self._kinds = [kind for kind in _SHARES if kind.value in kinds]
        self._weights = [_SHARES[kind] for kind in self._kinds]
        self._recent: deque[dict[str, Any]] = deque(maxlen=500)
        self._poison = poison if Kind.POISON.value in kinds else frozenset()
        self._odd = iter(sendable(random.Random(f"odd {seed}")))

    def records(self, count: int | None = None) -> Iterator[Sent]:
        """Yield `count` records, or an endless stream."""
        number = 0
        while count is None or number < count:
            kind = self._random.choices(self._kinds, self._weights)[0]
            place = self._random.random()
            if number in self._poison:
                kind = Kind.POISON
            yield self._record(number, kind, place)
            number += 1

    def _record(self, number: int, kind: Kind, place: float) -> Sent:
        if kind is Kind.ODD and (odd := next(self._odd, None)) is not None:
            return odd_one(number, odd)
        if kind is Kind.UNREADABLE:
            value = b'{"job_id": "%s-%d", "text": ' % (self._run.encode(), number)
            return Sent(number, kind, value, None, None, None, frozenset())
        if kind in {Kind.DUPLICATE, Kind.CONFLICT} and not self._recent:
            kind = Kind.PLAIN
        fields: dict[str, Any] = {"job_id": f"{self._run}-{number}"} | self._texts.fields(number)
        body = fields["text"]
        fields |= _peculiar(kind, body)
        if kind in {Kind.DUPLICATE, Kind.CONFLICT}:
            earlier = self._recent[int(place * len(self._recent))]
            fields = dict(earlier)
            body = fields["text"]
            if kind is Kind.CONFLICT:
                body = fields["text"] = f"Another payload {number}."
        if self._documents and kind is Kind.PLAIN:
            fields["document"] = document_of(self._run, number)
        if kind is Kind.PLAIN:
            self._recent.append(fields)
        ends = _ENDS.get(kind, _COMPLETED)
        lang = fields["target_lang"]
        text = self._texts.answer(body, lang) if "completed" in ends else None
        value = json.dumps(fields).encode()
        code = "poisoned" if kind is Kind.POISON else None
        return Sent(number, kind, value, fields["job_id"], fingerprint(fields), text, ends, code)


def document_of(run: str, number: int) -> dict[str, Any]:
    """Return the document that a plain job belongs to, if jobs belong to one."""
    document, index = divmod(number, DOCUMENT_SIZE)
    return {"document_id": f"{run}-d{document}", "index": index, "total": DOCUMENT_SIZE}


def _peculiar(kind: Kind, body: str) -> dict[str, Any]:
    soon = datetime.now(UTC) + timedelta(seconds=2)
    fields: dict[Kind, dict[str, Any]] = {
        Kind.TRANSIENT: {"text": f"#!transient 1\n{body}"},
        Kind.FATAL: {"text": f"#!fatal\n{body}"},
        Kind.CANCEL: {"text": f"#!sleep 20\n{body}"},
        Kind.LATE: {"deadline": "2020-01-01T00:00:00Z"},
        Kind.TOO_SLOW: {"text": f"#!hang\n{body}", "deadline": soon.isoformat()},
        Kind.INVALID: {"target_lang": "xx-nonsense"},
        Kind.POISON: {"text": f"#!exit\n{body}"},
    }
    return fields.get(kind, {})
