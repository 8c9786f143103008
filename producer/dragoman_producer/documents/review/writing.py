"""Pages of a review as files beside the outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from dragoman_producer.documents.outputs import Outputs
from dragoman_producer.documents.planning import Target
from dragoman_producer.documents.review.page import Review, Verdict, pages
from dragoman_producer.documents.review.rows import LastRun


def review_of(last: LastRun, target: Target, out: Path) -> Review:
    """Return what the pages of a target have in common."""
    source = last.request.translation.source_lang
    return Review(last.id, target.lang, source, f"dragoman review {out} --apply FILE")


def write_pages(
    last: LastRun, target: Target, verdicts: Collection[Verdict], out: Path
) -> Iterator[tuple[Path, int]]:
    """Write the pages of a target; yield the path of each and the number of texts of all."""
    total = last.count(target, verdicts)
    outputs = Outputs(last.request, last.manifest)
    for name, text in pages(review_of(last, target, out), last.rows(target, verdicts), total):
        path = out / name
        path.write_text(text, encoding="utf-8")
        outputs.remember(path)
        yield path, total
