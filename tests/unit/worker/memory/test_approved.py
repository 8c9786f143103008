"""Whether an approved translation fits its item."""

from __future__ import annotations

from dragoman_worker.memory.approved import fits


def test_translation_fits_an_item_without_demands() -> None:
    assert fits("Speichern", "Save")


def test_longer_than_max_chars_does_not_fit() -> None:
    assert fits("Speichern", "Save", max_chars=9)
    assert not fits("Speichern", "Save", max_chars=8)


def test_literal_must_come_as_often_as_in_the_source() -> None:
    assert fits("%s von %s", "%s of %s", protect=["%s"])
    assert not fits("von %s", "%s of %s", protect=["%s"])
    assert not fits("%s %s %s", "%s of %s", protect=["%s"])
    assert fits("von", "of", protect=["%s"])
    assert fits(".*", ".*", protect=[".*"])
