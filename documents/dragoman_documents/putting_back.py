"""Translations into a document, so that each of them reads back and the markup is intact."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import Codec, Extraction, Options
from dragoman_documents.read_back import (
    SkeletonDiffers,
    differing_in,
    extracted_again,
    missing_in,
    usable,
)

MOST_SPLICES: Final = 200
"""Splices in search of texts that change the markup; one among n costs about log2(n), or two if it
does not read back."""
_OF_MESSAGES: Final = frozenset({"message", "plural"})
"""Kinds of segments of which a message may have several, and be valid with all of them only."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Unwritable(Exception):
    """The document does not have the markup of its source even without a translation."""


@dataclass(slots=True)
class Spliced:
    """An output, and the segments that keep their source in it."""

    data: bytes
    tags: list[int]
    """Segments whose translation lacks a tag, or has one too many."""
    general: list[int]
    """Plural forms that hold the general form, because their number did not come back."""
    lost: list[int]
    """Plural forms whose number did not come back, and that no general form could replace."""
    incomplete: list[int]
    """Segments whose document lacks a text of the same message, without which it holds none."""
    changed: list[int]
    """Segments whose translation does not read back as it was put in."""
    again: Extraction
    """What is read of the output."""


def put_back(
    codec: Codec,
    data: bytes,
    extraction: Extraction,
    texts: Sequence[str | None],
    options: Options,
) -> Spliced:
    """Return the document with all translations that it can hold. Raises Unwritable.

    A translation that does not read back is left out, and one that changes the markup. If very many
    do, others that are still in doubt are left out with them: no document is lost to its answers.
    """
    fitting = usable(texts, extraction.segments)
    tags = _lost(texts, fitting)
    encodable = [text if text is None or _is_encodable(text) else None for text in fitting]
    forms, general = _settled(extraction, encodable)
    work = _Work(codec, data, extraction, options)
    output, kept = work.largest(forms)
    general = [index for index in general if kept[index] is not None]
    again = work.again
    incomplete = work.incomplete(forms, kept)
    left = set(_lost(forms, kept)).difference(incomplete)
    changed = sorted([*_lost(fitting, encodable), *left])
    lost = _lost(encodable, forms)
    return Spliced(output, tags, general, lost, incomplete, changed, again)


def _lost(before: Sequence[str | None], after: Sequence[str | None]) -> list[int]:
    pairs = enumerate(zip(before, after, strict=True))
    return [index for index, (a, b) in pairs if a is not None and b is None]


def _is_encodable(text: str) -> bool:
    """Return whether a text can be in a file at all: halves of a surrogate pair cannot."""
    return text.isascii() or not _SURROGATE.search(text)


def _settled(
    extraction: Extraction, texts: Sequence[str | None]
) -> tuple[list[str | None], list[int]]:
    if all(segment.plural is None for segment in extraction.segments):
        return list(texts), []
    from dragoman_documents.plurals.rules import settled  # noqa: PLC0415  needs Babel

    return settled(extraction.segments, texts)


class _Work:
    """Splices of one document until its output is right."""

    def __init__(self, codec: Codec, data: bytes, extraction: Extraction, options: Options) -> None:
        self._codec = codec
        self._data = data
        self._extraction = extraction
        self._options = options
        self._splices = 0
        self._readable = False
        """Whether the last output could be read."""
        self.again = extraction
        """What is read of the last output."""

    def largest(self, texts: Sequence[str | None]) -> tuple[bytes, list[str | None]]:
        """Return an output and the texts that are in it."""
        kept = list(texts)
        while True:
            try:
                output, bad = self._tried(kept)
            except SkeletonDiffers:
                kept = self._fitting(kept)
                output, bad = self._tried_or_unwritable(kept)
            if not bad:
                return output, kept
            gone = frozenset(bad if self._splices < 2 * MOST_SPLICES else range(len(kept)))
            kept = [None if index in gone else text for index, text in enumerate(kept)]

    def incomplete(self, texts: Sequence[str | None], kept: Sequence[str | None]) -> list[int]:
        """Return the forms and arms left out that the document holds if no text is missing."""
        segments = self._extraction.segments
        left = [index for index in _lost(texts, kept) if segments[index].kind in _OF_MESSAGES]
        if not left or None not in texts:
            return []
        pairs = zip(texts, segments, strict=True)
        whole = [segment.text if text is None else text for text, segment in pairs]
        try:
            _, bad = self._tried(whole)
        except SkeletonDiffers:
            return []
        return sorted(set(left).difference(bad))

    def _tried(self, texts: Sequence[str | None]) -> tuple[bytes, list[int]]:
        """Return the output and the indices of the texts that differ.

        Raises SkeletonDiffers, also if a translation changes a segment that has none.
        """
        self._splices += 1
        self._readable = False
        try:
            output = self._codec.splice(self._data, self._extraction, texts, self._options)
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise SkeletonDiffers(f"the codec fails: {type(error).__name__}") from error
        codec, options = self._codec, self._options
        self.again = extracted_again(codec, output, self._extraction, options)
        self._readable = True
        bad = differing_in(codec, self.again, self._extraction, texts, options)
        if any(texts[index] is None for index in bad):
            raise SkeletonDiffers("a segment that was not translated reads back otherwise")
        return output, bad

    def _tried_or_unwritable(self, texts: Sequence[str | None]) -> tuple[bytes, list[int]]:
        try:
            return self._tried(texts)
        except SkeletonDiffers as error:
            raise Unwritable(str(error)) from error

    def _fitting(self, texts: Sequence[str | None]) -> list[str | None]:
        """Return the texts without those that change the markup.

        Once the splices are spent, those that were not yet found to fit are left out too.
        """
        kept: list[str | None] = [None] * len(texts)
        self._tried_or_unwritable(kept)  # otherwise the source itself does not read back
        waiting = deque([[index for index, text in enumerate(texts) if text is not None]])
        while waiting and self._splices < MOST_SPLICES:
            some = waiting.popleft()
            tried = list(kept)
            for index in some:
                tried[index] = texts[index]
            if self._holds(tried):
                kept = tried
            elif len(some) > 1:
                waiting += self._parted(some, tried)
        return kept

    def _parted(self, some: list[int], tried: Sequence[str | None]) -> tuple[list[int], list[int]]:
        """Return indices of texts, of which some change the markup, in two parts.

        They are those that were read back and those that were not, else halves.
        """
        if self._readable:
            found = missing_in(self._codec, self.again, self._extraction, tried, self._options)
            lost = [index for index in some if index in found]
            if 0 < len(lost) < len(some):
                return [index for index in some if index not in found], lost
        half = len(some) // 2
        return some[:half], some[half:]

    def _holds(self, texts: Sequence[str | None]) -> bool:
        try:
            self._tried(texts)
        except SkeletonDiffers:
            return False
        return True
