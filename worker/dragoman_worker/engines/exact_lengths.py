"""Answers of exact lengths, for benchmarks with random weights: their text never ends by itself."""

from __future__ import annotations

from typing import Final

from dragoman_worker.ports import Generation, GenerationRequest

_NO_TEXT: Final = "…"


def exact_length(setting: bool | float, request: GenerationRequest) -> int | None:
    """Return how many tokens `engine.exact_lengths` wants; None if the answer ends by itself.

    `True` wants as many as the request allows, a number that many per character of the source.
    """
    if setting is False:
        return None
    most = request.decoding.max_tokens
    return most if setting is True else max(1, min(most, round(setting * len(request.source))))


def completed(generation: Generation) -> Generation:
    """Return an answer of the wanted length as a complete one: it has a text and an end."""
    if generation.finish_reason != "length":  # aborted
        return generation
    text = generation.text if generation.text.strip() else _NO_TEXT
    return generation._replace(text=text, finish_reason="stop")
