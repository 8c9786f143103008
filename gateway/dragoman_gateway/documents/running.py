"""Runs over documents: one for each, taken by lease, resumed by whoever finds it abandoned."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from dragoman_gateway.documents.folder import DocumentFolder
from dragoman_gateway.documents.records import (
    LEASE_S,
    DocumentRecord,
    DocumentRecords,
    UnendedDocument,
)
from dragoman_gateway.keys import Key
from dragoman_gateway.languages import base
from dragoman_gateway.metrics import GatewayMetrics
from dragoman_gateway.usage import KeyUsage
from dragoman_producer.errors import DragomanError
from dragoman_producer.manifest.database import FolderBusy, Manifest, NoSpace
from dragoman_producer.runs.events import (
    DocumentEnded,
    Event,
    Extracted,
    Finished,
    Planned,
    Progressed,
)
from dragoman_producer.runs.extracting import INTERRUPTED, Children, MissingParser
from dragoman_producer.runs.paths import sha256_of
from dragoman_producer.runs.request import MissingGlossary, Reading, RunRequest, Stop, Translation
from dragoman_producer.runs.running import Client
from dragoman_producer.runs.selecting import MANIFEST, STATE_FOLDER
from dragoman_producer.runs.translating import run_documents
from dragoman_text.detection import Detection

EQUAL: Final = "Source and target language are equal."
_NO_SPACE: Final = "no_space: the server has no room for the translation"
_RENEW_S: Final = 10.0
_LOOK_S: Final = 2.0
_CLEAN_S: Final = 30.0
_AGAIN_S: Final = 5.0
_GRACE_S: Final = 8.0
_SAMPLE: Final = 2_000


class DocumentEnd(NamedTuple):
    """How a document ended; `queued`: it did not."""

    status: str
    fields: Mapping[str, str | int]


def failed(message: str) -> DocumentEnd:
    """Return the outcome of a document without a translation."""
    return DocumentEnd("error", {"message": message[:1000]})


QUEUED: Final = DocumentEnd("queued", {})


class _Progress:
    """What a run has told so far."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.planned: Planned | None = None
        self.done = 0
        self.refused: Extracted | None = None
        self.ended: DocumentEnded | None = None
        self.finished: Finished | None = None

    def note(self, event: Event) -> None:
        match event:
            case Planned():
                self.planned, self.began = event, time.monotonic()
            case Progressed():
                self.done = event.segments
            case Extracted() if event.reason is not None:
                self.refused = event
            case DocumentEnded():
                self.ended = event
            case Finished():
                self.finished = event
            case _:
                pass

    def fields(self) -> dict[str, str | int]:
        """Return the fields of the record."""
        if self.planned is None:
            return {}
        missing = max(0, self.planned.missing - self.done)
        seconds = time.monotonic() - self.began
        left = round(missing * seconds / self.done) if self.done else 0
        return {"segments": self.planned.missing, "done": self.done, "seconds": max(1, left)}


