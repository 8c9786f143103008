"""Transfer of whole answers from vLLM's engine process instead of one message per token.

vLLM sends every new token of every sequence to its front end, which counts it and keeps it until
the request is finished. With 1,024 sequences that takes half of the front end's core, which is the
worker's event loop. A request that wants its final output alone, undecoded, needs only two of them
here: the first, for the time to the first token, and the last, which carries all tokens between.

In the engine process `sending_whole` extends vLLM's scheduler. In the front end `share_times`
divides the time of several tokens among them, so that vLLM's metrics keep their numbers of tokens,
their sums and means; see docs/adr/0026 for what they leave out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

_STATS: Final = "IterationStats"
_LATENCIES: Final = "inter_token_latencies_iter"
_SIGN_EVERY_S: Final = 5.0


def sending_whole(
    scheduler: type,
    final_only: object,
    empty: Callable[[], object],
    clock: Callable[[], float] = time.monotonic,
) -> type:
    """Return the scheduler class with outputs between the first and the last left out.

    `final_only` is vLLM's RequestOutputKind.FINAL_ONLY, `empty` makes its EngineCoreOutputs.
    """

    class SendingWhole(scheduler):  # type: ignore[misc]  # vLLM's class is known at run time only
        """vLLM's scheduler."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            # A scheduler of the user's own (`scheduler_cls`) may have none: it sends every token.
            self._whole = WholeOutputs(getattr(self, "requests", {}), final_only)
            self._sent_at = clock()

        def update_from_output(self, *args: Any, **kwargs: Any) -> Any:
            """Update after one step; return the outputs to send, by client."""
            by_client = super().update_from_output(*args, **kwargs)
            for sent in by_client.values():
                if sent.outputs:
                    sent.outputs = self._whole.kept(sent.outputs)
            self._give_sign_of_life(by_client)
            return by_client

        def _give_sign_of_life(self, by_client: dict[int, Any]) -> None:
            """Send an empty message if steps have sent nothing for a while.

            Without statistics, steps that read a part of a long prompt send none.
            """
            now = clock()
            if not by_client and now - self._sent_at >= _SIGN_EVERY_S:
                by_client[0] = empty()
            if by_client:
                self._sent_at = now

    return SendingWhole


class _Begun(NamedTuple):
    """A request whose first output was sent."""

    request: Any
    sent: int
    """Tokens in that output."""


class WholeOutputs:
    """Outputs of each step without those that the front end needs for nothing."""

    def __init__(self, requests: Mapping[str, Any], final_only: object) -> None:
        """Read the scheduler's `requests`, which loses finished and aborted ones by itself."""
        self._requests = requests
        self._final_only = final_only
        self._begun: dict[str, _Begun] = {}

    def kept(self, outputs: Iterable[Any]) -> list[Any]:
        """Return the outputs to send; a last one has all tokens since the first."""
        begun = self._begun
        # One pass in C over the outputs that are left out: the engine's process is the bottleneck.
        kept = [
            output
            for output in outputs
            if output.finish_reason is not None
            or output.request_id not in begun
            or output.events is not None  # a preemption, which vLLM's metrics count
        ]
        for output in kept:
            self._complete(output)
        if len(begun) > len(self._requests):
            self._forget_aborted()
        return kept

    def _complete(self, output: Any) -> None:
        begun = self._begun.get(output.request_id)
        if begun is None:
            if output.finish_reason is None:
                self._begin(output)
        elif output.finish_reason is None:
            output.new_token_ids = []
        else:
            del self._begun[output.request_id]
            output.new_token_ids = list(begun.request.output_token_ids[begun.sent :])

    def _begin(self, output: Any) -> None:
        request = self._requests.get(output.request_id)
        if request is not None and _wanted_whole(request, self._final_only):
            self._begun[output.request_id] = _Begun(request, len(output.new_token_ids))

    def _forget_aborted(self) -> None:
        for name in [name for name in self._begun if name not in self._requests]:
            del self._begun[name]


def _wanted_whole(request: Any, final_only: object) -> bool:
    """Return whether the front end neither decodes the tokens nor passes them on one by one."""
    params = request.sampling_params
    return (
        params is not None
        and params.output_kind == final_only
        and not params.detokenize
        and params.logprobs is None
        and params.prompt_logprobs is None
        and not getattr(request, "resumable", False)
    )


def share_times(front_end: Any) -> None:
    """Make the statistics of vLLM's front end divide the time of several tokens among them.

    `front_end` is the module vllm.v1.engine.async_llm. Idempotent.
    """
    stats = getattr(front_end, _STATS)
    if not hasattr(stats, "shares_times"):
        setattr(front_end, _STATS, sharing_times(stats))


def sharing_times(stats: type) -> type:
    """Return vLLM's IterationStats, whose times between tokens count each token of an output."""

    class SharingTimes(stats):  # type: ignore[misc]  # vLLM's class is known at run time only
        """vLLM's statistics of one step."""

        shares_times = True

        def update_from_output(
            self, output: Any, at: float, is_prefilling: bool, request: Any, *others: Any
        ) -> None:
            """Count one output of a request."""
            before, latencies = request.last_token_ts, getattr(self, _LATENCIES)
            known = len(latencies)
            super().update_from_output(output, at, is_prefilling, request, *others)
            count = len(output.new_token_ids)
            if count == 1 or len(latencies) == known:
                return
            elapsed = latencies.pop()
            if count:
                latencies.extend([elapsed / count] * count)
            else:
                request.last_token_ts = before

    return SharingTimes
