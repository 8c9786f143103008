"""A review as files: pages next to the outputs, and a translation memory in TMX 1.4."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from dragoman_producer.operations.memory_export import TmxWriter
from dragoman_producer.review.page import Review, Verdict, pages
from dragoman_producer.review.rows import StandingFolder, StoredText
from dragoman_producer.runs.outputs import Outputs
from dragoman_schemas.approved import ApprovedTranslation


def review_of(standing: StandingFolder, lang: str, out: Path) -> Review:
    """Return what the pages of a language have in common."""
    source = standing.request.translation.source_lang
    return Review(standing.id, lang, source, f"dragoman review {out} --apply FILE")


def write_pages(
    standing: StandingFolder, lang: str, verdicts: Collection[Verdict], out: Path
) -> Iterator[tuple[Path, int]]:
    """Write the pages of a language; yield the path of each and the number of texts of all."""
    total = standing.count(lang, verdicts)
    outputs = Outputs(standing.request, standing.manifest)
    for name, text in pages(review_of(standing, lang, out), standing.rows(lang, verdicts), total):
        path = out / name
        path.write_text(text, encoding="utf-8")
        outputs.remember(path)
        yield path, total


def write_tmx(
    review: Review, texts: Iterable[StoredText], write_line: Callable[[str], None]
) -> TmxWriter:
    """Write each translation once; return the writer, which counts those that are left out.

    Texts without a translation are not in the file.
    """
    writer = TmxWriter(write_line)
    seen: set[bytes] = set()
    for each in texts:
        source, target = each.row.source.strip(), (each.row.target or "").strip()
        if not source or not target:
            continue
        entry = ApprovedTranslation(
            source, target, review.target_lang, review.source_lang, each.context
        )
        if entry.field not in seen:
            seen.add(entry.field)
            writer.write_unit(entry)
    writer.finish()
    return writer
