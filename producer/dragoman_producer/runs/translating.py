"""A run over documents: read, plan, translate, write, report."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dragoman_producer.errors import DragomanError
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.manifest.files import FileRows
from dragoman_producer.manifest.jobs import JobRows
from dragoman_producer.manifest.runs import RunRows, seconds_for, target_langs
from dragoman_producer.manifest.spent import count_rows, spent_in
from dragoman_producer.operations.outage import PATIENCE_S
from dragoman_producer.operations.workers import outlasting
from dragoman_producer.runs.batching import JOB_SEGMENTS, Glossary
from dragoman_producer.runs.budget import Spent, costs, rate_of, tokens_for
from dragoman_producer.runs.chosen import ReadDocument, in_no_document
from dragoman_producer.runs.events import Event, Finished, Noted, Planned
from dragoman_producer.runs.extracting import Children
from dragoman_producer.runs.links import LinkCheck, Links, PagePairs
from dragoman_producer.runs.outputs import Outputs
from dragoman_producer.runs.paths import loaded, shown
from dragoman_producer.runs.planning import Need, PlannedJob, RunPlanner, Target
from dragoman_producer.runs.reading import FileReader
from dragoman_producer.runs.report import RunReport
from dragoman_producer.runs.request import MissingGlossary, NothingNamed, RunRequest, Stop
from dragoman_producer.runs.running import Client, Remove, Runner
from dragoman_producer.runs.selecting import MANIFEST, REPORT, STATE_FOLDER, FoundFile, Selection
from dragoman_producer.runs.stored_terms import StoredTerms
from dragoman_producer.runs.writing import DocumentWriter
from dragoman_producer.runs.writing_along import WritesAlong

_LEAST_ESTIMATED = 1_000
"""Segments of a run for which Redis is asked for the rate of live workers."""


async def run_documents(
    client: Client,
    request: RunRequest,
    *,
    stop: Stop | None = None,
    patience_s: float = PATIENCE_S,
    seconds_per_file: int | None = None,
    remove: Remove | None = None,
    children: Children | None = None,
) -> AsyncGenerator[Event]:
    """Translate documents, and yield what happens; the last event is Finished.

    `remove` takes the ids of jobs whose results are stored, to remove them elsewhere. `children`
    are those of several runs, and stay open.
    Closing the iterator cancels the run; what is stored stays. Raises MissingGlossary,
    NothingNamed, MissingParser, FolderBusy, NoFolder, NothingThere, NoSpace and OSError before
    anything was translated.
    """
    glossary = await _glossary(client, request)
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    manifest = Manifest.open(request.out / STATE_FOLDER / MANIFEST)
    own = Children(**({"seconds": seconds_per_file} if seconds_per_file else {}))
    children = children or own
    run = _Run(
        client, request, manifest, children, glossary,
        emit=events.put_nowait, stop=stop or Stop(), patience_s=patience_s, remove=remove,
    )  # fmt: skip
    working = asyncio.create_task(run.work(), name="dragoman-documents")
    working.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        _raise_first(working)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await own.close()
        manifest.close()


async def _glossary(client: Client, request: RunRequest) -> Glossary:
    """Return the terms of the request, and of its stored glossary. Raises MissingGlossary."""
    terms, name = request.translation.glossary, request.translation.glossary_id
    if name is None:
        return Glossary(terms, keep=request.translation.keep)
    stored = await client.glossary_terms(name)
    if stored is None:
        raise MissingGlossary(
            f"glossary {name}: there is no such file, and no glossary of this name is stored; "
            "`dragoman glossary list` shows the names, `dragoman glossary add` stores one"
        )
    return Glossary(terms, StoredTerms(stored), request.translation.keep)


def _raise_first(task: asyncio.Task[None]) -> None:
    """Raise the error of a task; of a group of errors the first."""
    error = task.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is not None:
        raise error


class _Run:
    def __init__(
        self,
        client: Client,
        request: RunRequest,
        manifest: Manifest,
        children: Children,
        glossary: Glossary,
        *,
        emit: Callable[[Event], None],
        stop: Stop,
        patience_s: float,
        remove: Remove | None,
    ) -> None:
        self._client = client
        self._request = request
        self._manifest = manifest
        self._emit = emit
        self._stop = stop
        self._id = secrets.token_hex(4)
        Outputs(request, manifest).recover(request.out / REPORT)
        self._files = FileRows(manifest, self._id)
        self._stored_jobs = JobRows(manifest, self._id)
        self._selection = Selection(
            request, target_langs(manifest), Outputs(request, manifest).wrote
        )
        self._reader = FileReader(
            request, manifest, children, glossary, self._id, self._emit, stop.asked.is_set
        )
        self._planner = RunPlanner(request, manifest, glossary, self._id)
        self._writer = DocumentWriter(request, manifest, children, self._id, self._emit)
        self._report = RunReport(request, manifest, self._id)
        self._at_once = children.count
        self._children = children
        self._links = Links()
        self._translated = False
        self._not_cancelled: str | None = None
        self._runner = Runner(
            client, manifest, self._planner, self._id, self._emit,
            in_flight=request.in_flight, patience_s=patience_s, remove=remove,
        )  # fmt: skip

    async def work(self) -> None:
        """Do the run; an outage or a full disk ends it with what is done by then."""
        if (aside := self._manifest.replaced) is not None:
            name = f"it is kept as {aside.name}"
            self._emit(Noted(f"the manifest could not be read, so a new one was started; {name}"))
        await self._reader.read_all(self._selection)
        self._check_names()
        planned = await self._planned()
        if self._request.dry_run:
            self._emit(Finished(0, None, {**self._totals(), "planned": asdict(planned)}))
            return
        along = {
            target.number: WritesAlong(self._writer, target, self._writer.files(target))
            for target in self._planner.targets
        }
        following = asyncio.create_task(self._follow(along), name="dragoman-follow")
        stopping = asyncio.create_task(self._stop_runner(), name="dragoman-stop")
        began = time.monotonic()
        self._report.record(0, 0.0)
        try:
            await self._translate()
        finally:
            self._translated = True
            self._runner.stored.set()
            await asyncio.gather(following)
            stopping.cancel()
        await self._write_rest(along.values())
        await self._repeat_changed()
        await self._cancel_if_asked()
        self._copy_others()
        await self._check_links()
        self._finish(time.monotonic() - began)

    def _check_names(self) -> None:
        """Refuse names that no document has: a typing error would leave all in its source."""
        reading = self._request.reading
        given = reading.columns or reading.fields or reading.keys or reading.ids
        if not given or self._stop.asked.is_set():
            return
        found = (
            ReadDocument(
                shown(path), name, segments, refused, json.loads(chosen) if chosen else None
            )
            for path, name, segments, refused, chosen in self._files.read()
        )
        if (why := in_no_document(found, reading)) is not None:
            raise NothingNamed(why)

    async def _translate(self) -> None:
        """Submit what is missing; then, once more and singly, what may succeed now."""
        if self._stop.asked.is_set():
            return
        await self._runner.run(self._jobs())
        if self._runner.stopping.is_set():
            return
        again = sum(self._planner.plan_again(target) for target in self._planner.targets)
        if again:
            await self._runner.run(self._jobs())

    async def _write_rest(self, along: Iterable[WritesAlong]) -> None:
        for each in along:
            await each.write_rest(at_once=self._at_once)

    async def _repeat_changed(self) -> None:
        """Read and translate files anew, once, that changed while they were translated."""
        self._writer.repeats = False
        changed = self._writer.changed
        if not changed:
            return
        await self._reader.read_again(
            FoundFile(each.source, each.path, each.format, each.site) for each in changed.values()
        )
        for target in self._planner.targets:
            self._planner.plan(target)
        if not self._runner.stopping.is_set():
            await self._translate()
        for target in self._planner.targets:
            again = [
                file
                for file in self._writer.files(target)
                if self._writer.document(file, target).path in changed
            ]
            await WritesAlong(self._writer, target, again).write_rest(at_once=self._at_once)

    def _jobs(self) -> Iterator[PlannedJob]:
        for target in self._planner.targets:
            yield from self._planner.jobs(target)

    async def _planned(self) -> Planned:
        """Plan the jobs of all targets; return and emit what there is to do, and what it costs."""
        planned, needs = self._plan()
        if self._request.dry_run:
            rows, budget = count_rows(self._manifest, self._id), await self._budget(planned, needs)
            planned = replace(planned, rows=rows, budget=budget, seconds=budget["seconds"])
        self._emit(planned)
        if not self._request.dry_run:
            await self._warn(planned)
        return planned

    async def _warn(self, planned: Planned) -> None:
        """Warn if results of a run that is stopped may be gone before it is over."""
        seconds, whose = seconds_for(self._manifest, planned.missing), "earlier runs"
        if seconds is None and planned.missing >= _LEAST_ESTIMATED:
            rate = sum(each.jobs_per_s for each in await self._client.workers())
            seconds, whose = planned.missing / JOB_SEGMENTS / rate if rate else None, "live workers"
        if seconds is not None and (told := outlasting(seconds, whose)):
            self._emit(Noted(f"{told}: if you stop the run, resume it within that time"))

    async def _budget(self, planned: Planned, needs: list[Need]) -> dict[str, Any]:
        """Return what the missing segments cost, as far as anything tells."""
        live, request = await self._client.workers(), self._request
        tokens = []
        for target, need in zip(self._planner.targets, needs, strict=True):
            spent = spent_in(self._manifest, target.lang)
            before = None if spent is None else Spent(*spent)
            source = request.translation.source_lang
            tokens.append(tokens_for(need.characters, need.missing, source, target.lang, before))
        earlier = seconds_for(self._manifest, 1)
        announced = sum(each.jobs_per_s for each in live)
        rate = rate_of(request.rate, 1 / earlier if earlier else None, announced, len(live))
        return costs(planned.missing, tokens, rate, max(1, len(live)), request.price)

    def _plan(self) -> tuple[Planned, list[Need]]:
        """Plan the jobs of all targets; return what there is to do."""
        needs: list[Need] = []
        documents = sum(len(self._writer.files(target)) for target in self._planner.targets)
        for target in self._planner.targets:
            needs.append(self._need(target))
            if not self._request.dry_run:
                self._planner.plan(target)
        missing = sum(need.missing for need in needs)
        planned = Planned(
            documents,
            sum(need.segments for need in needs),
            sum(need.unique for need in needs),
            missing,
            sum(need.characters for need in needs),
            None,
            self._selection.sites(),
        )
        return planned, needs

    def _need(self, target: Target) -> Need:
        """Return what a target needs, without the documents that collide with other files.

        A refresh forgets translations, so that these are looked for before it.
        """
        is_anew = self._request.translation.memory == "refresh"
        if is_anew and not self._request.dry_run:
            self._writer.refuse_collisions(target)
        need = self._planner.need(target)
        looked = is_anew or self._request.dry_run or not need.missing
        if not looked and self._writer.refuse_collisions(target):
            return self._planner.need(target)
        return need

    async def _follow(self, along: dict[int, WritesAlong]) -> None:
        """Write documents while others are translated."""
        while not self._translated:
            self._runner.stored.clear()
            for each in along.values():
                await each.write_settled()
            if not self._translated:
                await self._runner.stored.wait()

    async def _stop_runner(self) -> None:
        await self._stop.asked.wait()
        self._runner.stop()

    async def _cancel_if_asked(self) -> None:
        """Cancel the jobs for the targets of this run that have no result."""
        if not (self._request.cancel and self._stop.asked.is_set()):
            return
        for target in self._planner.targets:
            for document in self._stored_jobs.open_documents(target.number):
                try:
                    await self._client.cancel(document_id=document)
                except DragomanError as error:
                    self._not_cancelled = str(error)
                    return
                self._stored_jobs.end_document(document)

    async def _check_links(self) -> None:
        """Follow the links to headings of all outputs of this run."""
        if self._stop.asked.is_set():
            return
        pairs = PagePairs(self._request)
        paths = [loaded(path) for path in self._files.linked()]
        stored = RunRows(self._manifest, self._id)
        for target in self._planner.targets:
            made = (
                pairs.of(
                    FoundFile(Path(loaded(source)), loaded(path), form, site),
                    Path(loaded(output)),
                    target.lang,
                )
                for path, source, form, site, output in stored.linked(target.number)
            )
            found = [each for each in made if each is not None]
            self._links.add(await LinkCheck(self._children, found, paths).check())

    def _copy_others(self) -> None:
        if not self._request.copy_others:
            return
        for path, source in self._files.unread():
            for target in self._planner.targets:
                self._writer.copy(Path(loaded(source)), loaded(path), target.lang)

    def _totals(self) -> dict[str, Any]:
        return self._report.totals(
            self._planner.targets,
            self._runner.tokens,
            hidden=self._selection.hidden,
            other_outputs=self._selection.other_outputs,
            sites=self._selection.sites(),
            links=self._links,
        )

    def _finish(self, seconds: float) -> None:
        totals = self._totals()
        failure = self._runner.failure
        if failure is not None:
            totals["stopped"] = str(failure)
        if self._not_cancelled is not None:
            totals["not_cancelled"] = self._not_cancelled
        if self._manifest.replaced is not None:
            totals["manifest_moved_to"] = self._manifest.replaced.name
        status = self._report.exit_status()
        if self._request.links_fail and self._links.new:
            status = status or 3
        if self._stop.asked.is_set():
            status = 3
        elif not self._runner.stopping.is_set():
            self._planner.refreshed()
        path = self._report.write(totals)
        self._report.record(self._runner.segments, seconds)
        self._emit(Finished(status, path, totals))
