"""Progress of `dragoman translate` on stderr, and its lines on stdout."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from dragoman_connections.terminal import counted
from dragoman_producer.cli.terminal import (
    LINE_EVERY_S,
    PARTIAL,
    duration,
    plain,
    print_json,
    print_line,
    print_note,
)
from dragoman_producer.runs.events import (
    DocumentEnded,
    Event,
    Extracted,
    Finished,
    Noted,
    Planned,
    Progressed,
    Waiting,
    Working,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_RATE_OVER_S: Final = 2.0
_LINES: Final = {
    "stopped": "stopped: {}; rerun the same command to resume",
    "not_cancelled": "submitted jobs keep running, because they could not be cancelled: {}",
}
"""What is said of members of the report."""
_SKIPPED: Final = {
    "unsupported_format": " in unsupported formats",
    "configuration": " that look like configuration; give one as PATH to translate it",
    "outside": ", links",
}
"""What is said of skipped files, by their reason."""
_COUNTS: Final = {
    "new": "new",
    "reused": "reused",
    "memory": "from the memory",
    "edited": "edited in a review",
    "warned": "with warnings",
    "source": "left in the source language",
}


class Display:
    """Shows events: one line that changes on a terminal, otherwise a line every ten seconds."""

    def __init__(self, *, as_json: bool, streamed: bool = False) -> None:
        """Prepare. With `streamed`, stdout is for the document and the report is temporary."""
        self._as_json = as_json
        self._streamed = streamed
        self._live: Live | None = None
        self._console: Console | None = None
        self._shown_at = time.monotonic()
        self.began = self._shown_at
        self._counts = dict.fromkeys(
            ("files", "found", "documents", "ended", "done", "tokens", "interrupted"), 0
        )
        self._skipped: Counter[str] = Counter()
        self._working: dict[tuple[str, str], Working] = {}
        self._planned: Planned | None = None
        self.totals: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.live import Live  # loaded only for a terminal

            from dragoman_connections.consoles import SafeConsole

            self._console = SafeConsole(stderr=True)
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def note(self, line: str) -> None:
        """Print one line for the user, above the line of progress."""
        if self._console is not None and self._live is not None:
            self._console.print(plain(line), markup=False, highlight=False, soft_wrap=True)
        else:
            print_note(plain(line))

    def show(self, event: Event, status: int) -> int:
        """Show an event; return the exit status as far as it is known."""
        match event:
            case Extracted():
                self._extract(event)
            case Planned():
                self._plan(event)
            case Progressed() | Working():
                self._progress(event)
            case Noted():
                self.note(event.what)
            case Waiting():
                self.note(f"waiting: {event.why}")
            case DocumentEnded():
                self._end(event)
            case Finished():
                self._finish(event)
                return event.exit_status
        self._refresh()
        return status

    def _progress(self, event: Progressed | Working) -> None:
        if isinstance(event, Working):
            self._working[event.path, event.target_lang] = event
        else:
            self._counts |= {"done": event.segments, "tokens": event.tokens}

    def _extract(self, event: Extracted) -> None:
        self._counts |= {"files": event.files, "found": event.segments}
        self._working.pop((event.path, ""), None)
        if event.skipped:
            self._skipped[event.reason or ""] += 1
        elif event.reason == "interrupted":
            self._counts["interrupted"] += 1
        elif event.reason is not None:
            self.note(f"{event.path}: not read: {event.detail} ({event.reason})")

    def _plan(self, event: Planned) -> None:
        self._planned = event
        self.began = time.monotonic()
        rows = f"{counted(event.rows, 'row')}, " if event.rows else ""
        self.note(
            f"{rows}"
            f"{counted(event.documents, 'document')}, {counted(event.segments, 'segment')},"
            f" {event.unique:,} unique, {event.unique - event.missing:,} already translated,"
            f" {counted(event.characters, 'character')} to translate"
        )
        if event.budget is not None:
            self.note(_budget(event.budget))
        for each in event.sites:
            config = f" ({each.config})" if each.config else ""
            files = f", {counted(each.files, 'file')}" if len(event.sites) > 1 else ""
            self.note(f"site: {each.site or 'none'}{config}, anchors: {each.anchors}{files}")

    def _end(self, event: DocumentEnded) -> None:
        self._working.pop((event.path, event.target_lang), None)
        if event.reason == "interrupted":
            self._counts["interrupted"] += 1  # one line for all: there may be thousands
        else:
            self._counts["ended"] += 1
            if (what := _told(event)) is not None:
                more = "" if self._streamed else "; see report.json"
                self.note(f"{event.path} [{event.target_lang}]: {what}{more}")
        if self._as_json:
            self._json_of(event)
        elif event.output is not None and event.is_new and event.status != "unchanged":
            self._line(str(event.output))

    def _line(self, line: str) -> None:
        if self._streamed:
            return
        if self._live is None or not sys.stdout.isatty():
            print_line(plain(line))

    def _json_of(self, event: DocumentEnded) -> None:
        print_json(
            {
                "path": event.path,
                "target_lang": event.target_lang,
                "status": event.status,
                "reason": event.reason,
                "detail": event.detail,
                "output": None if event.output is None else plain(event.output),
            }
        )

    def _finish(self, event: Finished) -> None:
        self.totals = dict(event.totals)
        for name, line in _LINES.items():
            if (why := event.totals.get(name)) is not None:
                self.note(line.format(why))
        if interrupted := self._counts["interrupted"]:
            are = "is" if interrupted == 1 else "are"
            what = f"{counted(interrupted, 'document')} {are} not finished"
            self.note(f"{what}; rerun the same command to resume")
        self._note_files(event)
        if (links := event.totals.get("links")) and (new := links["new"]):
            first = new[0]
            place = f"{first['path']}, line {first['line']}: {first['target']}"
            self.note(f"links: {len(new):,} work in the source and are dead here, first {place}")
        for lang, counts in event.totals["targets"].items():
            if event.report is not None:
                self.note(f"{lang}: " + _summary(counts))
        if event.report is not None and not self._streamed:
            self.note(f"report: {event.report}")

    def _note_files(self, event: Finished) -> None:
        if not self._counts["files"] and event.exit_status != PARTIAL:  # nor was it stopped
            hidden = int(event.totals.get("hidden", 0))
            what = "hidden file or folder was" if hidden == 1 else "hidden files or folders were"
            more = f"; {hidden:,} {what} not read" if hidden else ""
            self.note(
                "no files found: the folders are empty, or --include and --exclude leave none"
                + more
            )
        if others := int(event.totals.get("other_outputs", 0)):
            self.note(f"not read: {counted(others, 'output')} of runs into other folders")
        for reason, count in self._skipped.items():
            self.note(f"skipped: {counted(count, 'file')}{_SKIPPED.get(reason, '')}")

    def _refresh(self) -> None:
        now = time.monotonic()
        if self._live is not None:
            if now - self._shown_at >= 0.1:
                from rich.text import Text

                self._shown_at = now
                text = Text(self.line(now), no_wrap=True, overflow="ellipsis")
                self._live.update(text, refresh=True)
        elif now - self._shown_at >= LINE_EVERY_S:
            self._shown_at = now
            print_note(self.line(now))

    def line(self, now: float) -> str:
        """Return the line of progress, the most important first: a narrow terminal cuts its end."""
        counts = self._counts
        if self._planned is None:
            read = f"read {counted(counts['files'], 'file')}, {counted(counts['found'], 'segment')}"
            return ", ".join([read, *self._worked_on()])
        done, missing = counts["done"], self._planned.missing
        parts = [f"{done:,}/{counted(missing, 'segment')}"]
        seconds = now - self.began
        if done and done < missing and seconds >= _RATE_OVER_S:
            rate = done / seconds
            parts.append(f"{duration((missing - done) / rate)} left, {rate:,.0f}/s")
        parts.append(f"{counts['ended']:,}/{counted(self._planned.documents, 'document')}")
        parts += self._worked_on()
        parts.append(counted(counts["tokens"], "token"))
        return ", ".join(parts)

    def _worked_on(self) -> Iterator[str]:
        """Yield the document that is read or written for longest, and how many others are."""
        if self._working:
            first, *others = self._working.values()
            more = f" and {len(others):,} more" if others else ""
            yield _far(first) + more


def _far(event: Working) -> str:
    """Return how far a document is."""
    lang = f" [{event.target_lang}]" if event.target_lang else ""
    if not event.of:
        return f"{event.path}{lang} is being {event.done}"
    size = f"{event.bytes / 1e6:,.0f} of {event.of / 1e6:,.0f} MB"
    return f"{event.path}{lang}: {size} {event.done}"


def _budget(costs: Mapping[str, Any]) -> str:
    """Return what a dry run says of tokens, time and price."""
    tokens = (
        f"about {counted(costs['prompt_tokens'], 'token')} in and {costs['completion_tokens']:,}"
        f" out, ±{costs['error']:.0%} (by {costs['tokens_by']})"
    )
    if costs["seconds"] is None:
        return f"{tokens}; time: unknown until a run has finished; or give --rate"
    most = "at most " if costs["seconds_at_most"] else ""
    time = f"time: {most}{duration(costs['seconds'])} (by {costs['seconds_by']})"
    hours = f"{costs['gpu_hours']:,.2f} GPU-hours with {counted(costs['gpus'], 'GPU')}"
    price = "" if costs["price"] is None else f", price {costs['price']:,.2f}"
    return f"{tokens}; {time}, {hours}{price}"


def _summary(counts: dict[str, int]) -> str:
    written = f"{counts['written']:,} of {counted(counts['documents'], 'document')}"
    found = (f"{counts[name]:,} {words}" for name, words in _COUNTS.items() if counts[name])
    return ", ".join([written, *found])


def _told(event: DocumentEnded) -> str | None:
    """Return what is to be said of a document; None if nothing is."""
    if event.status == "partial":
        return event.detail
    if event.status != "failed":
        return None
    what = "kept the output of an earlier run" if event.reason == "poorer" else "not written"
    return f"{what}: {event.detail} ({event.reason})"
