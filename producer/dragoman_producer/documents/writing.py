"""Third part of a run: documents whose segments are settled, written whole."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dragoman_producer.documents.events import DocumentEnded, Event, Status
from dragoman_producer.documents.extracting import Children, Refused
from dragoman_producer.documents.frames import Text
from dragoman_producer.documents.manifest import Manifest
from dragoman_producer.documents.planning import Target
from dragoman_producer.documents.reading import loaded, question, shown, stored
from dragoman_producer.documents.request import Request
from dragoman_producer.documents.selecting import STATE_FOLDER, escapes, is_source, output_of

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ROWS: Final = (
    "SELECT o.number, o.part, o.segment, o.glue, o.place, t.text, t.quality, t.notes, t.code,"
    " t.cached, t.run, t.segment FROM occurrence o"
    " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
    " WHERE o.file=? ORDER BY o.number, o.part"
)
CHANGED: Final = "changed"
"""Reason of a document whose file is not the one that was read."""
COUNTS: Final = ("segments", "new", "reused", "memory", "warned", "source", "failed")


@dataclass(frozen=True, slots=True)
class Document:
    """A file in one target language."""

    file: int
    target: Target
    path: str
    source: Path
    format: str
    sha256: str
    reading: str


@dataclass(slots=True)
class _Tally:
    """What becomes of the segments of one document."""

    run: str
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    issues: list[tuple[int, str, str, str | None]] = field(default_factory=list)
    """Number of the segment, its place, a gate or code, and a verdict."""
    _source: set[int] = field(default_factory=set[int])
    _warned: set[int] = field(default_factory=set[int])

    def add(self, number: int, rows: list[Any]) -> Text:
        """Count a segment; return its translation, in a list if it is to be looked at."""
        wanted = [row for row in rows if row[2] is not None]
        if not wanted:
            return None
        self.counts["segments"] += 1
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
        new = any(row[10] == self.run for row in wanted)
        cached = new and all(row[9] for row in wanted)
        self.counts["memory" if cached else "new" if new else "reused"] += 1
        text = "".join((row[3] or "") + (row[5] or "") for row in rows)
        return [text] if warned else text

    def _note(self, number: int, place: str, rows: list[Any]) -> bool:
        notes = [note for row in rows if row[7] for note in json.loads(row[7])]
        self.issues += [(number, place, gate, verdict) for gate, verdict in notes]
        return any(row[6] in {"warn", "fail"} and row[5] is not None for row in rows)

    def _warn(self, number: int) -> None:
        self.counts["warned"] += number not in self._warned
        self._warned.add(number)

    def keep_source(self, number: int) -> None:
        """Count a segment that keeps its source, once."""
        self.counts["source"] += number not in self._source
        self._source.add(number)

    def replace_source(self, number: int) -> None:
        """Count a plural form that has the general form in place of its own, or of its source."""
        self.counts["source"] -= number in self._source
        self._source.discard(number)
        self._warn(number)


class Writer:
    """Writes documents; each ends as one row of the table `output`."""

    def __init__(
        self,
        request: Request,
        manifest: Manifest,
        children: Children,
        run: str,
        emit: Callable[[Event], None],
    ) -> None:
        self._request = request
        self._manifest = manifest
        self._children = children
        self._run = run
        self._emit = emit
        self.changed: dict[str, Document] = {}
        """Documents by path that changed after they were read; `repeats` is set while they may."""
        self.repeats = True
        self._parts = request.out / STATE_FOLDER / "parts"
        shutil.rmtree(self._parts, ignore_errors=True)
        self._parts.mkdir(parents=True, exist_ok=True)

    def documents(self, target: Target) -> list[Document]:
        """Return the documents of a target that can be translated, in the order of their files."""
        rows = self._manifest.rows(
            "SELECT id, path, source, format, sha256, reading FROM file"
            " WHERE run=? AND reason IS NULL AND lang IN ('',?) ORDER BY id",
            (self._run, target.lang),
        )
        return [
            Document(row[0], target, loaded(row[1]), Path(loaded(row[2])), *row[3:]) for row in rows
        ]

    def unsettled(self, document: Document, first: int = 0) -> int | None:
        """Return the first segment from `first` on that may still get a translation, or None."""
        row = self._manifest.one(
            "SELECT o.number FROM occurrence o"
            " LEFT JOIN translation t ON t.target=? AND t.segment = o.segment"
            " WHERE o.file=? AND o.number >= ? AND o.segment IS NOT NULL"
            " AND (t.segment IS NULL OR t.retry = 1) ORDER BY o.number LIMIT 1",
            (document.target.number, document.file, first),
        )
        return None if row is None else int(row[0])

    async def write(self, document: Document) -> None:
        """Write one settled document, unless it is there as it would be."""
        output = output_of(self._request, document.path, document.target.lang)
        try:
            if not self._is_current(document, output):
                await self._write(document, output)
        except Refused as refused:
            if refused.reason == CHANGED and self.repeats:
                self.changed[document.path] = document
            else:
                self._end(document, output, "failed", refused)
        except OSError as error:
            self._end(document, output, "failed", _refused(error))

    def interrupt(self, document: Document) -> None:
        """Record a document whose segments are not settled when the run ends."""
        output = output_of(self._request, document.path, document.target.lang)
        why = Refused("interrupted", "it is not finished; run the same command again")
        self._end(document, output, "failed", why)

    def copy(self, source: Path, path: str, lang: str) -> None:
        """Copy a file that is not translated. Raises Refused and OSError."""
        output = output_of(self._request, path, lang)
        self._check(output, source)
        temporary = self._parts / f"copy-{os.getpid()}"
        try:
            shutil.copyfile(source, temporary)
            self._publish(temporary, output)
        finally:
            temporary.unlink(missing_ok=True)

    async def _write(self, document: Document, output: Path) -> None:
        self._check(output, document.source)
        tally = _Tally(self._run)
        temporary = self._parts / f"{document.target.number}-{document.file}"
        asked = question(self._request, document.source, document.format, document.target.lang)
        asked |= {"sha256": document.sha256, "temporary": str(temporary.absolute())}
        try:
            answer = await self._children.write(asked, self._texts(document, tally))
            for name in _CODES:
                self._unfit(document, tally, answer[name], name)
            if self._request.translation.on_fail == "fail" and tally.counts["source"]:
                detail = f"{tally.counts['source']:,} segments have no translation"
                self._end(document, output, "failed", Refused("quality", detail), tally=tally)
                return
            self._publish(temporary, output)
        finally:
            temporary.unlink(missing_ok=True)
        status: Status = "partial" if tally.counts["source"] else "done"
        self._end(document, output, status, tally=tally, sha256=answer["sha256"])

    def _texts(self, document: Document, tally: _Tally) -> Iterator[Text]:
        """Yield the text of each segment of a document, None for one without."""
        number, rows = 0, list[Any]()
        for row in self._manifest.rows(_ROWS, (document.target.number, document.file)):
            if row[0] != number:
                yield tally.add(number, rows)
                number, rows = row[0], []
            rows.append(row)
        if rows:
            yield tally.add(number, rows)

    def _unfit(self, document: Document, tally: _Tally, numbers: list[int], name: str) -> None:
        """Count segments whose translation the document cannot hold as it came."""
        for number in numbers:
            row = self._manifest.one(
                "SELECT place FROM occurrence WHERE file=? AND number=?", (document.file, number)
            )
            tally.issues.append((number, row[0], _CODES[name], None))
            if name == "general":
                tally.replace_source(number)
            else:
                tally.keep_source(number)

    def _check(self, output: Path, source: Path) -> None:
        """Make the folder of an output. Raises Refused and OSError."""
        if escapes(self._request, output):
            raise Refused("outside", "its output would be outside of the folder of outputs")
        output.parent.mkdir(parents=True, exist_ok=True)
        if is_source(output, source):
            raise Refused("collision", "its output would replace it; give another --out")
        if output.is_dir():
            raise Refused("collision", "a folder has the name of its output")

    def _publish(self, temporary: Path, output: Path) -> None:
        if escapes(self._request, output):
            raise Refused("outside", "its output would be outside of the folder of outputs")
        temporary.replace(output)

    def _is_current(self, document: Document, output: Path) -> bool:
        """Return whether the output is there, whole and of these translations; record that."""
        row = self._manifest.one(
            "SELECT sha256, source, status, counts, path FROM output WHERE file=? AND target=?",
            (document.file, document.target.number),
        )
        if row is None or row[1] != _origin(document) or row[2] == "failed":
            return False
        if loaded(row[4]) != str(output) or _sha256(output) != row[0] or self._has_news(document):
            return False
        counts = json.loads(row[3])
        reused = counts["new"] + counts["memory"] + counts["reused"]
        counts |= {"new": 0, "memory": 0, "reused": reused}
        status: Status = "partial" if counts["source"] else "unchanged"
        with self._manifest.writing() as db:
            db.execute(
                "UPDATE output SET status=?, reason='no_target_change', counts=?, run=?"
                " WHERE file=? AND target=?",
                (status, json.dumps(counts), self._run, document.file, document.target.number),
            )
        self._ended(document, output, status, None, "no_target_change")
        return True

    def _has_news(self, document: Document) -> bool:
        row = self._manifest.one(
            "SELECT 1 FROM occurrence o JOIN translation t ON t.target=? AND t.segment = o.segment"
            " WHERE o.file=? AND t.run=? LIMIT 1",
            (document.target.number, document.file, self._run),
        )
        return row is not None

    def _end(
        self,
        document: Document,
        output: Path,
        status: Status,
        refused: Refused | None = None,
        *,
        tally: _Tally | None = None,
        sha256: str | None = None,
    ) -> None:
        reason = refused.reason if refused else None
        if refused is None and tally is not None and not tally.counts["segments"]:
            reason = "nothing_to_translate"
        tally = tally or _Tally(self._run)
        key = (document.file, document.target.number)
        with self._manifest.writing() as db:
            db.execute("DELETE FROM issue WHERE file=? AND target=?", key)
            db.executemany(
                "INSERT INTO issue VALUES (?,?,?,?,?,?)", ((*key, *each) for each in tally.issues)
            )
            detail = refused.detail if refused else None
            row = (sha256, _origin(document), status, reason, detail)
            db.execute(
                "INSERT OR REPLACE INTO output VALUES (?,?,?,?,?,?,?,?,?,?)",
                (*key, stored(str(output)), *row, json.dumps(tally.counts), self._run),
            )
        self._ended(document, output, status, refused, reason)

    def _ended(
        self,
        document: Document,
        output: Path,
        status: Status,
        refused: Refused | None,
        reason: str | None = None,
    ) -> None:
        written = None if status == "failed" else output
        detail = refused.detail if refused else None
        lang = document.target.lang
        self._emit(DocumentEnded(shown(document.path), lang, status, reason, detail, written))


class WritesAlong:
    """Writes documents of a target as soon as their segments are settled, in their order."""

    def __init__(self, writer: Writer, documents: list[Document]) -> None:
        self._writer = writer
        self._waiting = documents[::-1]
        self._first = 0
        self._later: list[Document] = []

    async def write_settled(self) -> None:
        """Write the next documents, up to the first one that waits for a segment."""
        while self._waiting:
            document = self._waiting[-1]
            found = self._writer.unsettled(document, self._first)
            if found is not None:
                self._first = found
                return
            self._waiting.pop()
            self._first = 0
            await self._writer.write(document)

    async def write_rest(self, *, at_once: int) -> None:
        """Write all that are settled; record the others as interrupted."""
        limit = asyncio.Semaphore(at_once)

        async def one(document: Document) -> None:
            async with limit:
                if self._writer.unsettled(document) is None:
                    await self._writer.write(document)
                else:
                    self._writer.interrupt(document)

        async with asyncio.TaskGroup() as group:
            for document in reversed(self._waiting):
                group.create_task(one(document), name="dragoman-write")
        self._waiting = []


_CODES: Final = {
    "tags": "tags",
    "changed": "read_back",
    "lost": "plural_lost",
    "general": "plural",
}
"""Code of the issues per list in the answer of a child; the last one replaces sources."""


def _origin(document: Document) -> str:
    return f"{document.sha256}:{document.reading}"


def _refused(error: OSError) -> Refused:
    if error.errno in _FULL:
        return Refused("no_space", "the disk is full, or the file is larger than allowed")
    return Refused("outside", f"its output cannot be written: {error.strerror}")


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
