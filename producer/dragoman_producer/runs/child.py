"""The child process that reads and writes documents: limited in memory and time.

`python -m dragoman_producer.runs.child DESCRIPTOR` answers requests on its channel until that ends.
A hostile file ends this process at most.
"""

from __future__ import annotations

import gc
import hashlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dragoman_connections.child import Channel, connected
from dragoman_documents import registry
from dragoman_documents.codec import (
    Codec,
    Extraction,
    Options,
    Remark,
)
from dragoman_documents.encodings import Notes, noting
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.parts.source import Changed, SourceFile, SourcePart
from dragoman_documents.putting_back import Spliced, put_back
from dragoman_producer.runs import child_tables
from dragoman_producer.runs.child_limits import limit_memory, limit_time, new_file
from dragoman_producer.runs.child_rows import Remarks, rows_of
from dragoman_producer.runs.child_wire import (
    MISSING_PARSER,
    ROWS_PER_MESSAGE,
    Text,
    decoded,
    encoded,
    options_of,
)
from dragoman_producer.runs.chosen import ChosenNames, ignored
from dragoman_producer.runs.paths import encodable
from dragoman_producer.runs.progress import Saying
from dragoman_producer.runs.refusals import OTHER_SEGMENTS, DocumentRefused, reason_and_detail

_NO_MORE: Final = object()


def main() -> None:
    """Answer requests until the channel ends."""
    # The parent, which closes the channel, has these signals too.
    channel = Channel(connected(int(sys.argv[1]), ignored=(signal.SIGINT, signal.SIGTERM)))
    limit_memory()
    gc.set_threshold(100_000, 50, 50)  # trees of documents hold no cycles: a ninth of the time
    while (message := channel.receive()) is not None:
        request: dict[str, Any] = decoded(message)
        progress = Saying(
            lambda message: channel.send(encoded(message)), _DONE.get(request["do"], "read")
        )
        texts = _texts(channel) if request["do"] == "write" else iter(())
        for answer in _answers(request, texts, progress):
            channel.send(encoded(answer))


def _texts(channel: Channel) -> Iterator[Text]:
    while (message := channel.receive()) is not None and (some := decoded(message)):
        yield from some


def _answers(request: dict[str, Any], texts: Iterator[Text], progress: Saying) -> Iterator[object]:
    """Yield the answers to a request; the last one of `write` once all texts have been read."""
    is_streamed = registry.is_streamed(request["format"])
    if request["do"] in _READING:
        reading = child_tables.READING if is_streamed else _READING
        yield from _or_refusal(reading[request["do"]](request, progress))
        return
    write = child_tables.write if is_streamed else _write
    answers = list(_or_refusal(write(request, texts, progress)))
    for _ in texts:
        pass
    yield from answers


def _or_refusal(answers: Iterator[object]) -> Iterator[object]:
    """Yield answers; why there are no more of them if they fail."""
    refusal = None
    try:
        yield from answers
    except Exception as error:  # noqa: BLE001  a codec that fails ends this document alone
        refusal = reason_and_detail(error)
    limit_time(0)
    if refusal is not None:
        yield {"reason": refusal[0], "detail": encodable(refusal[1])}


def _opened(request: dict[str, Any], progress: Saying) -> tuple[SourceFile, Codec, Options]:
    """Return the file, its codec, and the options as far as the format supports them."""
    limit_time(request["seconds"])
    try:
        codec = registry.codec(request["format"])
    except registry.MissingExtra as error:
        raise DocumentRefused(MISSING_PARSER, str(error)) from None
    given = options_of(request["options"])
    options = replace(given, bilingual=given.bilingual and codec.can_double)

    def one_more_mib(count: int, of: int, scans: bool) -> None:
        limit_time(request["seconds"])
        progress.say(count, of, scans=scans)

    return SourceFile(Path(request["path"]), codec, options, one_more_mib), codec, options


def _unchanged(request: dict[str, Any], progress: Saying) -> tuple[SourceFile, Codec, Options]:
    """Return the result of `_opened`. Raises Changed if the file is not the one that was read."""
    source, codec, options = _opened(request, progress)
    if source.sha256 != request["sha256"]:
        raise Changed
    return source, codec, options


def _limited(parts: Iterator[SourcePart], seconds: int) -> Iterator[SourcePart]:
    """Yield parts of a file, with the time limit for each; so has each MiB that is read."""
    for part in parts:
        limit_time(seconds)
        yield part


def _read(request: dict[str, Any], progress: Saying) -> Iterator[object]:
    """Yield the answers to `read`: rows of segments, then what is known of the file."""
    source, codec, options = _opened(request, progress)
    count, encoding = 0, ""
    remarks = Remarks()
    remarks.add(*ignored(codec, options_of(request["options"])))
    chosen = ChosenNames(codec, options if request.get("named", True) else Options(""))
    notes = _notes(source, options)
    for part in _limited(source.parts(), request["seconds"]):
        with noting(notes):
            found = codec.extract(part.data, options)
            part.check(found)
            chosen.look(part.data, found.segments)
        own = part.own(found.segments)
        rows = rows_of(own, remarks, part.place)
        for first in range(0, len(rows), ROWS_PER_MESSAGE):
            yield {"rows": rows[first : first + ROWS_PER_MESSAGE]}
        count, encoding = count + len(rows), encoding or found.encoding
        remarks.add(*found.remarks)
    if notes.recognised is not None:
        name = notes.recognised
        detail = f"read as {name}, which was recognised; give --encoding if it is not"
        remarks.add(Remark("", detail, "encoding"))
    remarks.add(*chosen.remarks())
    yield {
        "by_language": codec.by_language or options.add,  # what was added before stays
        "sha256": source.sha256,
        "encoding": encoding,
        "segments": count,
        "unmatched": chosen.unmatched(),
        "remarks": remarks.rows(),
    }


