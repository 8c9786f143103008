"""Parsers of the options that take a comma-separated list."""

from __future__ import annotations

from collections.abc import Collection

from dragoman_connections.settings import SettingsError
from dragoman_worker.tuning.bench import STRATEGIES
from dragoman_worker.tuning.stages import ALLOWED, STAGES
from dragoman_worker.tuning.tuner import TuneOptions


def tune_options(
    sequences: str | None, max_sequences: int | None, stages: str | None, allow: str | None
) -> TuneOptions:
    """Return the parsed options of `tune`. Raises SettingsError naming the option."""
    named = _words("--allow", allow, ALLOWED) if allow is not None else frozenset()
    return TuneOptions(
        sequences=_counts(sequences),
        most_sequences=max_sequences,
        stages=_words("--stages", stages, STAGES) if stages is not None else frozenset(STAGES),
        # Replicas change no translation: they are tried where measured sizes say they may gain.
        allow=named | {"replicas"},
        named=named,
    )


def strategies_of(text: str | None) -> frozenset[str] | None:
    """Return the named strategies, None for all that fit. Raises SettingsError."""
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
