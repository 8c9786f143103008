"""Terminal output of the demo: every wait, the translations, and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from dragoman_connections.terminal import json_line
from dragoman_demo.folder import FolderReport
from dragoman_demo.translating import DemoReport, SampleOutcome
from dragoman_producer.box.screen import BoxScreen

# Longer lines are hard to read.
_WIDEST: Final = 96


class Screen(BoxScreen):
    """Progress and errors on stderr, translations on stdout; plain lines without a terminal."""

    def __init__(self, out: Console | None = None, err: Console | None = None) -> None:
        super().__init__("dragoman-demo", out, err)

    @contextmanager
    def progress(self, total: int) -> Iterator[Progress]:
        """Show a bar of finished jobs; the caller advances its only task."""
        with Progress(
            SpinnerColumn(),
            TextColumn("Translating", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._err,
        ) as progress:
            progress.add_task("Translating", total=total)
            yield progress

    # --- results --------------------------------------------------------------------------------

    def translations(self, done: Sequence[SampleOutcome]) -> None:
        """Print each source text once, with its translations below it."""
        for part, of_part in groupby(done, key=lambda one: one.sample.part):
            self._out.print()
            self._out.print(Text(part, style="bold"))
            for source, of_source in groupby(of_part, key=_source):
                self._out.print(self._translations_of(source, list(of_source)))

    def summary(self, report: DemoReport) -> None:
        """Print the number of jobs, jobs per second, and failures by reason."""
        self._err.print()
        self._err.print(
            f"{report.completed} of {len(report.done)} jobs translated in {report.seconds:.1f} s "
            f"({len(report.done) / report.seconds:.1f} jobs/s)",
            highlight=False,
        )
        for reason, count in report.failures.items():
            self.error(f"{count} failed: {reason}")

    def json_lines(self, done: Sequence[SampleOutcome]) -> None:
        """Print one object per line, in the order of the samples."""
        for one in done:
            sample = one.sample
            members = {
                "job_id": sample.job.job_id,
                "source_lang": sample.source_lang,
                "target_lang": sample.target_lang,
                "source": sample.text,
                "status": one.status,
                "translation": one.text,
                "error": one.error,
                "total_ms": one.total_ms,
            }
            self.data(json_line(members))

    def documents(self, report: FolderReport, *, kept: bool) -> None:
        """Print what became of each document in each language, and where to look at it."""
        languages = list(dict.fromkeys(each.target_lang for each in report.ended))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for column in ("document", *languages):
            table.add_column(column, header_style="cyan", overflow="fold")
        for path in sorted({each.path for each in report.ended}):
            statuses = {e.target_lang: e.status for e in report.ended if e.path == path}
            table.add_row(path, *(_status(statuses.get(lang, "")) for lang in languages))
        self._out.print()
        self._out.print(Text("A folder of documents", style="bold"))
        self._out.print(Padding(table, (0, 0, 0, 2)))
        self._err.print()
        if kept:
            self.line(f"The documents: {report.out}/de/trip.md, ...; the report: report.json")
            self.line(f"Translations next to their sources, in a browser: {report.pages[0]}, ...")
        else:
            self.line("--out DIR keeps the documents, the report and a page to review them.")

    def document_lines(self, report: FolderReport) -> None:
        """Print one object per document and language."""
        for each in sorted(report.ended, key=lambda each: (each.target_lang, each.path)):
            members = {"document": each.path, "target_lang": each.target_lang}
            self.data(json_line({**members, "status": each.status, "reason": each.reason}))

    def _translations_of(self, source: tuple[str, str], done: Sequence[SampleOutcome]) -> Padding:
        table = Table(
            width=min(self._out.width - 2, _WIDEST),
            box=None,
            show_header=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column(no_wrap=True)
        # Folded, not cut with an ellipsis: Japanese has no spaces to break a line at.
        table.add_column(ratio=1, overflow="fold")
        table.add_column(style="dim", justify="right", no_wrap=True)
        table.add_row(*(Text(text, style="dim") for text in source))
        for one in done:
            table.add_row(Text(one.sample.target_lang, style="cyan"), _outcome(one), _took(one))
        return Padding(table, (0, 0, 0, 2))


def _status(status: str) -> Text:
    return Text(status, style="green" if status in {"done", "unchanged"} else "yellow")


def _source(one: SampleOutcome) -> tuple[str, str]:
    return one.sample.source_lang, one.sample.text


def _outcome(one: SampleOutcome) -> Text:
    return Text(one.text) if one.text is not None else Text(one.error or one.status, style="red")


def _took(one: SampleOutcome) -> str:
    return f"{one.total_ms / 1000:.2f} s" if one.total_ms is not None else ""
