"""Tests for how the gates are measured: public sets, planted errors, held-out wordings."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_QUALITY = Path(__file__).parents[3] / "benchmarks" / "quality"
_ENGLISH = "Harper waited {} hours in Berlin, and 3 of 40,000 readers were not glad."
_GERMAN = "Harper wartete {} Stunden in Berlin, und 3 von 40,000 Lesern waren nicht froh."


@pytest.fixture(scope="module", name="quality")
def _quality() -> Iterator[Any]:
    """Yield a function that imports a script of the folder by its name."""
    before = set(sys.modules)
    sys.path.insert(0, str(_QUALITY))
    yield importlib.import_module
    sys.path.remove(str(_QUALITY))
    for name in set(sys.modules) - before:
        if str(_QUALITY) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("zho-TW", "zh-Hant"),
        ("zho_Hans", "zh-Hans"),
        ("pt_BR", "pt-BR"),
        ("por", "pt-PT"),
        ("srp-Cyrl", "sr-Cyrl"),
        ("sr@latin", "sr-Latn"),
        ("arb_Arab", "ar"),
        ("min_Arab", "min-Arab"),
        ("tr_TR", "tr"),
        ("es_MX", "es-MX"),
        ("fas", "fa"),
    ],
)
def test_codes_of_public_sets_become_the_tags_that_a_job_gives(
    quality: Any, code: str, tag: str
) -> None:
    assert quality("public_sets").tag_of(code) == tag


def test_a_table_of_pairs_is_read_as_it_was_written(quality: Any, tmp_path: Path) -> None:
    sets, pair = quality("public_sets"), quality("pairs").Pair
    written = pair("own", "one\ttab\nand \\n", "zwei\n\nZeilen \\\\", "en", "de")
    place = tmp_path / "own.tsv"
    place.write_text(sets.tsv_line(written))
    assert list(sets.tsv(place)) == [written]


def test_a_kind_plants_the_same_errors_at_every_run(quality: Any) -> None:
    pair, planting = quality("pairs").Pair, quality("planting")
    pairs = [
        pair("own", _ENGLISH.format(number), _GERMAN.format(number), "en", "de")
        for number in range(100, 160)
    ]
    planted: dict[str, list[str]] = {}
    for _ in range(2):
        material = planting.Material(pairs, random.Random(1))
        for kinds in quality("planted").GROUPS.values():
            for kind in kinds:
                group = next(iter(material.groups(kind.base, kind.size)), None)
                found = group and kind.plant(group, random.Random(kind.name), material)
                if found:
                    planted.setdefault(kind.name + str(kind.held_out), []).append(found.bad)
                    assert kind.right or found.bad != found.good.target
    assert len(planted) > 100
    assert all(first == second for first, second in planted.values())


def test_wordings_held_out_are_many_and_stand_in_no_other_table(quality: Any) -> None:
    chat = quality("planted_chat")
    shown, held_out = (
        chat.wordings(_QUALITY / name) for name in ("wordings.tsv", "held_out_wordings.tsv")
    )
    assert not {text for texts in shown.values() for text in texts} & {
        text for texts in held_out.values() for text in texts
    }
    for kind, least in (("refusal", 12), ("opening", 20), ("ending", 15)):
        languages = {tag: texts for (name, tag), texts in held_out.items() if name == kind}
        assert sum(map(len, languages.values())) >= least
        assert len(languages) >= 10
        assert len(languages.keys() - {tag for name, tag in shown if name == kind}) >= 2
