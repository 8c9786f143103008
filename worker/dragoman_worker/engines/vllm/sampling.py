"""Conversion of `Decoding` to vLLM's SamplingParams, with no field left to its default."""

from __future__ import annotations

from typing import Any, Final

from dragoman_worker.engines.vllm.repetition import LEAST_REPETITIONS
from dragoman_worker.ports import Decoding

_LONGEST_PATTERN_TOKENS: Final = 16
"""vLLM looks for patterns of each length after each token, in Python and in the scheduler's step.
For 512 sequences of 800 tokens that takes 17 ms a step with 64 tokens and 4 ms with 16 (measured
with vLLM 0.32). 16 find loops of words and of short sentences; longer ones end at `max_tokens`."""


def sampling_params(
    module: Any,
    decoding: Decoding,
    repetitions: int = LEAST_REPETITIONS,
    *,
    detokenize: bool = True,
) -> Any:
    """Return vLLM's SamplingParams for `decoding`; `module` is vllm.sampling_params.

    Without `detokenize` the outputs have token ids and no text. A pattern that stands `repetitions`
    times in a row ends the output. vLLM's defaults do not fit: 16 tokens at temperature 1, and an
    output at every step.
    """
    exact = decoding.exact_length
    params = module.SamplingParams(
        max_tokens=decoding.max_tokens,
        min_tokens=decoding.max_tokens if exact else 0,
        ignore_eos=exact,
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
