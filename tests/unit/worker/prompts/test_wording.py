"""Tests of a profile's own words in its prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_worker.prompts.base import PromptInput, wording
from dragoman_worker.prompts.profile_file import read_profile
from dragoman_worker.prompts.table import PROFILES, get_profile


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("milmmt", ("Translate this from English to German:",)),
        ("gemmax2", ("Translate this from English to German:",)),
        ("lmt-60", ("Translate the following text from English into German:",)),
        ("demo", ()),
        ("translategemma", ()),
    ],
)
def test_the_frame_around_a_text_is_its_wording(name: str, expected: tuple[str, ...]) -> None:
    assert wording(get_profile(name), "de", "en") == expected


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_wording_stands_in_every_plain_prompt_and_without_the_text(name: str) -> None:
    profile = get_profile(name)
    prompt = profile.render(PromptInput("Good morning!", "de", "en")).prompt
    shown = prompt.completion + "\n".join(str(message.content) for message in prompt.messages)
    for line in wording(profile, "de", "en"):
        assert line in shown
        assert "Good" not in line


def test_the_wording_of_an_own_profile_is_that_of_its_template(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text("name='mine'\nuser='Please say in {{ target }}: {{ text }}'", encoding="utf-8")
    assert wording(read_profile(path), "de") == ("Please say in German:",)


def test_languages_that_a_profile_does_not_know_have_no_wording() -> None:
    assert wording(get_profile("milmmt"), "tlh", "en") == ()
    assert wording(get_profile("milmmt"), "de") == ()
