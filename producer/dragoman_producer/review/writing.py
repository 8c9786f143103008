"""Pages of a review as files beside the outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from dragoman_producer.review.page import Review, Verdict, pages
from dragoman_producer.review.rows import Standing
from dragoman_producer.runs.outputs import Outputs


def review_of(standing: Standing, lang: str, out: Path) -> Review:
    """Return what the pages of a language have in common."""
    source = standing.request.translation.source_lang
    return Review(standing.id, lang, source, f"dragoman review {out} --apply FILE")


def write_pages(
    standing: Standing, lang: str, verdicts: Collection[Verdict], out: Path
) -> Iterator[tuple[Path, int]]:
    """Write the pages of a language; yield the path of each and the number of texts of all."""
    total = standing.count(lang, verdicts)
    outputs = Outputs(standing.request, standing.manifest)
    for name, text in pages(review_of(standing, lang, out), standing.rows(lang, verdicts), total):
        path = out / name
        path.write_text(text, encoding="utf-8")
        outputs.remember(path)
        yield path, total
