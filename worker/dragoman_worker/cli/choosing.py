"""What did a person choose, in words separated by commas? Wrong words are named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dragoman_connections.settings import SettingsError
from dragoman_worker.tuning.bench import STRATEGIES
from dragoman_worker.tuning.stages import ALLOWED, STAGES
from dragoman_worker.tuning.tuner import Wishes


@dataclass(frozen=True, slots=True)
class Wish:
    """The options of `tune` as they were typed."""

    sequences: str | None
    max_sequences: int | None
    stages: str | None
    allow: str | None


def wishes_of(wish: Wish) -> Wishes:
    """What they mean. Raises SettingsError naming the option."""
    named = _words("--allow", wish.allow, ALLOWED) if wish.allow is not None else frozenset()
    stages = _words("--stages", wish.stages, STAGES) if wish.stages is not None else set(STAGES)
    # Replicas change no translation: they are tried where a table says that they may gain.
    allow = named | {"replicas"}
    return Wishes(
        sequences=_counts(wish.sequences),
        most_sequences=wish.max_sequences,
        stages=frozenset(stages),
        allow=frozenset(allow),
        named=frozenset(named),
    )


def strategies_of(text: str | None) -> frozenset[str] | None:
    """The named strategies; None for all that fit. Raises SettingsError."""
    return _words("--strategies", text, STRATEGIES) if text is not None else None


def _words(option: str, text: str, known: Collection[str]) -> frozenset[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise SettingsError(f"{option}: there is no {word!r}; give some of {', '.join(known)}")
    return frozenset(words)


def _counts(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise SettingsError(f"--sequences {text}: give numbers above 0, as in 8,16,32")
    return tuple(sorted({int(part) for part in parts}))
