"""The texts of a storm's jobs with their translations."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final, Protocol

SETTINGS: Final[dict[str, Any]] = {
    "engine.echo.mode": "table",
    "quality.level": "basic",
    "quality.on_fail": "best_effort",  # odd records are answered by tags, which gates reject
    "quality.timeout_s": 60,  # an unjudged answer is no finding, and storms use up the machine
    "memory.enabled": True,
}
"""Settings of workers that judge, remember and coalesce; `engine.echo.table` is to be added."""
_TEXTS: Final = 400
_COPIED: Final = 10
"""Of each ten texts, one is answered by a copy of itself at the first attempt."""
_SOURCE: Final = "Please open the door number {} before the meeting starts tomorrow."
_TARGETS: Final = {
    "de": "Bitte öffnen Sie die Tür Nummer {}, bevor die Besprechung morgen beginnt.",
    "fr": "Veuillez ouvrir la porte numéro {} avant que la réunion ne commence demain.",
}


class Texts(Protocol):
    """The texts of a load."""

    def fields(self, number: int) -> dict[str, Any]:
        """Return the text, the languages and the memory's use of a job."""
        ...

    def answer(self, text: str, target_lang: str) -> str:
        """Return the required translation."""
        ...


class TaggedTexts:
    """Texts that differ, and answers with the language's tag, as the echo engine gives them."""

    def __init__(self, run: str) -> None:
        self._run = run

    def fields(self, number: int) -> dict[str, Any]:
        """Return a text of its own for each number, into German."""
        text = f"Line {number} of storm {self._run}."
        return {"text": text, "target_lang": "de", "source_lang": "en"}

    def answer(self, text: str, target_lang: str) -> str:
        """Return the tagged text."""
        return f"[{target_lang}] {text}"


class RepeatedTexts:
    """Few texts into two languages, some far more often than others, for memory and gates.

    An answer for another language or text, or one that a gate has to reject, is wrong.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"texts {seed}")

    def fields(self, number: int) -> dict[str, Any]:
        """Return one of the texts; one job in twenty has a `memory` of its own."""
        chosen = int(_TEXTS * self._random.random() ** 3)
        fields = {"text": _SOURCE.format(chosen), "source_lang": "en"}
        fields["target_lang"] = self._random.choice(list(_TARGETS))
        if number % 20 == 0:
            fields["memory"] = self._random.choice(["refresh", "off"])
        return fields

    def answer(self, text: str, target_lang: str) -> str:
        """Return the faithful translation; the tagged text for a text of no table."""
        numbers = [word for word in text.split() if word.isdecimal()]
        if not numbers or _SOURCE.format(numbers[0]) != text:
            return f"[{target_lang}] {text}"
        return _TARGETS[target_lang].format(numbers[0])


def write_table(file: Path) -> Path:
    """Write the table of the echo engine (`engine.echo.table`) for `RepeatedTexts`."""
    lines = []
    for number in range(_TEXTS):
        source = _SOURCE.format(number)
        first = [source] if number % _COPIED == 0 else []
        for tag, target in _TARGETS.items():
            lines.append("\t".join([source, tag, *first, target.format(number)]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
