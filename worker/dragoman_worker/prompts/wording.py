"""What a profile itself writes into its prompts: an answer that repeats it is no translation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman_worker.errors import UnsupportedLanguage
from dragoman_worker.ports import Prompt
from dragoman_worker.prompts.base import Profile, Segment

_TEXT: Final = "\ue000"
"""Stands for the user's text: a private-use character, which no profile changes."""
_LEAST_LETTERS: Final = 12
"""A label such as "German:" is too short to tell a repeated prompt from a text."""


def wording(profile: Profile, target_lang: str, source_lang: str | None = None) -> tuple[str, ...]:
    """Return the lines of the profile's plain prompt for these languages, without the text.

    ``Translate this from English to German:`` of `milmmt`, the template of an own profile. Empty
    where the model's chat template has all of the wording, or the profile not the languages.
    """
    try:
        prompt = profile.render(Segment(_TEXT, target_lang, source_lang)).prompt
    except UnsupportedLanguage:
        return ()
    written = "\n".join(_texts(prompt)).replace(_TEXT, "\n")
    lines = map(str.strip, written.splitlines())
    return tuple(dict.fromkeys(line for line in lines if _letters(line) >= _LEAST_LETTERS))


def _texts(prompt: Prompt) -> Iterator[str]:
    yield prompt.completion
    for message in prompt.messages:
        if isinstance(message.content, str):
            yield message.content


def _letters(line: str) -> int:
    return sum(map(str.isalpha, line))
