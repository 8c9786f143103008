"""A folder of documents that the demo translates: Markdown, messages and subtitles."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from dragoman_demo.samples import TARGETS
from dragoman_producer import TranslationClient, documents
from dragoman_producer.manifest.database import Manifest
from dragoman_producer.review.page import Verdict
from dragoman_producer.review.rows import StandingFolder
from dragoman_producer.review.writing import write_pages
from dragoman_producer.runs.events import DocumentEnded, Finished, Planned, Progressed
from dragoman_producer.runs.selecting import MANIFEST, STATE_FOLDER

HOLIDAY: Final = Path(__file__).with_name("holiday")


@dataclass(slots=True)
class FolderReport:
    """What became of the documents."""

    out: Path
    ended: list[DocumentEnded] = field(default_factory=list)
    totals: dict[str, Any] = field(default_factory=dict)
    pages: list[Path] = field(default_factory=list)
    """Pages that show the translations beside their sources."""

    @property
    def complete(self) -> bool:
        """Whether every document has all of its translations."""
        return all(each.status in {"done", "unchanged"} for each in self.ended)


async def translate_folder(
    out: Path, *, bootstrap: str, redis_url: str, on_progress: Callable[[int, int], None]
) -> FolderReport:
    """Translate the folder into all languages; call `on_progress` with segments done and all.

    Raises the client's errors where broker or Redis cannot be reached.
    """
    report = FolderReport(out)
    total = 0
    async with TranslationClient(bootstrap_servers=bootstrap, redis_url=redis_url) as client:
        settings = documents.Translation(source_lang="en", on_fail="best_effort")
        events = documents.translate(client, [HOLIDAY], to=TARGETS, out=out, translation=settings)
        async for event in events:
            match event:
                case Planned():
                    total = event.missing
                    on_progress(0, total)
                case Progressed():
                    on_progress(event.segments, total)
                case DocumentEnded():
                    report.ended.append(event)
                case Finished():
                    report.totals = dict(event.totals)
                case _:
                    pass
    report.pages = _pages(out)
    return report


def _pages(out: Path) -> list[Path]:
    with closing(Manifest.open(out / STATE_FOLDER / MANIFEST)) as manifest:
        standing = StandingFolder(manifest, out)
        verdicts: tuple[Verdict, ...] = get_args(Verdict)
        pages = (write_pages(standing, lang, verdicts, out) for lang in standing.langs)
        return [path for found in pages for path, _ in found]
