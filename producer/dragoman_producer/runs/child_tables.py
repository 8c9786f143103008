"""Tables in the child process that are read and written some rows at a time, such as Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dragoman_documents import registry
from dragoman_documents.parts.source import Changed
from dragoman_documents.streamed import StreamedTable
from dragoman_producer.runs.child_limits import limit_time, new_file
from dragoman_producer.runs.child_rows import Remarks, rows_of
from dragoman_producer.runs.child_wire import (
    MISSING_PARSER,
    ROWS_PER_MESSAGE,
    Text,
    options_of,
)
from dragoman_producer.runs.chosen import ignored, nothing_named
from dragoman_producer.runs.progress import Saying
from dragoman_producer.runs.refusals import OTHER_SEGMENTS, DocumentRefused

_NO_MORE: Final = object()
_NO_TEXT: Final = "its bytes are no UTF-8: left as they are"


def _opened(request: dict[str, Any]) -> StreamedTable:
    limit_time(request["seconds"])
    try:
        form = registry.streamed_format(request["format"])
    except registry.MissingExtra as error:
        raise DocumentRefused(MISSING_PARSER, str(error)) from None
    return form.open(Path(request["path"]), options_of(request["options"]))


def _digest(request: dict[str, Any]) -> str:
    with Path(request["path"]).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unchanged(request: dict[str, Any]) -> StreamedTable:
    """Return the table. Raises Changed if the file is not the one that was read."""
    if _digest(request) != request["sha256"]:
        raise Changed
    return _opened(request)


def _read(request: dict[str, Any], _: Saying) -> Iterator[object]:
    """Yield the answers to `read`: rows of segments, then what is known of the file."""
    sha256, table = _digest(request), _opened(request)
    count, found = 0, Remarks()
    for segments in table.segments():
        limit_time(request["seconds"])
        rows = rows_of(segments, found, unsendable=_NO_TEXT)
        for first in range(0, len(rows), ROWS_PER_MESSAGE):
            yield {"rows": rows[first : first + ROWS_PER_MESSAGE]}
        count += len(rows)
    if _digest(request) != sha256:
        raise Changed
    missing = table.missing()
    form = registry.streamed_format(request["format"])
    found.add(*ignored(form, options_of(request["options"])), *nothing_named(missing))
    yield {
        "by_language": table.by_language,
        "sha256": sha256,
        "encoding": "utf-8",
        "segments": count,
        "unmatched": {"missing": missing, "names": table.names()} if missing else None,
        "remarks": found.rows(),
    }


def _codes(request: dict[str, Any], _: Saying) -> Iterator[object]:
    """Yield the answers to `codes`: [number, codes] of the segments with inline codes."""
    first = 0
    for segments in _unchanged(request).segments():
        limit_time(request["seconds"])
        rows = [[first + number, each.codes] for number, each in enumerate(segments) if each.codes]
        for start in range(0, len(rows), ROWS_PER_MESSAGE):
            yield {"rows": rows[start : start + ROWS_PER_MESSAGE]}
        first += len(segments)
    yield {}


READING: Final = {"read": _read, "codes": _codes}


def write(request: dict[str, Any], texts: Iterator[Text], _: Saying) -> Iterator[object]:
    """Yield the answer to `write`: the output is in the temporary file by then."""
    table, temporary = _unchanged(request), Path(request["temporary"])
    bad: list[int] = []

    def following(count: int) -> list[str | None]:
        given = list(islice(texts, count))
        if len(given) != count:
            raise DocumentRefused("changed", OTHER_SEGMENTS)
        return [each[0] if isinstance(each, list) else each for each in given]

    with new_file(temporary):
        for numbers in table.write(temporary, following):
            limit_time(request["seconds"])
            bad += numbers
        if next(texts, _NO_MORE) is not _NO_MORE:
            raise DocumentRefused("changed", OTHER_SEGMENTS)
    yield {
        "sha256": _digest({"path": temporary}), "left": None, "ids": None,
        "tags": bad, "general": [], "lost": [], "incomplete": [], "changed": [],
    }  # fmt: skip
