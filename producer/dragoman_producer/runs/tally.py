"""Counts and issues of one document as it is written."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, cast

from dragoman_connections.terminal import counted
from dragoman_producer.manifest.schema import EDITED
from dragoman_producer.runs.child_wire import Text
from dragoman_schemas.languages import language_name

_MOST_CODES: Final = 3
_WHY: Final = {
    "missing": "no answer",
    "quality_failed": "no answer passed the quality checks",
    "tags": "the translation lacks tags",
    "read_back": "the translation would change the markup",
    "plural_lost": "the translation lacks a number",
    "message_incomplete": "another text of its message has no translation",
}
"""What codes mean, where they do not say it themselves."""
COUNTS: Final = ("segments", "new", "reused", "memory", "edited", "warned", "source", "failed")


@dataclass(slots=True)
class Tally:
    """What becomes of the segments of one document."""

    run: str
    source_lang: str | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    issues: list[tuple[int, str, str, str | None]] = field(default_factory=list)
    """Number of the segment, its place, a gate or code, and a verdict."""
    in_source: set[int] = field(default_factory=set[int])
    """Numbers of the segments that keep their source."""
    _warned: set[int] = field(default_factory=set[int])

    def add(self, number: int, rows: list[Any]) -> Text:
        """Count a segment; return its translation, in a list if it is to be looked at."""
        wanted = [row for row in rows if row[2] is not None]
        if not wanted:
            return None
        self.counts["segments"] += 1
        if len(rows) == 1 and _is_plain(rows[0]):
            self._count_origin(wanted)
            return cast("str", rows[0][5])
        bad = next((row for row in wanted if row[5] is None), None)
        place = rows[0][4]
        warned = self._note(number, place, wanted)
        if warned:
            self._warn(number)
        if bad is not None:
            self.counts["failed"] += 1
            self.keep_source(number)
            self.issues.append((number, place, bad[8] or "missing", None))
            return None
        self._count_origin(wanted)
        text = "".join((row[3] or "") + (row[5] or "") for row in rows)
        return [text] if warned else text

    def _count_origin(self, rows: list[Any]) -> None:
        if any(row[8] == EDITED for row in rows):
            self.counts["edited"] += 1
            return
        new = any(row[10] == self.run for row in rows)
        cached = new and all(row[9] for row in rows)
        self.counts["memory" if cached else "new" if new else "reused"] += 1

    def _note(self, number: int, place: str, rows: list[Any]) -> bool:
        notes = [note for row in rows if row[7] for note in json.loads(row[7])]
        self.issues += [(number, place, gate, verdict) for gate, verdict in notes]
        return any(row[6] in {"warn", "fail"} and row[5] is not None for row in rows)

    def _warn(self, number: int) -> None:
        self.counts["warned"] += number not in self._warned
        self._warned.add(number)

    def detail(self) -> str | None:
        """Return how many texts stay in the source language, where, and why; None if none does."""
        if not self.in_source:
            return None
        count = len(self.in_source)
        lang = language_name(self.source_lang) if self.source_lang else "the source language"
        stay = f"{counted(count, 'text')} {'stays' if count == 1 else 'stay'} in {lang}"
        return f"{stay}, {'' if count == 1 else 'first '}{self.where_and_why()}"

    def where_and_why(self) -> str:
        """Return the first place of a text that keeps its source, and why texts do."""
        found = [each for each in self.issues if each[0] in self.in_source]
        first = min(found, key=lambda each: each[0])[1] if found else ""
        codes = Counter(code for _, _, code, _ in found).most_common(_MOST_CODES)
        why = ", ".join(_WHY.get(code, code) for code, _ in codes)
        return f"at {first} ({why})" if first else f"({why})"

    def keep_source(self, number: int) -> None:
        """Count a segment that keeps its source, once."""
        self.counts["source"] += number not in self.in_source
        self.in_source.add(number)

    def replace_source(self, number: int) -> None:
        """Count a plural form that has the general form in place of its own, or of its source."""
        self.counts["source"] -= number in self.in_source
        self.in_source.discard(number)
        self._warn(number)


def _is_plain(row: Any) -> bool:
    """Return whether a part has a translation that nothing is to be said of."""
    return row[5] is not None and not row[3] and not row[7] and row[6] not in {"warn", "fail"}