class DocumentRuns:
    """Translates some documents at once, each key's in their order, the keys by turns."""

    def __init__(
        self,
        records: DocumentRecords,
        folder: DocumentFolder,
        clients: Mapping[str, Client],
        *,
        at_once: int,
        usage: KeyUsage,
        detect: Callable[[str], Detection | None],
        metrics: GatewayMetrics,
        report: Callable[[str], None],
    ) -> None:
        self._records = records
        self._folder = folder
        self._clients = clients
        self._at_once = at_once
        self._usage = usage
        self._detect = detect
        self._metrics = metrics
        self._report = report
        self._children = Children()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._keys: dict[str, str] = {}
        self._served: dict[str, float] = {}
        self._later: dict[str, float] = {}
        self._stop = Stop()
        self._news = asyncio.Event()

    def look(self) -> None:
        """Look for documents now: one was uploaded."""
        self._news.set()

    async def forever(self) -> None:
        """Take documents that wait, and remove what is left over."""
        cleaned = -_CLEAN_S
        while not self._stop.asked.is_set():
            clean = time.monotonic() - cleaned >= _CLEAN_S
            with suppress(DragomanError):  # Redis is away: uploads say so
                await self._look(clean=clean)
                cleaned = time.monotonic() if clean else cleaned
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._news.wait()

    async def close(self) -> None:
        """Stop the runs; another gateway, or the next start, goes on with them."""
        self._stop()
        self._news.set()
        if self._running:
            await asyncio.wait(self._running.values(), timeout=_GRACE_S)
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._children.close()

    async def _look(self, *, clean: bool) -> None:
        ids = await asyncio.to_thread(self._folder.ids)
        waiting, statuses = await self._records.look(ids)
        self._metrics.count_documents(Counter(statuses.values()))
        if clean:
            gone = [each for each in ids if each not in statuses and each not in self._running]
            await asyncio.to_thread(self._folder.remove_left_over, gone)
            await asyncio.to_thread(self._folder.measure)
        free = [each for each in waiting if each.free and self._is_due(each)]
        while free and len(self._running) < self._at_once and not self._stop.asked.is_set():
            chosen = min(free, key=self._turn)
            free.remove(chosen)
            if await self._records.hold(chosen.id, {"status": "translating"}):
                self._begin(chosen)

    def _is_due(self, each: UnendedDocument) -> bool:
        return each.id not in self._running and self._later.get(each.id, 0) <= time.monotonic()

    def _turn(self, each: UnendedDocument) -> tuple[int, float, str]:
        running = sum(key == each.key for key in self._keys.values())
        return running, self._served.get(each.key, 0.0), each.created

    def _begin(self, waiting: UnendedDocument) -> None:
        self._later.pop(waiting.id, None)
        self._served[waiting.key] = time.monotonic()
        self._keys[waiting.id] = waiting.key
        task = asyncio.create_task(self._run(waiting.id), name=f"document {waiting.id}")
        self._running[waiting.id] = task
        task.add_done_callback(lambda _: self._end(waiting.id))

    def _end(self, document_id: str) -> None:
        del self._running[document_id], self._keys[document_id]
        self._news.set()

    async def _run(self, document_id: str) -> None:
        progress = _Progress()
        outcome = QUEUED
        try:
            record = await self._records.read(document_id)
            if record is None:
                return
            outcome = await self._leased(record, progress)
        except DragomanError as error:
            self._report(f"document {document_id} waits: {type(error).__name__}")
        except Exception as error:  # noqa: BLE001  a defect ends one document
            self._report(f"document {document_id}: {type(error).__name__}")
            outcome = failed("internal: the document could not be translated")
        if outcome.status == "queued":
            self._later[document_id] = time.monotonic() + _AGAIN_S
        if outcome.fields.get("message") == _NO_SPACE:
            self._metrics.no_space.inc()
        with suppress(DragomanError):  # it is taken again, and costs nothing
            fields = {**progress.fields(), **outcome.fields, "status": outcome.status}
            await self._records.give_back(document_id, fields)

    async def _leased(self, record: DocumentRecord, progress: _Progress) -> DocumentEnd:
        """Translate while the lease lasts; without it another gateway may have begun."""
        run = asyncio.create_task(self._translated(record, progress))
        held_at = time.monotonic()
        said: dict[str, str | int] = {}
        try:
            while True:
                pause = 1.0 if progress.fields() != said else _RENEW_S
                done, _ = await asyncio.wait({run}, timeout=min(pause, _RENEW_S))
                if done:
                    return run.result()
                fields = progress.fields()
                try:
                    if not await self._records.hold(record.id, fields):
                        return QUEUED  # forgotten, or another gateway's: giving back does nothing
                    held_at, said = time.monotonic(), fields
                except DragomanError:
                    if time.monotonic() - held_at > LEASE_S - 1:
                        return QUEUED
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)

    async def _translated(  # noqa: PLR0911  one for each way to end
        self, record: DocumentRecord, progress: _Progress
    ) -> DocumentEnd:
        if record.asked["source"] == record.asked["target"]:
            return failed(EQUAL)
        request = _request(record, self._folder.of(record.id))
        try:
            await self._run_documents(record, request, progress)
            return await self._outcome(record, request, progress)
        except FolderBusy:
            return QUEUED
        except NoSpace:
            return failed(_NO_SPACE)
        except MissingGlossary:
            return failed("unknown_glossary: the glossary is no longer stored")
        except MissingParser as error:
            return failed(f"unsupported_format: {error}")
        except OSError:
            return failed("corrupt: the uploaded file cannot be read")

    async def _run_documents(
        self, record: DocumentRecord, request: RunRequest, progress: _Progress
    ) -> None:
        client = self._clients[record.asked["topic"]]
        found = run_documents(client, request, stop=self._stop, children=self._children)
        async with aclosing(found) as events:
            async for event in events:
                progress.note(event)
                if isinstance(event, Planned):
                    await self._count(record, event)

    async def _count(self, record: DocumentRecord, planned: Planned) -> None:
        """Count the characters once, however often the run begins."""
        if "characters" not in record.fields:
            await self._records.hold(record.id, {"characters": planned.characters})
            if planned.characters:
                self._usage.add(Key(id=record.key), planned.characters)
                self._metrics.characters.labels(record.key).inc(planned.characters)

    async def _outcome(  # noqa: PLR0911  one for each way to end
        self, record: DocumentRecord, request: RunRequest, progress: _Progress
    ) -> DocumentEnd:
        refused, ended, finished = progress.refused, progress.ended, progress.finished
        if refused is not None and refused.reason != INTERRUPTED:
            return failed(_said(refused.reason, refused.detail))
        stopped = finished is None or "stopped" in finished.totals or self._stop.asked.is_set()
        if ended is not None and ended.status == "failed" and ended.reason == "no_space":
            return failed(_NO_SPACE)
        if finished is None or stopped or ended is None or ended.reason == INTERRUPTED:
            return QUEUED
        counts = cast("Mapping[str, int]", finished.totals["targets"][request.to[0]])
        if ended.status == "failed" or ended.output is None:
            return failed(_said(ended.reason, ended.detail))
        if counts["segments"] and counts["source"] >= counts["segments"]:
            return failed(f"{self._why(finished)}: 0 of {counts['segments']} texts are translated")
        if await asyncio.to_thread(self._is_in_target, record, request, ended.output):
            return failed(EQUAL)
        names = ("segments", "new", "reused", "memory", "warned", "source", "failed")
        report = "; ".join(f"{name}={counts[name]}" for name in names)
        output = str(ended.output.relative_to(self._folder.of(record.id)))
        return DocumentEnd("done", {"report": report, "output": output})

    def _why(self, finished: Finished) -> str:
        """Return the code that most texts have."""
        try:
            if finished.report is None:
                return "engine_failed"
            documents = json.loads(finished.report.read_bytes())["documents"]
            codes = Counter(str(each["code"]) for one in documents for each in one["issues"])
            return codes.most_common(1)[0][0]
        except (OSError, ValueError, LookupError):
            return "engine_failed"

    def _is_in_target(self, record: DocumentRecord, request: RunRequest, output: Path) -> bool:
        """Return whether nothing changed because the document is in the target language."""
        if record.asked["source"] is not None or sha256_of(output) != sha256_of(request.paths[0]):
            return False
        manifest = Manifest.open(request.out / STATE_FOLDER / MANIFEST)
        try:
            rows: list[tuple[Any]] = list(manifest.rows("SELECT text FROM segment LIMIT 50"))
        finally:
            manifest.close()
        guess = self._detect(" ".join(text for (text,) in rows if text)[:_SAMPLE])
        return guess is not None and guess.language == base(record.asked["target"])


