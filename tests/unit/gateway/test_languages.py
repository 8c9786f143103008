"""Which languages are offered: what settings, workers, or neither say."""

from __future__ import annotations

import pytest

from dragoman_gateway.languages import OfferedLanguages, offered


def test_settings_count_before_workers() -> None:
    found = offered([(("fr",), True)], ["de", "en"], ["de"])
    assert found.tags == ("de", "en")
    assert found.formality == {"de"}


def test_workers_offer_all_that_one_of_them_knows() -> None:
    found = offered([(("de", "en"), False), (("en", "sw"), True)], None, None)
    assert found.tags == ("de", "en", "sw")
    assert found.formality == {"de"}  # the one of them that has a register


@pytest.mark.parametrize("announced", [[], [(None, False)]])
def test_the_usual_ones_are_offered_where_nobody_names_any(announced: list[object]) -> None:
    found = offered(announced, None, ["de"])  # type: ignore[arg-type]
    assert {"de", "en", "zh", "uk"} <= set(found.bases)
    assert found.takes_formality("de")


@pytest.mark.parametrize(
    ("code", "tag"),
    [("DE", "de"), ("de-AT", "de-AT"), ("zh_tw", "zh-TW"), ("iw", "he"), ("no", "nb"),
     ("XX", None), ("", None), ("en\x00", None), ("d" * 200, None), ("fr", None)],
)  # fmt: skip
def test_targets(code: str, tag: str | None) -> None:
    assert OfferedLanguages(("de", "zh", "he", "no")).target(code) == tag
