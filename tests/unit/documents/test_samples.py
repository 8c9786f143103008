"""Sample files of every data format: nothing changes unasked, and marked texts read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dragoman_documents.plurals.rules import settled
from dragoman_documents.recognition import format_of
from dragoman_documents.registry import codec
from support.documents.laws import GERMAN, assert_identity, assert_read_back, tagged

SAMPLES = Path(__file__).parents[2] / "data" / "documents"
FILES = sorted(path for path in SAMPLES.rglob("*") if path.is_file())
NAMES = [path.relative_to(SAMPLES).as_posix() for path in FILES]


def format_name(path: Path) -> str:
    """Return the format of a sample: of its folder, or of its name."""
    return "chrome" if path.parent.name == "chrome" else format_of(path) or ""


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
