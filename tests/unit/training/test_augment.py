"""Unit tests of augmentation, which keeps both sides parallel."""

from __future__ import annotations

from random import Random

import pytest

from training.augment import augmented, code, from_template, link, number
from training.corpus import Example
from training.samples import OTHERS, joined
from training.templates import templates

PLAIN = Example("Tom saw 3 dogs.", "Tom sah 3 Hunde.", "en", "de")


def test_about_a_fifth_of_the_samples_is_changed() -> None:
    random = Random(1)
    changed = sum(augmented(PLAIN, random) != PLAIN for _ in range(2000))
    assert 300 < changed < 500


def test_a_placeholder_added_to_the_source_is_in_the_target() -> None:
    random = Random(2)
    changed = [augmented(PLAIN, random) for _ in range(3000)]
    with_gap = [one for one in changed if "{name}" in one.source]
    assert with_gap
    assert all(one.source.count("{name}") == one.target.count("{name}") for one in with_gap)


@pytest.mark.parametrize("language", OTHERS)
def test_templates_are_filled_alike_on_both_sides(language: str) -> None:
    random = Random(3)
    for _ in range(300):
        made = from_template(random, "en", language)
        for gap in ("{X}", "{C}", "{D}", "{T}", "{E}"):
            assert gap not in made.source
            assert gap not in made.target


def test_every_template_has_the_same_gaps_in_every_language() -> None:
    for row in templates():
        gaps = {
            language: sorted(g for g in "XCDTE" if f"{{{g}}}" in row[language]) for language in row
        }
        assert len({tuple(found) for found in gaps.values()}) == 1, row["en"]


def test_fillers_hold_no_white_space_at_their_ends() -> None:
    random = Random(4)
    for make in (link, code, number):
        assert all(text == text.strip() for text in (make(random) for _ in range(200)))


def test_joined_japanese_has_no_spaces_between_sentences() -> None:
    random = Random(0)
    parts = [Example("Yes.", "はい。", "en", "ja"), Example("No.", "いいえ。", "en", "ja")]
    seen = {(one.source, one.target) for one in (joined(parts, random) for _ in range(50))}
    assert ("Yes. No.", "はい。いいえ。") in seen
    assert ("Yes.\nNo.", "はい。\nいいえ。") in seen
