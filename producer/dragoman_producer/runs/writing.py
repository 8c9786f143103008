"""Third part of a run: documents whose segments are settled, written whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman_connections.terminal import counted
from dragoman_documents.codec import LEFT
from dragoman_documents.markup.anchors.settings import AnchorSettings
from dragoman_documents.markup.sites import Anchors
from dragoman_documents.site_recognition import Sites
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.files import FileRows
from dragoman_producer.manifest.outputs import OutputRows
from dragoman_producer.runs.child_wire import Text
from dragoman_producer.runs.events import DocumentEnded, Event, Status
from dragoman_producer.runs.extracting import INTERRUPTED, Children
from dragoman_producer.runs.outputs import Outputs, naming, unwritten
from dragoman_producer.runs.paths import loaded, sha256_of, shown, stored
from dragoman_producer.runs.planning import Target
from dragoman_producer.runs.progress import emitting
from dragoman_producer.runs.reading import question
from dragoman_producer.runs.refusals import CHANGED, DocumentRefused
from dragoman_producer.runs.request import RunRequest
from dragoman_producer.runs.selecting import STATE_FOLDER, output_of
from dragoman_producer.runs.tally import Tally

ENCODING: Final = "encoding"
"""Code of the issue of a document that is UTF-8 in place of the encoding of its source."""
ANCHORS: Final = "anchors"
"""Code of the issue of a document whose headings could not get the ids of its source."""
_LACKS: Final = "lacks characters of the translation"
NOTHING_TRANSLATED: Final = "nothing_translated"
"""Reason of a document without a segment, though readers see text in it."""
POORER: Final = "poorer"
"""Reason of a document whose output stands, because the new one would lack translations of it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file in one target language."""

    file: int
    target: Target
    path: str
    source: Path
    format: str
    site: str | None
    sha256: str
    reading: str


class DocumentWriter:
    """Writes documents; each ends as one row of the table `output`."""

    def __init__(
        self,
        request: RunRequest,
        manifest: Manifest,
        children: Children,
        run: str,
        emit: Callable[[Event], None],
    ) -> None:
        self._request = request
        self._files = FileRows(manifest, run)
        self._rows = OutputRows(manifest, run)
        self._children = children
        self._run = run
        self._emit = emit
        self._outputs = Outputs(request, manifest)
        self._sites = Sites(request.reading.site)
        self._anchors = AnchorSettings(request.anchors)
        self.changed: dict[str, Document] = {}
        """Documents by path that changed after they were read; `repeats` is set while they may."""
        self.repeats = True
        self._parts = request.out / STATE_FOLDER / "parts"
        shutil.rmtree(self._parts, ignore_errors=True)
        self._parts.mkdir(parents=True, exist_ok=True)

    def files(self, target: Target) -> list[int]:
        """Return the files that can be translated for a target, in their order.

        Not the documents: those of 100,000 files would take 100 MB per language.
        """
        return self._files.of_target(target.number, target.lang)

    def document(self, file: int, target: Target) -> Document:
        """Return a file of the manifest in a target language."""
        row = self._files.find(file)
        return Document(file, target, loaded(row[0]), Path(loaded(row[1])), *row[2:])

    def unsettled(self, file: int, target: Target, first: int = 0) -> int | None:
        """Return the first segment from `first` on that may still get a translation, or None."""
        return self._files.unsettled(file, target.number, first)

    async def write(self, document: Document) -> None:
        """Write one settled document, unless it is there as it would be."""
        output = output_of(self._request, document.path, document.target.lang)
        try:
            if not self._is_current(document, output):
                await self._write(document, output)
        except DocumentRefused as refused:
            if refused.reason == CHANGED and self.repeats:
                self.changed[document.path] = document
            else:
                self._end(document, output, "failed", naming(refused, output))
        except OSError as error:
            self._end(document, output, "failed", unwritten(error, output))

    def refuse_collisions(self, target: Target) -> int:
        """End the documents whose translations would be paid for, and then find no place.

        Return their number.
        """
        refused = 0
        if self._request.overwrite:
            return refused
        is_anew = self._request.translation.memory == "refresh"
        for file in self._files.lacking(target.number, target.lang, is_anew=is_anew):
            document = self.document(file, target)
            output = output_of(self._request, document.path, target.lang)
            if (why := self._outputs.collision(output)) is not None:
                self._end(document, output, "failed", why)
                refused += 1
        return refused

    def interrupt(self, document: Document) -> None:
        """Record a document whose segments are not settled when the run ends."""
        output = output_of(self._request, document.path, document.target.lang)
        why = DocumentRefused(INTERRUPTED, "it is not finished; run the same command again")
        self._end(document, output, "failed", why)

    def copy(self, source: Path, path: str, lang: str) -> None:
        """Copy a file that is not translated; one that cannot be is a line of the report."""
        output = output_of(self._request, path, lang)
        try:
            self._copy(source, output)
        except (DocumentRefused, OSError) as error:
            why = error if isinstance(error, DocumentRefused) else unwritten(error, output)
            self._emit(DocumentEnded(shown(path), lang, "failed", why.reason, why.detail))

    def _copy(self, source: Path, output: Path) -> None:
        self._outputs.check(output, source)
        temporary = self._parts / f"copy-{os.getpid()}"
        try:
            shutil.copyfile(source, temporary)
            self._outputs.publish(temporary, output, sha256_of(temporary))
        finally:
            temporary.unlink(missing_ok=True)

    async def _write(self, document: Document, output: Path) -> None:
        self._outputs.check(output, document.source)
        tally = Tally(self._run, self._request.translation.source_lang)
        temporary = self._parts / f"{document.target.number}-{document.file}"
        lang, site = document.target.lang, document.site
        asked = question(self._request, document.source, document.format, site, lang)
        asked |= {"sha256": document.sha256, "temporary": str(temporary.absolute())}
        asked |= {"anchors": self._anchors_of(document)}
        try:
            tell = emitting(self._emit, shown(document.path), lang)
            answer = await self._children.write(asked, self._texts(document, tally), tell)
            for name in _CODES:
                self._unfit(document, tally, answer[name], name)
            if (left := answer["left"]) is not None:
                tally.issues.append((-1, "", ENCODING, f"written as UTF-8: {left} {_LACKS}"))
            if (why := answer["ids"]) is not None:
                detail = f"links to its headings may be dead: {why}"
                tally.issues.append((-1, "", ANCHORS, detail))
            if self._request.translation.on_fail == "fail" and tally.counts["source"]:
                detail = tally.detail() or ""
                self._end(
                    document, output, "failed", DocumentRefused("quality", detail), tally=tally
                )
                return
            if (poorer := self._poorer(document, output, tally)) is not None:
                self._end(document, output, "failed", poorer, tally=tally)
                return
            is_new = self._outputs.publish(temporary, output, answer["sha256"])
        finally:
            temporary.unlink(missing_ok=True)
        left = self._left(document)
        status: Status = "partial" if tally.counts["source"] or left else "done"
        why = DocumentRefused(NOTHING_TRANSLATED, left) if left else None
        sha256 = answer["sha256"]
        self._end(document, output, status, why, tally=tally, sha256=sha256, is_new=is_new)

    def _poorer(self, document: Document, output: Path, tally: Tally) -> DocumentRefused | None:
        """Return why an output must not take the place of the one that stands there."""
        if self._request.replace_poorer:
            return None
        lost = 0
        if tally.in_source and os.path.lexists(output):
            lost = self._rows.lost(document.file, stored(str(output)), tally.in_source)
        what = f"{counted(lost, 'text')} translated in it would go back to the source language"
        detail = f"{what}, such as {tally.where_and_why()}; --replace-poorer replaces it"
        return DocumentRefused(POORER, detail) if lost else None

    def _texts(self, document: Document, tally: Tally) -> Iterator[Text]:
        """Yield the text of each segment of a document, None for one without."""
        number, rows = 0, list[Any]()
        for row in self._files.texts(document.file, document.target.number):
            if row[0] != number:
                yield tally.add(number, rows)
                number, rows = row[0], []
            rows.append(row)
        if rows:
            yield tally.add(number, rows)

    def _unfit(self, document: Document, tally: Tally, numbers: list[int], name: str) -> None:
        """Count segments whose translation the document cannot hold as it came."""
        for number in numbers:
            place = self._files.place(document.file, number)
            tally.issues.append((number, place, _CODES[name], None))
            if name == "general":
                tally.replace_source(number)
            else:
                tally.keep_source(number)

    def _is_current(self, document: Document, output: Path) -> bool:
        """Return whether the output is there and of these translations; record that."""
        row = self._rows.find(document.file, document.target.number)
        if row is None or row[1] != self._origin(document) or row[2] == "failed":
            return False
        if loaded(row[4]) != str(output):
            return False
        if not self._outputs.is_kept(output, row[0]):
            return False
        counts = json.loads(row[3])
        reused = counts["new"] + counts["memory"] + counts["reused"]
        counts |= {"new": 0, "memory": 0, "reused": reused}
        left = self._left(document)
        reason = NOTHING_TRANSLATED if left else "no_target_change"
        detail = left or row[5]
        status: Status = "partial" if counts["source"] or left else "unchanged"
        kept = (status, reason, detail, json.dumps(counts))
        self._rows.keep(document.file, document.target.number, kept)
        self._ended(document, output, status, reason, detail, is_new=False)
        return True

    def _left(self, document: Document) -> str | None:
        """Return which text was left, if nothing of a document can be translated but it has text.

        Texts that cannot be sent are segments as well; so are those that are translated already.
        """
        kinds = self._files.remarks(document.file)
        left = [f"{kind} ({count:,})" for kind, count in kinds.items() if kind in LEFT]
        if not left or self._files.segments(document.file) > kinds.get("characters", 0):
            return None
        return f"none of its text is translated: {', '.join(left)}"

    def _origin(self, document: Document) -> str:
        """Return what an output is made from: its source, the runs of its translations, its ids.

        A run may have ended between a translation and its output, which then lacks it.
        """
        made = ",".join(sorted(self._files.runs(document.file, document.target.number)))
        origin = f"{document.sha256}:{document.reading}:{made}"
        anchors = self._anchors_of(document)
        return f"{origin}:{anchors.slugger}:{anchors.ids}" if anchors is not None else origin

    def _anchors_of(self, document: Document) -> Anchors | None:
        """Return how a document gets the ids of its source; None if it gets none."""
        known = self._sites.of(document.source)
        found = self._anchors.of(document.format, known)
        return None if found is None or found.ids == "none" else found

    def _end(
        self,
        document: Document,
        output: Path,
        status: Status,
        refused: DocumentRefused | None = None,
        *,
        tally: Tally | None = None,
        sha256: str | None = None,
        is_new: bool = True,
    ) -> None:
        reason = refused.reason if refused else None
        if refused is None and tally is not None and not tally.counts["segments"]:
            reason = "nothing_to_translate"
        tally = tally or Tally(self._run)
        detail = refused.detail if refused else tally.detail()
        counts = json.dumps(tally.counts)
        outcome = (sha256, self._origin(document), status, reason, detail, counts)
        key = (document.file, document.target.number, stored(str(output)))
        self._rows.end(*key, outcome, tally.issues)
        self._ended(document, output, status, reason, detail, is_new=is_new)

    def _ended(
        self,
        document: Document,
        output: Path,
        status: Status,
        reason: str | None,
        detail: str | None,
        *,
        is_new: bool = True,
    ) -> None:
        there = None if status == "failed" else output
        path, lang = shown(document.path), document.target.lang
        self._emit(DocumentEnded(path, lang, status, reason, detail, there, is_new))


_CODES: Final = {
    "tags": "tags",
    "changed": "read_back",
    "lost": "plural_lost",
    "incomplete": "message_incomplete",
    "general": "plural",
}
"""Code of the issues per list in the answer of a child; the last one replaces sources."""
