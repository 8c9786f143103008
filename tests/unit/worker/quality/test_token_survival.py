"""The survival of tokens is counted by style; the best is the one that is kept in place."""

from __future__ import annotations

import pytest

from dragoman_text.masks import BRACES, BRACKETS, STYLES, TAGS
from dragoman_text.spans import find_spans
from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.ports import Generation, GenerationRequest
from dragoman_worker.prompts.chat import CHAT
from dragoman_worker.prompts.demo import DEMO
from dragoman_worker.quality.token_survival import (
    MOST_LANGUAGES,
    SENTENCES,
    Survival,
    best,
    measure,
    target_languages,
)
from dragoman_worker.settings import EngineSettings

ANSWERS = len(SENTENCES) * MOST_LANGUAGES


class Careless(EchoEngine):
    """Drops the brackets and moves what is in braces to the front."""

    async def generate(self, request: GenerationRequest) -> Generation:
        generation = await super().generate(request)
        text = generation.text.replace("⟦", "").replace("⟧", "")
        if text.endswith("}}."):
            start = text.rindex("{{")
            text = text[start:-1] + text[:start]
        return generation._replace(text=text)


@pytest.fixture
def settings() -> EngineSettings:
    return EngineSettings.model_validate({"kind": "echo", "echo": {"mode": "identity"}})


def test_every_sentence_has_something_to_keep() -> None:
    assert all(find_spans(sentence) for sentence in SENTENCES)
    assert len(set(SENTENCES)) == len(SENTENCES)


async def test_an_engine_that_copies_keeps_every_token(settings: EngineSettings) -> None:
    engine = EchoEngine(settings)
    await engine.start()
    survivals = await measure(engine, CHAT)
    assert survivals == [Survival(style, ANSWERS, ANSWERS, ANSWERS) for style in (None, *STYLES)]
    await engine.close()


async def test_lost_and_moved_tokens_are_counted_by_style(settings: EngineSettings) -> None:
    engine = Careless(settings)
    await engine.start()
    by_style = {each.style: each for each in await measure(engine, DEMO)}
    assert by_style[TAGS].in_place == ANSWERS
    assert by_style[BRACKETS].survived == 0
    assert by_style[BRACES].survived == ANSWERS
    assert by_style[BRACES].in_place < ANSWERS
    assert best(by_style.values(), "braces").style is TAGS
    await engine.close()


def test_of_equally_good_styles_the_preferred_is_the_best() -> None:
    survivals = [Survival(style, 10, 9, 8) for style in (None, *STYLES)]
    assert best(survivals, "braces").style is BRACES
    assert best([Survival(None, 10, 10, 10), *survivals], "tags").style is TAGS


def test_the_languages_are_those_of_the_profile_without_the_source() -> None:
    assert target_languages(CHAT) == ["de", "fr", "ja", "es"]
    assert sorted(target_languages(DEMO)) == ["de", "es", "fr", "ja"]
