"""Tests of the check of outputs, with a format of one segment a line."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman_documents.codec import (
    DocumentError,
    Extraction,
    InlineCode,
    Options,
    Segment,
)
from dragoman_documents.read_back import SkeletonDiffers, differing, usable

GERMAN = Options("de")
BOTH = Options("de", bilingual=True)


class Lines:
    """Each line is a segment; a line that begins with # cannot be doubled."""

    name = "lines"
    suffixes = frozenset({".lines"})
    by_language = has_targets = False
    can_double = True

    def extract(self, data: bytes, options: Options) -> Extraction:
        if data.startswith(b"\0"):
            raise DocumentError("corrupt", "it is broken")
        lines = data.decode().split("\n")
        segments = (Segment(line, "", doubled=not line.startswith("#")) for line in lines)
        return Extraction(tuple(segments), str(data.count(b"!")))

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        raise NotImplementedError


def found(output: bytes, source: bytes, texts: Sequence[str | None], options: Options) -> list[int]:
    codec = Lines()
    return differing(codec, output, codec.extract(source, options), texts, options)


def test_what_reads_back_as_it_was_put_in_differs_nowhere() -> None:
    assert found(b"eins\ntwo", b"one\ntwo", ["eins", None], GERMAN) == []


def test_a_segment_that_reads_back_otherwise_is_named() -> None:
    assert found(b"eins\nzwo", b"one\ntwo", ["eins", "zwei"], GERMAN) == [1]


def test_the_amount_of_blanks_makes_no_difference() -> None:
    assert found(b"eins zwei ", b"one", ["eins  zwei"], GERMAN) == []


@pytest.mark.parametrize("output", [b"eins!", b"eins\nzwei", b"\0"])
def test_other_markup_other_numbers_of_segments_and_broken_outputs_are_refused(
    output: bytes,
) -> None:
    with pytest.raises(SkeletonDiffers):
        found(output, b"one", ["eins"], GERMAN)


def test_an_output_with_fewer_segments_than_its_source_is_refused() -> None:
    with pytest.raises(SkeletonDiffers, match="has 1 segments, its source 2"):
        found(b"eins", b"one\ntwo", ["eins", "zwei"], GERMAN)


def test_a_bilingual_output_has_each_source_and_its_translation() -> None:
    texts = ["eins", None, "# drei"]
    assert found(b"one\neins\ntwo\n# three # drei", b"one\ntwo\n# three", texts, BOTH) == []
    assert found(b"one\nanders\ntwo\n# three # drei", b"one\ntwo\n# three", texts, BOTH) == [0]


@pytest.mark.parametrize("output", [b"one\neins", b"one\neins\ntwo\nmore"])
def test_a_bilingual_output_of_another_length_is_refused(output: bytes) -> None:
    with pytest.raises(SkeletonDiffers):
        found(output, b"one\ntwo", ["eins", None], BOTH)


def test_a_translation_without_its_tags_is_not_usable() -> None:
    segment = Segment("<x1/> a", "", codes=(InlineCode("<br>"),))
    assert usable(["b", "b <x1/>", None], [segment] * 3) == [None, "b <x1/>", None]


@pytest.mark.parametrize("output", [b"one\ntwo\nzwei", b"one\nein\ntwo\nzwei"])
def test_a_double_that_is_lost_or_changed_leaves_the_next_one_alone(output: bytes) -> None:
    assert found(output, b"one\ntwo", ["eins", "zwei"], BOTH) == [0]
