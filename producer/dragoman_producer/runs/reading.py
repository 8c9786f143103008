"""First pass of a run: every file into the manifest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dragoman_documents import registry
from dragoman_documents.codec import Options
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.files import FileRows, NewFile
from dragoman_producer.runs.batching import Glossary, cut_context, parts
from dragoman_producer.runs.child_wire import options_fields
from dragoman_producer.runs.configuration import CONFIGURATION, keys_of
from dragoman_producer.runs.events import Event, Extracted
from dragoman_producer.runs.extracting import Children
from dragoman_producer.runs.paths import sha256_of, shown, stored
from dragoman_producer.runs.progress import emitting
from dragoman_producer.runs.refusals import DocumentRefused
from dragoman_producer.runs.request import RunRequest
from dragoman_producer.runs.selecting import FoundFile, Selection

UNSUPPORTED: Final = "unsupported_format"
"""Reason of a file whose name has no known format."""
SKIPPED: Final = frozenset({UNSUPPORTED, CONFIGURATION, "outside"})
"""Reasons of files that are not to be read, and so are no failures."""


@dataclass(slots=True)
class FileReader:
    """Reads the files of a request; one that is read already with the same hash is not again."""

    request: RunRequest
    manifest: Manifest
    children: Children
    glossary: Glossary
    run: str
    emit: Callable[[Event], None]
    stopped: Callable[[], bool] = lambda: False
    files: int = 0
    segments: int = 0
    _stored: FileRows = field(init=False)

    def __post_init__(self) -> None:
        self._stored = FileRows(self.manifest, self.run)

    async def read_all(self, selection: Selection) -> None:
        """Read every file, as many at once as there are children.

        Raises NothingThere, MissingParser and NoSpace.
        """
        waiting = iter(selection.files())
        working = [self._work(waiting) for _ in range(self.children.count)]
        async with asyncio.TaskGroup() as group:
            for each in working:
                group.create_task(each, name="dragoman-read")

    async def read_again(self, found: Iterable[FoundFile]) -> None:
        """Read files that have changed since."""
        await self._work(iter(found))

    async def _work(self, waiting: Iterator[FoundFile]) -> None:
        for found in waiting:
            if self.stopped():
                return
            why = await self.read(found)
            await asyncio.sleep(0)  # files that are known already wait for nothing: let Ctrl-C in
            self.files += 1
            skipped = why is not None and found.format is None and why.reason in SKIPPED
            self.emit(
                Extracted(
                    shown(found.path),
                    self.files,
                    self.segments,
                    why.reason if why else None,
                    why.detail if why else None,
                    skipped,
                )
            )

    async def read(self, found: FoundFile) -> DocumentRefused | None:
        """Read one file; return why it cannot be translated, None if it can."""
        if found.format is None or found.reason is not None:
            why = DocumentRefused(found.reason or "corrupt", found.detail or "")
            self._refuse(found, "", why)
            return why
        first, *others = self.request.to
        if self._is_known(found):
            return self._known_reason(found)
        by_language, reason = await self._read(found, first, "")
        if by_language:
            for lang in others:
                _, again = await self._read(found, lang, lang)
                reason = reason or again
        return reason

    def _is_known(self, found: FoundFile) -> bool:
        """Return whether the file was read before with these options; if so, mark it as read."""
        rows = self._stored.readings(stored(found.path))
        langs = {row[1] for row in rows}
        if not rows or not ("" in langs or langs >= set(self.request.to)):
            return False
        if any(row[3] != self._reading(found, row[1]) or row[2] is None for row in rows):
            return False
        if any(row[4] != _codec_version(found) for row in rows):
            return False
        if sha256_of(found.source) != rows[0][2]:
            return False
        self._stored.take_over((row[0] for row in rows), stored(str(found.source.absolute())))
        return True

    def _known_reason(self, found: FoundFile) -> DocumentRefused | None:
        reason, segments, detail = self._stored.outcome(stored(found.path))
        self.segments += segments or 0
        return None if reason is None else DocumentRefused(reason, detail or "")

    def _reading(self, found: FoundFile, lang: str) -> str:
        source_lang = self.request.translation.source_lang  # by which an encoding is recognised
        terms = self.glossary.digest()
        site = () if found.site is None else (found.site,)  # manifests of version 2 have none
        return self.request.reading.digest(found.format, lang, source_lang, terms, *site)

    def _refuse(self, found: FoundFile, lang: str, refused: DocumentRefused) -> None:
        self._stored.refuse(_new_file(found, lang), refused.reason, refused.detail)

    async def _read(
        self, found: FoundFile, target: str, lang: str
    ) -> tuple[bool, DocumentRefused | None]:
        """Read a file for one target language; return whether its segments depend on that."""
        file = self._stored.begin(_new_file(found, lang))
        rows = _Rows(self, file)
        try:
            tell = emitting(self.emit, shown(found.path))
            known = await self.children.read(self._question(found, target), rows.add, tell)
        except DocumentRefused as refused:
            self._refuse(found, lang, refused)
            return False, refused
        self.segments += known["segments"]
        reading_lang = target if known["by_language"] else ""
        unmatched = json.dumps(known["unmatched"]) if known["unmatched"] else None
        found_in = (known["sha256"], known["encoding"], known["segments"], unmatched)
        reading = (reading_lang, self._reading(found, reading_lang), *found_in)
        self._stored.end(file, stored(found.path), reading, known["remarks"])
        return known["by_language"], None

    def _question(self, found: FoundFile, target: str) -> dict[str, Any]:
        return question(self.request, found.source, found.format or "", found.site, target)


def question(
    request: RunRequest, source: Path, format_name: str, site: str | None, target: str
) -> dict[str, Any]:
    """Return what a child needs to read a file."""
    reading = request.reading
    options = Options(
        target_lang=target,
        source_lang=request.translation.source_lang,
        columns=reading.columns,
        fields=reading.fields,
        keys=reading.keys or keys_of(source.name),
        ids=reading.ids,
        in_place=reading.in_place,
        add=reading.add,
        bilingual=reading.bilingual,
        headings=reading.headings,
        encoding=reading.encoding,
        site=site,
    )
    return {
        "path": str(source.absolute()), "format": format_name, "options": options_fields(options),
        "named": bool(reading.columns or reading.fields or reading.keys or reading.ids),
    }  # fmt: skip


def _new_file(found: FoundFile, lang: str) -> NewFile:
    path, source = stored(found.path), stored(str(found.source.absolute()))
    return NewFile(path, lang, source, found.format, _codec_version(found), found.site)


def _codec_version(found: FoundFile) -> int:
    return registry.version(found.format) if found.format else 1


class _Rows:
    """Segments of one file, as they arrive, into the manifest."""

    def __init__(self, reader: FileReader, file: int) -> None:
        self._reader = reader
        self._file = file
        self._number = 0

    def add(self, rows: list[list[Any]]) -> None:
        made: list[tuple[Any, ...]] = []
        for row in rows:
            made += self._made(row)
            self._number += 1
        self._reader.manifest.add_segments(self._file, made)

    def _made(self, row: list[Any]) -> Iterable[tuple[Any, ...]]:
        text, place, max_chars, state, context, headings = row
        reading = self._reader.request.reading
        if text is None or (state == "done" and not reading.refresh):
            yield (self._number, 0, None, None, None, None, None, place)
            return
        context = cut_context(" > ".join([*headings, *([context] if context else [])]) or None)
        lang = self._reader.request.translation.source_lang
        made = parts(text, context, max_chars, self._reader.glossary, lang)
        for number, part in enumerate(made):
            digest = part.digest if part.text else None
            yield (
                self._number, number, digest, part.text, context, max_chars, part.before or None,
                place,
            )  # fmt: skip
