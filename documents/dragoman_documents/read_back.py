"""The check of every output: extracted again, it holds exactly what was put into it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    Options,
    Regrouping,
    Segment,
)
from dragoman_documents.encodings import expecting
from dragoman_documents.inline_codes import composed, fits, is_in_order, pieces, plain


class SkeletonDiffers(Exception):
    """An output whose markup is not that of its source, so that it must not be written."""


def differing(
    codec: Codec,
    output: bytes,
    extraction: Extraction,
    texts: Sequence[str | None],
    options: Options,
) -> list[int]:
    """Return the indices of the segments that do not read back as they were put in.

    Raises SkeletonDiffers if anything beside the segments has changed, or a segment is lost.
    """
    again = extracted_again(codec, output, extraction, options)
    return differing_in(codec, again, extraction, texts, options)


def differing_in(
    codec: Codec,
    again: Extraction,
    extraction: Extraction,
    texts: Sequence[str | None],
    options: Options,
) -> list[int]:
    """Return the indices of the segments of an output that are not as they were put in.

    `again` is of `extracted_again`. Raises SkeletonDiffers as `differing`.
    """
    if options.bilingual:
        return _differing_doubles(again, extraction, texts)
    if again.skeleton != extraction.skeleton:
        raise SkeletonDiffers("the output's markup differs from its source's")
    if len(again.segments) != len(extraction.segments):
        raise SkeletonDiffers(
            f"the output has {len(again.segments)} segments, its source {len(extraction.segments)}"
        )
    given = zip(again.segments, extraction.segments, texts, strict=True)
    pairs = enumerate(
        (_held(found, targets=targets), _wanted(source, text, targets=targets))
        for found, source, text in given
        for targets in (codec.has_targets or source.target is not None,)
    )
    return [index for index, (a, b) in pairs if a != b and _words(a) != _words(b)]


def extracted_again(
    codec: Codec, output: bytes, before: Extraction, options: Options
) -> Extraction:
    """Return the segments of an output; `before` is of its source. Raises SkeletonDiffers."""
    try:
        return _extracted(codec, output, before, options)
    except DocumentError as error:
        raise SkeletonDiffers(f"the output cannot be read: {error.detail}") from error


def missing_in(
    codec: Codec,
    again: Extraction,
    extraction: Extraction,
    texts: Sequence[str | None],
    options: Options,
) -> frozenset[int]:
    """Return the indices of the texts that no segment of an output holds, wherever it is."""
    targets = codec.has_targets and not options.bilingual
    there = {_spaced(_held(each, targets=targets)) for each in again.segments}
    return frozenset(
        index
        for index, (segment, text) in enumerate(zip(extraction.segments, texts, strict=True))
        if text is not None and _spaced(_wanted(segment, text, targets=targets)) not in there
    )


def _spaced(held: tuple[str, str | None]) -> tuple[str, ...]:
    return tuple(" ".join(each) for each in _words(held))


def _words(held: tuple[str, str | None]) -> list[list[str]]:
    """Return the texts without the amount of blanks: a place of one line holds no newlines."""
    return [(text or "").split() for text in held]


def _extracted(codec: Codec, output: bytes, before: Extraction, options: Options) -> Extraction:
    with expecting(before.encoding):
        if isinstance(codec, Regrouping):
            return codec.extract_like(output, options, before)
        return codec.extract(output, replace(options, bilingual=False))


def _held(segment: Segment, *, targets: bool) -> tuple[str, str | None]:
    return segment.text, segment.target if targets else None


def _wanted(segment: Segment, text: str | None, *, targets: bool) -> tuple[str, str | None]:
    """Return what a segment must hold; numbers of tags are those of the translation's own order."""
    if targets:
        return segment.text, segment.target if text is None else text
    return segment.text if text is None else renumbered(text, segment), None


def renumbered(text: str, segment: Segment) -> str:
    """Return a translation with its tags numbered in the order in which they occur in it.

    An extraction numbers tags by their order in the document, and a translation may change it.
    Raises ValueError if the tags do not fit.
    """
    if not segment.codes and "<" not in text:
        return text
    if fits(text, segment.codes) and is_in_order(text, segment.codes):
        return text
    return composed(pieces(text, segment.codes))[0]  # a text like one of our tags becomes a code


def _differing_doubles(
    again: Extraction, extraction: Extraction, texts: Sequence[str | None]
) -> list[int]:
    """Compare a bilingual output: each segment that can be doubled is followed by its translation.

    One that cannot be holds both; it must contain the translation.
    """
    held = deque(again.segments)
    pairs = enumerate(zip(extraction.segments, texts, strict=True), 1)
    found = [
        following - 1
        for following, (segment, text) in pairs
        if not _doubled(held, segment, text, extraction.segments[following : following + 1])
    ]
    if held:
        raise SkeletonDiffers(
            "the bilingual output has more segments than sources and translations"
        )
    return found


def _doubled(
    held: deque[Segment], segment: Segment, text: str | None, following: Sequence[Segment]
) -> bool:
    """Take a segment and its translation; one without letters may be no segment of the output."""
    if not held:
        raise SkeletonDiffers("the bilingual output lacks segments")
    first = held.popleft()
    if text is None:
        return first.text == segment.text
    wanted = renumbered(text, segment)
    if not segment.doubled:
        # Tags are numbered after those of the source; what holds other segments is not copied.
        return plain(wanted).strip() in plain(first.text)
    is_there = bool(held) and held[0].text.split() == wanted.split()
    if is_there or (held and held[0].text not in [each.text for each in following]):
        held.popleft()
    return is_there and first.text == segment.text


def usable(texts: Sequence[str | None], segments: Sequence[Segment]) -> list[str | None]:
    """Return the translations whose tags fit their segments; None for the others."""
    return [
        text if text is not None and fits(text, segment.codes) else None
        for text, segment in zip(texts, segments, strict=True)
    ]
