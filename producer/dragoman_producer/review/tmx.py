"""The translations of a review as a translation memory, TMX 1.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dragoman_producer.operations.memory_export import TmxWriter
from dragoman_producer.review.page import Review
from dragoman_producer.review.rows import Stored
from dragoman_schemas.approved import ApprovedTranslation


def write(review: Review, texts: Iterable[Stored], write_line: Callable[[str], None]) -> TmxWriter:
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
