"""Tests of translations that spoil segments beside their own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman_documents import registry
from dragoman_documents.codec import Extraction, Options, Segment
from dragoman_documents.putting_back import put_back

BILINGUAL = Options("de", "en", bilingual=True)
GERMAN = Options("de", "en")


@pytest.mark.parametrize("gone", ["", "...", "1.5", "\u200b"])
@pytest.mark.parametrize(
    ("format_name", "source", "expected"),
    [
        ("markdown", b"One.\n\nTwo.\n\nThree.\n", b"One.\n\nTwo.\n\nThree.\n\nDrei.\n"),
        (
            "html",
            b"<p>One.</p><p>Two.</p><p>Three.</p>",
            b'<p>One.</p><p>Two.</p><p>Three.</p><p lang="de">Drei.</p>',
        ),
    ],
)
def test_a_bilingual_document_loses_a_translation_without_letters_alone(
    format_name: str, source: bytes, expected: bytes, gone: str
) -> None:
    codec = registry.codec(format_name)
    extraction = codec.extract(source, BILINGUAL)
    spliced = put_back(codec, source, extraction, [gone, None, "Drei."], BILINGUAL)
    assert (spliced.changed, spliced.data) == ([0], expected)


class Comments:
    """Each line is a segment; a translation that ends with `+` swallows a letter of the next."""

    name = "comments"
    suffixes = frozenset({".comments"})
    by_language = has_targets = can_double = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        return Extraction(tuple(Segment(line, "") for line in data.decode().split("\n")), "")

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        pairs = zip(texts, data.decode().split("\n"), strict=True)
        lines = [line if text is None else text for text, line in pairs]
        for number, line in enumerate(lines[:-1]):
            if line.endswith("+"):
                lines[number + 1] = lines[number + 1][1:]
        return "\n".join(lines).encode()


def test_a_translation_that_spoils_an_untranslated_segment_is_left_out() -> None:
    source = b"one\ntwo\nthree"
    codec = Comments()
    extraction = codec.extract(source, GERMAN)
    spliced = put_back(codec, source, extraction, ["eins+", None, "drei"], GERMAN)
    assert (spliced.changed, spliced.data) == ([0], b"one\ntwo\ndrei")
