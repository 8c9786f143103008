"""Samples of every format: nothing changes unasked, and marked texts read back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman_documents.plurals.rules import settled
from dragoman_documents.recognition import format_of
from dragoman_documents.registry import codec, formats, is_streamed, ours
from support.documents.laws import GERMAN, assert_identity, assert_read_back, tagged

SAMPLES = Path(__file__).parents[2] / "data" / "documents"
FILES = sorted(path for path in SAMPLES.rglob("*") if path.is_file())
NAMES = [path.relative_to(SAMPLES).as_posix() for path in FILES]
BUILT = {
    **dict.fromkeys(("android", "qt", "resx", "ttml"), "catalogs/test_xml_resources.py"),
    "po": "catalogs/test_po.py",
    "stringsdict": "catalogs/test_stringsdict.py",
    "xcstrings": "catalogs/test_xcstrings.py",
    "xliff": "catalogs/test_xliff.py",
    "epub": "books/test_epub.py",
    **dict.fromkeys(("html", "xhtml"), "markup/test_html_codec.py"),
    **dict.fromkeys(("markdown", "mdx"), "markup/test_markdown.py"),
    "docx": "office/test_docx.py",
    **dict.fromkeys(("odp", "ods", "odt"), "office/test_odf.py"),
    "pptx": "office/test_pptx.py",
    "xlsx": "office/test_xlsx.py",
    **dict.fromkeys(("srt", "vtt"), "subtitles/test_subtitles.py"),
    "txt": "test_plain.py",
}
"""Formats whose samples are built by tests, and the module that holds them to the laws."""
CODECS = sorted(name for name in ours() if not is_streamed(name))
"""Parquet has none: `tests/unit/producer/runs/test_parquet.py` reads and writes it by pyarrow."""


def format_name(path: Path) -> str:
    """Return the format of a sample: of its folder, or of its name."""
    return "chrome" if path.parent.name == "chrome" else format_of(path) or ""


def test_every_format_has_a_sample_which_is_a_file_or_is_built_by_a_test() -> None:
    filed = {format_name(path) for path in FILES}
    assert filed | BUILT.keys() == set(CODECS)
    assert not filed & BUILT.keys()


@pytest.mark.parametrize("name", BUILT)
def test_a_built_sample_stays_and_its_translations_read_back(name: str) -> None:
    text = (Path(__file__).parent / BUILT[name]).read_text(encoding="utf-8")
    assert re.search(rf"\b{name}\b", text, re.IGNORECASE)
    assert "assert_identity(" in text
    assert "assert_read_back(" in text


@pytest.mark.parametrize("name", CODECS)
def test_a_codec_has_the_name_and_the_suffixes_of_its_row(name: str) -> None:
    assert (codec(name).name, codec(name).suffixes) == (name, formats()[name])


@pytest.mark.parametrize("path", FILES, ids=NAMES)
@pytest.mark.parametrize("language", ["de", "pl", "ja"])
def test_a_sample_stays_and_its_marked_texts_read_back(path: Path, language: str) -> None:
    data, options = path.read_bytes(), replace(GERMAN, target_lang=language)
    extraction = assert_identity(codec(format_name(path)), data, options)
    texts, _ = settled(extraction.segments, tagged(extraction, language))
    output = assert_read_back(codec(format_name(path)), data, texts, options)
    assert output.count(f"[{language}".encode()) >= len(extraction.segments) > 0


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_sample_comes_back_when_its_marks_are_taken_out(path: Path) -> None:
    data, own, options = path.read_bytes(), codec(format_name(path)), replace(GERMAN, in_place=True)
    source = [segment.text for segment in own.extract(data, options).segments]
    texts, _ = settled(own.extract(data, options).segments, [f"[de] {text}" for text in source])
    output = assert_read_back(own, data, texts, options)
    again = [each.text for each in own.extract(output, options).segments]
    assert [text.removeprefix("[de] ") for text in again] == source
