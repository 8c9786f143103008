"""The table of what changes vLLM, and which of it applies: by the setting and vLLM's names.

`engine.patches = off` leaves out what only makes vLLM faster. What protects stays: without it
Ctrl-C would kill the engine before the worker drains, and a hang would never be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dragoman_worker.engines.vllm.patches.names import Names, first_missing, installed_names
from dragoman_worker.log import logger

ISOLATION: Final = "isolation"
WORKER_START: Final = "worker-start"
SIGNS_OF_LIFE: Final = "signs-of-life"
SOCKETS: Final = "sockets"
WHOLE_OUTPUTS: Final = "whole-outputs"
PREFILL_GROUPS: Final = "prefill-groups"
LATENCIES: Final = "latencies"
FORKED_START: Final = "forked-start"

_CORE: Final = "vllm.v1.engine.core:EngineCoreProc.run_engine_core"
_CHOICE: Final = "vllm.config.scheduler:SchedulerConfig.get_scheduler_cls"
_SCHEDULER: Final = "vllm.v1.core.sched.scheduler:Scheduler"
_OUTPUT: Final = "vllm.v1.engine:EngineCoreOutput"
_PARAMS: Final = "vllm.sampling_params:SamplingParams"
_STATS: Final = "vllm.v1.metrics.stats:IterationStats"
_LOGGER: Final = "vllm.v1.metrics.loggers:PrometheusStatLogger"
_CLIENT: Final = "vllm.v1.engine.core_client:BackgroundResources"
_ASYNC: Final = "vllm.v1.engine.async_llm:AsyncLLM"


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of vLLM."""

    changes: str
    lost: str
    """What is lost without it."""
    names: tuple[str, ...]
    """vLLM's names that it needs."""
    protects: bool = False
    """Whether it stays with `off`."""
    known: tuple[str, str] = ("0.26", "0.33")
    """The first and last version of vLLM that has been seen to have the names."""


PATCHES: Final[Mapping[str, Patch]] = {
    ISOLATION: Patch(
        "the engine process leads a process group, ends with the worker and reports why it failed",
        "Ctrl-C kills the engine before the worker drains, and a failed start has no reason",
        (_CORE,),
        protects=True,
    ),
    WORKER_START: Patch(
        "a worker process that vLLM spawns on a CPU asks for AMX and reports why it failed",
        "on a CPU with AMX a tiny model may end by SIGILL, and a failed start has no reason",
        (_CORE, "vllm.v1.executor.multiproc_executor:WorkerProc.worker_main"),
        protects=True,
    ),
    SIGNS_OF_LIFE: Patch(
        "messages from the engine process are counted",
        "an engine that hangs is not replaced",
        (f"{_CLIENT}.validate_alive(frames)", "vllm.v1.engine.core_client:MPClient.resources"),
        protects=True,
    ),
    SOCKETS: Patch(
        "vLLM's sockets are in a folder that is removed with the engine, and closed with it",
        "each start leaves files in the temporary directory",
        (
            f"{_CLIENT}.ctx",
            "vllm.v1.engine.core_client:MPClient.resources",
            f"{_ASYNC}.output_handler",
            "vllm.envs:VLLM_RPC_BASE_PATH",
        ),
        protects=True,
    ),
    WHOLE_OUTPUTS: Patch(
        "an answer leaves the engine process at its end, not token by token",
        "the worker's event loop handles every token: small models are slower",
        (
            _CORE,
            _CHOICE,
            f"{_SCHEDULER}.update_from_output",
            f"{_SCHEDULER}.requests",
            "vllm.sampling_params:RequestOutputKind.FINAL_ONLY",
            *(f"{_PARAMS}.{name}" for name in ("output_kind", "detokenize", "logprobs")),
            f"{_PARAMS}.prompt_logprobs",
            "vllm.v1.engine:EngineCoreOutputs.outputs",
            *(f"{_OUTPUT}.{name}" for name in ("request_id", "new_token_ids", "finish_reason")),
            f"{_OUTPUT}.events",
            "vllm.v1.request:Request.sampling_params",
            "vllm.v1.request:Request.output_token_ids",
            "vllm.v1.engine.async_llm:IterationStats",
            f"{_STATS}.update_from_output(output,is_prefilling,req_stats)",
            f"{_STATS}.inter_token_latencies_iter",
            "vllm.v1.metrics.stats:RequestStateStats.last_token_ts",
        ),
    ),
    PREFILL_GROUPS: Patch(
        "a full engine lets waiting requests in together (`engine.prefill_share`)",
        "nearly every step has prefills and no CUDA graph: fewer jobs per second",
        (
            _CORE,
            _CHOICE,
            f"{_SCHEDULER}.schedule(throttle_prefills)",
            f"{_SCHEDULER}.prefill_capacity_bound",
            *(f"{_SCHEDULER}.{name}" for name in ("running", "waiting", "kv_cache_manager")),
            *(f"{_SCHEDULER}.max_num_{name}" for name in ("running_reqs", "scheduled_tokens")),
            "vllm.v1.core.kv_cache_manager:KVCacheManager.usage",
            "vllm.v1.core.sched.output:SchedulerOutput.total_num_scheduled_tokens",
            "vllm.v1.request:Request.is_prefill_chunk",
        ),
    ),
    LATENCIES: Patch(
        "equal times between tokens are observed together in vLLM's metrics",
        "one observation per token in the worker's event loop",
        (
            f"{_LOGGER}.record(scheduler_stats,iteration_stats)",
            f"{_LOGGER}.histogram_inter_token_latency",
            f"{_STATS}.inter_token_latencies_iter",
            f"{_ASYNC}.from_engine_args(stat_loggers)",
        ),
    ),
    FORKED_START: Patch(
        "replicas and engine processes are forked from a process that has imported vLLM",
        "each process imports vLLM itself: 15 to 30 s of CPU per start",
        ("vllm.v1.engine.utils:get_mp_context", "vllm.envs:VLLM_WORKER_MULTIPROC_METHOD"),
    ),
}


@dataclass(frozen=True, slots=True)
class ChosenPatches:
    """The patches that apply to one vLLM."""

    names: frozenset[str]
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """The first name that this vLLM lacks, by the patch that is left out for it."""

    def __contains__(self, name: str) -> bool:
        """Return whether the patch applies."""
        return name in self.names

    def log(self, version: str) -> None:
        """Log which patches apply, and each that is left out because a name is missing."""
        logger().info("engine_patches", names=sorted(self.names))
        for name, lacking in self.missing.items():
            logger().warning(
                "engine_patch_left_out",
                patch=name,
                missing=lacking,
                vllm=version,
                lost=PATCHES[name].lost,
            )


def chosen(setting: str, names_of: Callable[[str], Names] = installed_names) -> ChosenPatches:
    """Return the patches that apply with `engine.patches` = `setting`, `auto` or `off`.

    `names_of` returns what a module of vLLM defines.
    """
    wanted = {name: each for name, each in PATCHES.items() if setting == "auto" or each.protects}
    lacking = {name: first_missing(each.names, names_of) for name, each in wanted.items()}
    missing = {name: name_of for name, name_of in lacking.items() if name_of is not None}
    return ChosenPatches(frozenset(wanted.keys() - missing.keys()), missing)