def _request(record: DocumentRecord, folder: Path) -> RunRequest:
    asked = record.asked
    on_fail = asked["on_fail"]
    translation = Translation(
        source_lang=asked["source"],
        glossary_id=asked["glossary"],
        formality=asked["formality"],
        profile=asked["profile"],
        quality=asked["quality"],
        on_fail=on_fail if on_fail in {"source", "best_effort", "fail"} else "source",
        memory=asked["memory"],
    )
    return RunRequest(
        (folder / "in" / f"document{asked['suffix']}",), (asked["target"],), folder / "out",
        translation, Reading(),
    )  # fmt: skip


def _said(reason: str | None, detail: str | None) -> str:
    """Return reason and detail; a detail that names a path of this server is left out."""
    shown = "" if not detail or "/" in detail else f": {detail}"
    return f"{reason or 'internal'}{shown}"


def handle(document_id: str, key: str) -> str:
    """Return what stands for a document in a URL that needs no other key."""
    return base64.urlsafe_b64encode(bytes.fromhex(document_id + key)).decode().rstrip("=")


def read_handle(given: str) -> tuple[str, str] | None:
    """Return id and key of a document of `handle`; None if it is none."""
    try:
        found = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)).hex().upper()
    except ValueError:
        return None
    return (found[:32], found[32:]) if len(found) == 96 else None
