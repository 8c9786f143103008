"""What a child process tells of a document: rows of segments, and one remark of each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from dragoman_documents.codec import MOST_CHARACTERS, Remark, Segment
from dragoman_producer.runs.paths import encodable

TOO_LONG: Final = f"texts of more than {MOST_CHARACTERS:,} characters are left as they are"
_UNSENDABLE: Final = "it holds half a character, which no encoding has: left as it is"


class Remarks:
    """Remarks of a file, one of each kind."""

    def __init__(self) -> None:
        self._found: dict[str, Remark] = {}

    def add(self, *remarks: Remark) -> None:
        """Count remarks; the first one of a kind has the place and the detail."""
        for each in remarks:
            before = self._found.get(each.kind)
            count = each.count + (before.count if before else 0)
            self._found[each.kind] = replace(before or each, count=count)

    def rows(self) -> list[tuple[str, str, str, int]]:
        """Return each as [place, detail, kind, count]."""
        return [
            (encodable(each.place), encodable(each.detail), each.kind, each.count)
            for each in self._found.values()
        ]


def rows_of(
    segments: Sequence[Segment],
    remarks: Remarks,
    place: Callable[[Segment], str] = lambda segment: segment.place,
    unsendable: str = _UNSENDABLE,
) -> list[list[object]]:
    """Return segments as [text, place, max_chars, state, context, headings].

    A text that is too long, or that no encoding can express, as of a JSON escape for half a
    surrogate, is None, and a remark.
    """
    rows = [_row(segment, place(segment)) for segment in segments]
    for row, segment in zip(rows, segments, strict=True):
        if row[0] is None and len(segment.text) > MOST_CHARACTERS:
            remarks.add(Remark(str(row[1]), TOO_LONG, "length"))
        elif row[0] is None:
            remarks.add(Remark(str(row[1]), unsendable, "characters"))
    return rows


def _row(segment: Segment, place: str) -> list[object]:
    context = segment.context and encodable(segment.context)
    headings = [encodable(each) for each in segment.headings]
    is_sent = len(segment.text) <= MOST_CHARACTERS and _is_encodable(segment.text)
    text = segment.text if is_sent else None
    return [text, encodable(place), segment.max_chars, segment.state, context, headings]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
