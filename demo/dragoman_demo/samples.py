"""Texts that the demo translates: a greeting, a paragraph, and sentences into English."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dragoman_schemas.jobs import TranslationJob

TARGETS: Final = ("de", "fr", "es", "ja")
_GREETING: Final = "Good morning! How are you today?"
_PARAGRAPH: Final = (
    "My sister lives in a small town near the sea. She works at a school and goes to work by bike. "
    "Last summer we visited her for two weeks. It rained almost every day, but we were happy."
)
_BACK: Final = {
    "de": "Ich habe meinen Schlüssel zu Hause vergessen.",
    "fr": "Où est la gare, s'il vous plaît ?",
    "es": "¿Cuánto cuesta este libro?",
    "ja": "明日は友達と映画を見に行きます。",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One text in one direction; `part` is its heading on the screen."""

    part: str
    name: str
    text: str
    source_lang: str
    target_lang: str

    @property
    def job(self) -> TranslationJob:
        """Job to submit, with a readable id such as `demo.greeting.en-de`."""
        return TranslationJob(
            job_id=f"demo.{self.name}.{self.source_lang}-{self.target_lang}",
            text=self.text,
            source_lang=self.source_lang,
            target_lang=self.target_lang,
        )


def samples() -> list[Sample]:
    """Return all samples in the order in which they are shown."""
    return [
        *_from_english("A greeting", "greeting", _GREETING),
        *(Sample("Into English", "back", text, source, "en") for source, text in _BACK.items()),
        *_from_english("A paragraph", "paragraph", _PARAGRAPH),
    ]


def _from_english(part: str, name: str, text: str) -> Iterator[Sample]:
    return (Sample(part, name, text, "en", target) for target in TARGETS)
