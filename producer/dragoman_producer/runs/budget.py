"""What a run would cost: its tokens, its time and GPU-hours, and what each figure rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import langcodes

from dragoman_connections.terminal import counted

_CHARS_PER_TOKEN: Final = {"Latn": 3.6, "Cyrl": 3.0, "Grek": 2.4, "Arab": 2.8, "Hebr": 2.4,
    "Deva": 2.6, "Thai": 2.2, "Jpan": 1.4, "Kore": 1.6, "Hans": 1.4, "Hant": 1.2}  # fmt: skip
"""Rules of thumb for vocabularies of 100,000 to 260,000 tokens; nobody measured yours."""
_OTHERS: Final = 2.0
_LENGTH: Final = {"Latn": 1.1, "Cyrl": 1.1, "Jpan": 0.5, "Kore": 0.55, "Hans": 0.35, "Hant": 0.35}
"""Characters of a translation per character of a source in Latin script."""
_AROUND: Final = 25
"""Tokens of the prompt around a text, as in most profiles."""
_BY_SCRIPT_ERROR: Final = 0.4
_LEAST_ERROR: Final = 0.05


class Spent(NamedTuple):
    """What earlier runs of a model cost, in one language."""

    model: str
    jobs: int
    chars: int
    prompt: int
    completion: int
    squares: float
    """Sum of the squares of the tokens per character of each job."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """An estimate of tokens, and by how much it may be wrong."""

    prompt: int
    completion: int
    error: float
    basis: str


@dataclass(frozen=True, slots=True)
class Rate:
    """Texts per second of all workers, and where it is known from."""

    texts_per_s: float
    basis: str
    is_least: bool = False
    """Whether it may be higher: workers announce jobs, and a job of a run has up to 64 texts."""


def tokens_for(
    characters: int, texts: int, source: str | None, target: str, spent: Spent | None
) -> Tokens:
    """Return the tokens of texts with so many characters, in one language."""
    if spent is not None and spent.chars and spent.completion:
        mean = spent.completion / spent.chars
        spread = max(0.0, spent.squares / spent.jobs - mean**2) ** 0.5 / mean
        error = max(_LEAST_ERROR, spread / spent.jobs**0.5)
        read = round(characters * spent.prompt / spent.chars)
        basis = f"{counted(spent.jobs, 'earlier job')} of {spent.model}"
        return Tokens(read, round(characters * mean), min(error, 1.0), basis)
    one, other = _script(source or "en"), _script(target)
    prompt = texts * _AROUND + characters / _CHARS_PER_TOKEN.get(one, _OTHERS)
    length = _LENGTH.get(other, 1.0) / _LENGTH.get(one, 1.0)
    made = characters * length / _CHARS_PER_TOKEN.get(other, _OTHERS)
    return Tokens(round(prompt), round(made), _BY_SCRIPT_ERROR, "a table by script")


def _script(tag: str) -> str:
    return langcodes.get(tag).maximize().script or "Latn"


def rate_of(
    given: float | None, earlier: float | None, announced: float, workers: int
) -> Rate | None:
    """Return the rate that is known best; None if none is: given, of earlier runs, announced."""
    if given is not None:
        return Rate(given, "--rate")
    if earlier is not None:
        return Rate(earlier, "earlier runs")
    if announced > 0:
        basis = f"the jobs of {counted(workers, 'live worker')}, taken as one text each"
        return Rate(announced, basis, is_least=True)
    return None


def costs(
    missing: int, tokens: list[Tokens], rate: Rate | None, gpus: int, price: float | None
) -> dict[str, Any]:
    """Return the budget as JSON; what is not known is None."""
    seconds = missing / rate.texts_per_s if rate else None
    hours = None if seconds is None else seconds * gpus / 3600
    return {
        "prompt_tokens": sum(each.prompt for each in tokens),
        "completion_tokens": sum(each.completion for each in tokens),
        "error": max((each.error for each in tokens), default=0.0),
        "tokens_by": "; ".join(dict.fromkeys(each.basis for each in tokens)),
        "seconds": seconds,
        "seconds_by": rate.basis if rate else None,
        "seconds_at_most": bool(rate and rate.is_least),
        "gpus": gpus,
        "gpu_hours": hours,
        "price": None if hours is None or price is None else hours * price,
    }