def _notes(source: SourceFile, options: Options) -> Notes:
    """Return what is known of the encoding. All parts of a file have that of the file."""
    return Notes(None if source.is_parted else options.encoding, options.source_lang)


def _codes(request: dict[str, Any], progress: Saying) -> Iterator[object]:
    """Yield the answers to `codes`: [number, codes] of the segments with inline codes."""
    source, codec, options = _unchanged(request, progress)
    first = 0
    for part in _limited(source.parts(), request["seconds"]):
        segments = part.own(codec.extract(part.data, options).segments)
        rows = [[first + index, each.codes] for index, each in enumerate(segments) if each.codes]
        for start in range(0, len(rows), ROWS_PER_MESSAGE):
            yield {"rows": rows[start : start + ROWS_PER_MESSAGE]}
        first += len(segments)
    yield {}


def _links(request: dict[str, Any], _: Saying) -> Iterator[object]:
    """Yield the answer to `links`: what is checked of a page."""
    codec, options = registry.codec(request["format"]), options_of(request["options"])
    limit_time(request["seconds"])
    data, wants_ids = Path(request["path"]).read_bytes(), request["wants_ids"]
    from dragoman_documents.markup.anchors.links import linked_page  # noqa: PLC0415  a parser

    page = linked_page(codec, data, options, Anchors(*request["anchors"]), wants_ids=wants_ids)
    yield {"links": page.links, "ids": None if page.ids is None else sorted(page.ids)}


_READING: Final[dict[str, Callable[[dict[str, Any], Saying], Iterator[object]]]] = {
    "read": _read,
    "codes": _codes,
    "links": _links,
}
_DONE: Final = {"write": "written"}
"""What is said of the bytes of a file that a request is done with, if that is not `read`."""


def _write(request: dict[str, Any], texts: Iterator[Text], progress: Saying) -> Iterator[object]:
    """Yield the answer to `write`: the output is in the temporary file by then."""
    source, codec, options = _unchanged(request, progress)
    digest = hashlib.sha256()
    bad: dict[str, list[int]] = {
        name: [] for name in ("tags", "general", "lost", "incomplete", "changed")
    }
    first, without_ids = 0, None
    anchors = Anchors(*request["anchors"]) if request.get("anchors") else None
    notes = _notes(source, options)
    with new_file(Path(request["temporary"])) as file:
        for part in _limited(source.parts(), request["seconds"]):
            with noting(notes):
                spliced, extraction = _spliced(codec, part, options, texts)
                if spliced.data == part.data:
                    notes.left = None  # of a translation that was left out
                if anchors is not None and not source.is_parted:
                    without_ids = _give_ids(codec, spliced, extraction, options, anchors)
            output = part.stripped(spliced.data)
            digest.update(output)
            file.write(output)
            for name, numbers in bad.items():
                found: list[int] = getattr(spliced, name)
                numbers += [first + each - part.first for each in found if each >= part.first]
            first += len(part.own(extraction.segments))
        if next(texts, _NO_MORE) is not _NO_MORE:
            raise DocumentRefused("changed", OTHER_SEGMENTS)
    yield {"sha256": digest.hexdigest(), "left": notes.left, "ids": without_ids, **bad}


def _give_ids(
    codec: Codec, spliced: Spliced, found: Extraction, options: Options, anchors: Anchors
) -> str | None:
    """Give the headings of an output the ids of its source; return why if they cannot have them."""
    from dragoman_documents.markup.anchors.insertions import with_ids  # noqa: PLC0415  a parser
    from dragoman_documents.markup.anchors.verifying import Unverified  # noqa: PLC0415

    try:
        spliced.data = with_ids(codec, spliced, found, options, anchors)
    except Unverified as error:
        return str(error)
    return None


def _spliced(
    codec: Codec, part: SourcePart, options: Options, waiting: Iterator[Text]
) -> tuple[Spliced, Extraction]:
    """Return the output of a part, and what was found in the part."""
    extraction = codec.extract(part.data, options)
    count = len(part.own(extraction.segments))
    given = list(islice(waiting, count))
    if len(given) != count:
        raise DocumentRefused("changed", OTHER_SEGMENTS)
    drafts = frozenset(part.first + index for index, each in enumerate(given) if type(each) is list)
    plain = [each[0] if isinstance(each, list) else each for each in given]
    texts = part.texts(plain)
    made = put_back(codec, part.data, extraction, texts, replace(options, drafts=drafts))
    return made, extraction


if __name__ == "__main__":
    main()
