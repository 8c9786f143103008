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


@pytest.mark.parametrize("bad", [None, "viele", "\ud800 21", "21<x9/>"])
def test_forms_whose_message_lacks_another_form_are_told_apart_from_bad_ones(
    bad: str | None,
) -> None:
    codec = registry.codec("po")
    data = b'msgid "a hat"\nmsgid_plural "%d hats"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    polish = Options("pl", "en")
    found = codec.extract(data, polish)
    spliced = put_back(codec, data, found, ["kapelusz", "22 kapelusze", bad], polish)
    assert (spliced.data, spliced.incomplete) == (data, [0, 1])
    assert not {0, 1} & {*spliced.changed, *spliced.lost, *spliced.tags}


def test_a_document_is_not_lost_to_very_many_bad_answers() -> None:
    strings = "".join(
        f'<string name="a{number}">Hello {number} x</string>' for number in range(300)
    )
    codec, data = registry.codec("android"), f"<resources>{strings}</resources>".encode()
    found = codec.extract(data, GERMAN)
    bad = range(0, 300, 4)
    answers = [("x <b> y" if number in bad else f"Hallo {number} x") for number in range(300)]
    spliced = put_back(codec, data, found, answers, GERMAN)
    assert set(spliced.changed) >= set(bad)
    assert spliced.data.count(b"Hallo") == 300 - len(spliced.changed)


@pytest.mark.parametrize("format_name", ["po", "yaml", "csv", "jsonl", "srt", "vtt", "markdown"])
def test_half_a_surrogate_leaves_out_its_own_answer_alone(format_name: str) -> None:
    sources = {
        "po": b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        b'msgid "One here"\nmsgstr ""\n\nmsgid "Two here"\nmsgstr ""\n',
        "yaml": b"a: One here\nb: Two here\n",
        "csv": b"text,n\nOne here,1\nTwo here,2\n",
        "jsonl": b'{"a": "One here"}\n{"a": "Two here"}\n',
        "srt": b"1\n00:00:01,000 --> 00:00:02,000\nOne here.\n\n"
        b"2\n00:00:03,000 --> 00:00:04,000\nTwo here.\n",
        "vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\nOne here.\n\n"
        b"00:03.000 --> 00:04.000\nTwo here.\n",
        "markdown": b"One here\n\nTwo here\n",
    }
    codec, data = registry.codec(format_name), sources[format_name]
    found = codec.extract(data, GERMAN)
    spliced = put_back(codec, data, found, ["Eins \ud800 da", "Zwei da."], GERMAN)
    assert spliced.changed == [0]
    assert b"Zwei da" in spliced.data
