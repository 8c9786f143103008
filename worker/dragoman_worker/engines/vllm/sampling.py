"""vLLM's SamplingParams for a `Decoding`, no field left to its default, and the loops they end.

A faithful translation inherits repetitions from its source, which are counted in linear time.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman_worker.ports import Decoding

_LONGEST_PATTERN_TOKENS: Final = 16
"""vLLM looks for patterns of each length after each token, in Python and in the scheduler's step.
For 512 sequences of 800 tokens that takes 17 ms a step with 64 tokens and 4 ms with 16 (measured
with vLLM 0.32). 16 find loops of words and of short sentences; longer ones end at `max_tokens`."""
LEAST_REPETITIONS: Final = 8
"""Repetitions of a pattern that count as a loop if the source does not repeat: none of 48,853
human sentences has eight."""
_ALLOWED: Final = 3
"""A translation may repeat a pattern this many times as often as its source."""
_LONGEST_PERIOD: Final = 96
"""Characters: 16 tokens, the longest pattern that vLLM looks for, rarely spell more."""
_COUNTED_FROM: Final = 4
"""Fewer repetitions in the source do not raise the threshold: "...", "www" and "000" are common."""

_UNEQUAL: Final = re.compile(rb"[^\0]")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[.,'’\s](?=\d)")


def sampling_params(
    module: Any,
    decoding: Decoding,
    repetitions: int = LEAST_REPETITIONS,
    *,
    exact: int | None = None,
    detokenize: bool = True,
) -> Any:
    """Return vLLM's SamplingParams for `decoding`; `module` is vllm.sampling_params.

    An `exact` number of tokens is written whatever they are. Without `detokenize` the outputs have
    token ids and no text. A pattern that stands `repetitions`
    times in a row ends the output. vLLM's defaults do not fit: 16 tokens at temperature 1, and an
    output at every step.
    """
    params = module.SamplingParams(
        max_tokens=exact or decoding.max_tokens,
        min_tokens=exact or 0,
        ignore_eos=exact is not None,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        top_k=max(decoding.top_k, 0),
        min_p=0.0,
        seed=decoding.seed,
        repetition_penalty=decoding.repetition_penalty,
        frequency_penalty=decoding.frequency_penalty,
        presence_penalty=decoding.presence_penalty,
        stop=list(decoding.stop),
        stop_token_ids=list(decoding.stop_token_ids),
        detokenize=detokenize,
        skip_special_tokens=not decoding.special_tokens,
        output_kind=module.RequestOutputKind.FINAL_ONLY,
        repetition_detection=None if exact else _repetition_detection(module, repetitions),
    )
    if hasattr(params, "skip_clone"):
        params.skip_clone = True  # used by one request only: vLLM need not deep-copy it
    return params


def _repetition_detection(module: Any, repetitions: int) -> Any:
    return module.RepetitionDetectionParams(
        max_pattern_size=_LONGEST_PATTERN_TOKENS, min_pattern_size=1, min_count=repetitions
    )


def allowed_repetitions(source: str) -> int:
    """Return how often in a row a pattern may stand in the translation before it is a loop.

    Separators of table columns, leaders of dots, laughter and rows of emoji come back as often as
    they were sent, and a number loses or gains the separators between its digits.
    """
    spelled_out = _BETWEEN_DIGITS.sub("", source).replace("…", "...")
    count = longest_repetition(source)
    if spelled_out != source:
        count = max(count, longest_repetition(spelled_out))
    return LEAST_REPETITIONS if count < _COUNTED_FROM else max(LEAST_REPETITIONS, _ALLOWED * count)


def longest_repetition(text: str) -> int:
    """Return how often in a row the most repeated pattern of `text` occurs, 1 below four times.

    The text is compared with itself, shifted by each possible length of a pattern: equal characters
    become zero bytes. The operations on whole numbers and bytes run in C: 20 µs for 100 characters,
    at most 70 ms for 128 KiB.
    """
    try:
        data, width = text.encode("latin-1"), 1
    except UnicodeEncodeError:
        data, width = text.encode("utf-16-le", "surrogatepass"), 2
    # A byte before the text keeps the zero bytes of the shifted number out of the comparison.
    number = int.from_bytes(b"\x01" + data)
    best = _COUNTED_FROM - 1
    for period in range(width, min(_LONGEST_PERIOD * width, len(data) // 4) + 1, width):
        different = (number ^ (number >> (8 * period))).to_bytes(len(data) + 1)
        start = 0
        while (start := different.find(bytes(period * best), start)) >= 0:
            unequal = _UNEQUAL.search(different, start)
            end = unequal.start() if unequal else len(different)
            best, start = 1 + (end - start) // period, end
    return best if best >= _COUNTED_FROM else 1
