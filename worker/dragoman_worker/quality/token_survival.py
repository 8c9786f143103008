"""Measurement of how often a model keeps each style of numbered tokens, for `check --tokens`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from dragoman_text.inline import compare
from dragoman_text.masks import STYLES, Masked, TokenStyle, mask, restore
from dragoman_text.spans import find_spans
from dragoman_worker.errors import JobError
from dragoman_worker.ports import Decoding, Engine, GenerationRequest
from dragoman_worker.prompts import names
from dragoman_worker.prompts.base import Profile, PromptInput

SOURCE_LANG: Final = "en"
_PREFERRED: Final = ("de", "fr", "ja", "es", "zh", "ru", "ar", "ko", "pt", "it", "cs", "pl")
MOST_LANGUAGES: Final = 4
MOST_AT_ONCE: Final = 64
"""Requests in the engine at the same time."""
_TOKENS_PER_SOURCE_TOKEN: Final = 4
_MORE_TOKENS: Final = 64

SENTENCES: Final = (
    "You have {count} new messages.",
    "Hello {name}, welcome back!",
    "The file %s could not be opened.",
    "%1$s invited you to join %2$s.",
    "Delete {count} files from {folder}?",
    "Your order ${order} has been shipped to {{city}}.",
    "Press <b>Save</b> to keep your changes.",
    'Read our <a href="/terms">terms of use</a> before you continue.',
    "The meeting starts at {time} and ends at {end}.",
    "Error %d: the connection to %s was lost.",
    "See https://example.org/help for more information.",
    "Write to support@example.org if you need help.",
    "Use the command `git status` to see what has changed.",
    "<g1>Warning:</g1> this cannot be undone<x2/>.",
    "Only {used} of {total} seats are taken.",
    "The <i>last</i> page has <b>{count}</b> pictures.",
    "{user} shared a picture with {friend} and {others} more people.",
    "Your password must have at least {minimum} characters.",
    "We sent a letter to {address}. Please wait for {days} days.",
    "Thank you for your help, {name}.",
)
"""Texts of user interfaces with one to four protected spans, written for this measurement."""


@dataclass(frozen=True, slots=True)
class Survival:
    """How many of the `answers` kept every token, once, and how many of these at their place.

    `style` is None for texts whose spans were not masked.
    """

    style: TokenStyle | None
    answers: int
    survived: int
    in_place: int

    @property
    def name(self) -> str:
        """Name of the style, or "none"."""
        return "none" if self.style is None else self.style.name


async def measure(
    engine: Engine, profile: Profile, styles: Sequence[TokenStyle] = STYLES
) -> list[Survival]:
    """Translate SENTENCES with each style, and as they are, and return the counts of each.

    The engine has started. Raises Halt, and UnsupportedLanguage without a language to measure in.
    """
    limit = asyncio.Semaphore(MOST_AT_ONCE)

    async def judged(text: str, language: str, style: TokenStyle | None) -> tuple[bool, bool]:
        async with limit:
            return await _judged(engine, profile, text, language, style)

    languages = target_languages(profile)
    survivals: list[Survival] = []
    for style in (None, *styles):
        verdicts = await asyncio.gather(
            *(judged(text, language, style) for text in SENTENCES for language in languages)
        )
        survived, in_place = (sum(column) for column in zip(*verdicts, strict=True))
        survivals.append(Survival(style, len(verdicts), survived, in_place))
    return survivals


def target_languages(profile: Profile) -> list[str]:
    """Return up to MOST_LANGUAGES languages that the profile translates English into."""
    known = profile.languages
    if known is None:
        return list(_PREFERRED[:MOST_LANGUAGES])
    usual = [tag for tag in _PREFERRED if names.listed(tag, known)]
    others = sorted(known - {*usual, SOURCE_LANG})
    return [*usual, *others][:MOST_LANGUAGES]


def best(survivals: Iterable[Survival], preferred: str) -> Survival:
    """Return the style whose tokens were most often kept in place; of equal ones the preferred."""

    def rank(survival: Survival) -> tuple[int, int, bool]:
        return survival.in_place, survival.survived, survival.name == preferred

    return max((each for each in survivals if each.style is not None), key=rank)


async def _judged(
    engine: Engine, profile: Profile, text: str, language: str, style: TokenStyle | None
) -> tuple[bool, bool]:
    """Return whether the answer kept every span, once, and whether each was in its place."""
    spans = find_spans(text)
    masked = mask(text, spans, style) if style is not None else None
    try:
        answer = await _answer(
            engine, profile, text if masked is None else masked.text, language, masked
        )
    except JobError:
        return False, False
    if masked is None:
        originals = [text[span.start : span.end] for span in spans]
        survived = all(answer.count(each) == text.count(each) for each in originals)
        return survived, survived and not compare(text, answer).crossed
    restored = restore(answer, masked)
    survived = not (restored.missing or restored.repeated or restored.unknown)
    crossed = compare(text, restored.text).crossed
    return survived, survived and not restored.moved_first and not crossed


async def _answer(
    engine: Engine, profile: Profile, text: str, language: str, masked: Masked | None
) -> str:
    segment = PromptInput(text, language, SOURCE_LANG, tokens=masked is not None)
    prompt = engine.encode(profile.render(segment).prompt)
    room = engine.limits.max_model_len - len(prompt)
    most = _TOKENS_PER_SOURCE_TOKEN * engine.count_tokens(text) + _MORE_TOKENS
    decoding = Decoding(max_tokens=max(1, min(room, most)), **asdict(profile.sampling))
    generation = await engine.generate(
        GenerationRequest("check", prompt, replace(decoding, seed=0), text, language, attempt=1)
    )
    return profile.clean(generation.text, text).strip()
