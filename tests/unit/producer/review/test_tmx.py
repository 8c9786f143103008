"""Tests of a review as a translation memory."""

from __future__ import annotations

from pathlib import Path

from dragoman_producer.operations.tmx import TmxUnit, read_tmx
from dragoman_producer.review.page import Review, ReviewRow
from dragoman_producer.review.rows import StoredText
from dragoman_producer.review.writing import write_tmx

REVIEW = Review("run-1", "de", "en", "")


def stored(source: str, target: str | None, context: str | None = None) -> StoredText:
    return StoredText(1, 1, 1, context, ReviewRow("a.md", 0, "line 1", source, target, "ok"))


def written(path: Path, *texts: StoredText) -> tuple[list[TmxUnit], int]:
    with path.open("w", encoding="utf-8") as file:
        writer = write_tmx(REVIEW, texts, lambda line: print(line, file=file))
    return list(read_tmx(path)), writer.left_out


def test_texts_with_tags_come_back_as_they_are(tmp_path: Path) -> None:
    source, target = "<g1>Save<x2/></g1> & <b>go</b>", "<b>los</b> & <g1><x2/>Sichern</g1>\r"
    [unit], left_out = written(tmp_path / "a.tmx", stored(source, target))
    assert unit.texts == {"en": source, "de": target.strip()}
    assert (unit.source_lang, left_out) == ("en", 0)
    made = (tmp_path / "a.tmx").read_text()
    assert '<bpt i="1" x="1">&lt;g1&gt;</bpt>Save<ph x="2">&lt;x2/&gt;</ph>' in made


def test_tags_that_do_not_nest_are_text(tmp_path: Path) -> None:
    [unit], _ = written(tmp_path / "a.tmx", stored("</g1><g1>", "</g1>"))
    assert unit.texts == {"en": "</g1><g1>", "de": "</g1>"}


def test_a_text_is_in_the_file_once_per_context(tmp_path: Path) -> None:
    texts = [stored("Open", "Offen"), stored(" Open ", "Offen"), stored("Open", "Öffnen", "verb")]
    units, _ = written(tmp_path / "a.tmx", *texts)
    assert [unit.texts["de"] for unit in units] == ["Offen", "Öffnen"]
    assert "<note>verb</note>" in (tmp_path / "a.tmx").read_text()


def test_texts_without_a_translation_are_absent_and_others_are_counted(tmp_path: Path) -> None:
    units, left_out = written(tmp_path / "a.tmx", stored("One", None), stored("T\x01wo", "Zwei"))
    assert (units, left_out) == ([], 1)
