"""Prefills in groups: waiting requests enter a full engine together, not one by one.

vLLM gives each sequence that finishes to the next waiting request at once. With 1,024 sequences
of 80 tokens a dozen end in each step, so that every step has prefills. Such a step has as many
tokens as its prompts, for which no CUDA graph is captured: every kernel of every layer is launched
by itself, which takes 40 % of the engine process' core with a 0.6B model. A step of decodes alone
replays one graph.

In the engine process `in_groups` makes the scheduler hold prefills back, by vLLM's own throttle for
data parallelism, until a share of the sequences has finished, or for some steps. Only a full engine
does so: while sequences or KV cache are free, a request enters in the next step, as without it.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from dragoman_worker.engines.decode_graphs import UNGROUPED

_THROTTLE: Final = "throttle_prefills"
_FULL_CACHE: Final = 0.9
"""KV cache usage from which a request waits for tokens. A prompt is a small part of the cache."""
MOST_STEPS: Final = 32
"""Most steps that requests stay out of: where answers are long, few sequences finish in them.

By then 32 of 33 steps have no prefill. With 1,024 sequences of 8B they take about a second.
"""


def in_groups(scheduler: Any, share: float) -> Any:
    """Return the scheduler class with prefills in groups of `share` of the running sequences.

    `share` is between 0 and 1. A class whose `schedule` has no throttle is returned as it is.
    """
    if _THROTTLE not in inspect.signature(scheduler.schedule).parameters:
        return scheduler

    class InGroups(scheduler):  # type: ignore[misc]  # vLLM's class is known at run time only
        """vLLM's scheduler."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._groups = Groups(share) if _can_group(self) else None

        def schedule(self, *args: Any, **kwargs: Any) -> Any:
            """Schedule one step."""
            if self._groups is None:
                return super().schedule(*args, **kwargs)
            if self.waiting and self._groups.hold(len(self.running)):
                self.prefill_capacity_bound = False  # vLLM would not throttle while any wait
                return super().schedule(**{_THROTTLE: True})
            scheduled = super().schedule(*args, **kwargs)
            self._groups.entered(len(self.running), full=_is_full(self, scheduled))
            return scheduled

    return InGroups


class Groups:
    """When the next group of waiting requests may enter."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._until = -1.0
        """Number of running sequences from which on the next group enters; -1 while none waits."""
        self._steps = 0
        """Steps that waiting requests have stayed out of."""

    def hold(self, running: int) -> bool:
        """Return whether waiting requests stay out of the next step."""
        if not 0 <= self._until < running or self._steps >= MOST_STEPS:
            return False
        self._steps += 1
        return True

    def entered(self, running: int, *, full: bool) -> None:
        """Note the sequences after a step that let waiting requests in, and whether all entered.

        `full` says that others still wait, because neither a sequence nor cache is left for them.
        """
        self._until = running * (1 - self._share) if full else -1.0
        self._steps = 0


def _can_group(scheduler: Any) -> bool:
    """Return whether the scheduler has what is read here, and no other reasons to hold requests.

    Replicas of data parallelism throttle by a rhythm of their own. With pipeline parallelism a step
    held back may be an empty one, as another has the decodes. Without chunked prefill, a step that
    has no room for a prompt looks like an engine without room. A KV connector is asked for the
    first waiting prompt in every step, held back or not.
    """
    config = getattr(scheduler, "scheduler_config", None)
    parallel = getattr(scheduler, "parallel_config", None)
    chunked = bool(getattr(config, "enable_chunked_prefill", False))
    alone = all(getattr(parallel, name, 1) == 1 for name in UNGROUPED)
    connected = getattr(scheduler, "connector", None) is not None
    known = all(hasattr(scheduler, name) for name in _READ)
    return chunked and alone and not connected and known


_READ: Final = (
    "running",
    "waiting",
    "kv_cache_manager",
    "max_num_running_reqs",
    "max_num_scheduled_tokens",
)


def _is_full(scheduler: Any, scheduled: Any) -> bool:
    """Return whether requests wait because all sequences or all of the cache are in use.

    After a step whose tokens were used up, more may enter in the next one. The throttle stops the
    rest of a prompt that has been cut, too: that one has to be read first.
    """
    if not scheduler.waiting:
        return False
    if scheduled.total_num_scheduled_tokens >= scheduler.max_num_scheduled_tokens:
        return False
    # vLLM 0.32 lets `max_num_active_seqs` of them run.
    most: int = getattr(scheduler, "max_num_active_reqs", scheduler.max_num_running_reqs)
    if len(scheduler.running) < most and scheduler.kv_cache_manager.usage < _FULL_CACHE:
        return False
    return not any(request.is_prefill_chunk for request in scheduler.running)
