"""The pair that every corpus is read into."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """A source, its human translation, and where both are from."""

    corpus: str
    source: str
    target: str
    source_lang: str
    target_lang: str
