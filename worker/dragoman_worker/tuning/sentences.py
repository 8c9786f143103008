"""Sentences about what limits a load, each with the setting that changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dragoman_worker.health.bottleneck import Cause, Feed, Load

Sentence = Callable[[Load], tuple[str, str]]
"""Returns the sentence with its numbers, and the remedy."""


def _queue_empty(load: Load) -> tuple[str, str]:
    sentence = f"The queue is empty: {_count(load.queued)} jobs wait, and {_runs(load)}."
    return sentence, "Nothing: the worker has capacity for more jobs."


def _fetch(load: Load) -> tuple[str, str]:
    sentence = (
        f"Jobs arrive too slowly: {_count(load.queued)} are queued, {_count(load.in_flight)} are "
        f"in flight, and {_runs(load)}."
    )
    change = (
        "Check the broker and its network; raise limits.max_in_flight_jobs, or "
        "limits.partition_span if one long job blocks a partition."
    )
    return sentence, change


def _loop(load: Load) -> tuple[str, str]:
    sentence = (
        f"The worker's own CPU feeds the engine too slowly: its event loop uses "
        f"{_percent(load.loop_busy)} of a core and runs {load.loop_late_s * 1000:.0f} ms late, "
        f"{_count(load.queued)} jobs are queued, and {_runs(load)}."
    )
    return sentence, "Raise engine.replicas, or give the worker more cores."


def _store(load: Load) -> tuple[str, str]:
    sentence = (
        f"Redis, or Kafka for dead letters and results, is too slow: {_count(load.storing)} of "
        f"{_count(load.in_flight)} jobs in flight wait for it, {_count(load.stalled)} of them for "
        f"longer than a second, and {_runs(load)}."
    )
    return (
        sentence,
        "Check the server of redis.url (CPU, slow log, AOF disk) and its network.",
    )


def _quarantine(load: Load) -> tuple[str, str]:
    sentence = (
        f"{_count(load.quarantined)} jobs that were in the engine at a crash run in small "
        f"cohorts without others, {_count(load.queued)} are queued, and {_runs(load)}."
    )
    return sentence, "Nothing: the quarantine ends by itself. The log has the cause of the crashes."


def _sequences(load: Load) -> tuple[str, str]:
    limited = load.most_items < load.max_num_seqs
    bound = "limits.max_engine_items" if limited else "engine.options.max_num_seqs"
    sentence = (
        f"The engine runs as many sequences as {bound} allows: {_runs(load)}, "
        f"{_count(load.waiting)} wait in it, and its KV cache is "
        f"{_percent(load.kv_cache_usage)} full."
    )
    # An engine that only sleeps (echo) would gain without limit.
    gain = f"; up to about {_count(load.full_batch)} gain much" if load.full_batch < 1e5 else ""
    return sentence, f"Raise {bound}{gain}."


def _kv_cache(load: Load) -> tuple[str, str]:
    held = load.tokens_hold_back >= 0.5
    sentence = (
        f"The KV cache is the limit: it is {_percent(load.kv_cache_usage)} full"
        f"{', others wait for its tokens' if held else ''}, {load.preemptions_per_s:.1f} sequences "
        f"per second are preempted, and {_runs(load)}."
    )
    # Only a setting can bound tokens below a cache that has free space.
    if held and load.tokens < load.kv_cache_tokens and load.kv_cache_usage < 0.5:
        return (
            sentence,
            "Raise limits.max_engine_tokens, or remove it: the worker finds its own bound.",
        )
    if load.servers:
        return sentence, "Give the server more memory, or add a server to engine.url."
    if load.devices == 0:
        return sentence, "Give it more memory: engine.options.kv_cache_memory_bytes."
    change = (
        "Give it more memory (engine.options.gpu_memory_utilization, or fewer engine.replicas), or "
        "halve the bytes per token (engine.options.kv_cache_dtype = 'fp8')."
    )
    return sentence, change


def _engine_cpu(load: Load) -> tuple[str, str]:
    sentence = (
        f"The engine's own CPU work keeps the GPU waiting: a kernel runs "
        f"{_percent(load.gpu_busy or 0.0)} of the time, while {_runs(load)} and "
        f"{_count(load.waiting)} wait in the engine."
    )
    return sentence, "Raise engine.replicas: several engines share one GPU."


def _compute(load: Load) -> tuple[str, str]:
    if load.gpu_busy is None:
        return _compute_unseen(load)
    sentence = (
        f"The GPU is the limit: it is busy {_percent(load.gpu_busy)} of the time, "
        f"{_runs(load)}, and the KV cache is {_percent(load.kv_cache_usage)} full."
    )
    return (
        sentence,
        "The settings fit. Next: engine.options.quantization = 'fp8' if quality allows, or GPUs.",
    )


def _compute_unseen(load: Load) -> tuple[str, str]:
    if load.servers:
        sentence = (
            f"The engine's server is the limit: {_runs(load)} there, and "
            f"{_count(load.waiting)} wait."
        )
        return sentence, "Add a server to engine.url, or give the server more GPUs."
    if load.devices:
        sentence = (
            f"The engine is the limit: {_runs(load)}. Without NVML it is unknown whether the GPU "
            "or the engine's own CPU work limits it."
        )
        return sentence, "Install nvidia-ml-py to find out; then raise engine.replicas or use fp8."
    sentence = (
        f"The engine is the limit: {_runs(load)}. On a CPU its own work and the model share the "
        "same cores, so the two limits are one."
    )
    return sentence, "The settings fit. Next: more cores, a smaller or a quantized model, or a GPU."


def _no_answer(load: Load) -> tuple[str, str]:
    sentence = (
        f"The engine does not answer: it has given no sign of life for {load.silent_s:.0f} s, "
        f"{_count(load.waiting)} requests wait in it, {_runs(load)}, and "
        f"{load.items_per_s:.1f} items per second come out."
    )
    change = (
        "Nothing yet: after supervisor.stuck_after_s the engine is killed and started again. If it "
        "happens again, look for GPU errors in the kernel's log (dmesg) and in nvidia-smi."
    )
    return sentence, change


def _server(load: Load) -> tuple[str, str]:
    sentence = (
        f"The engine's server does not answer: for {_percent(load.server_away)} of the time it got "
        f"no requests, and {_count(load.in_flight)} jobs wait for it."
    )
    change = (
        "Look at the server at engine.url; the worker's log names it and the reason "
        "(engine_server_away). The jobs continue on their own when it is back."
    )
    return sentence, change


CAUSES: Final[Mapping[Cause, Sentence]] = {
    Cause.QUEUE_EMPTY: _queue_empty,
    Cause.SEQUENCES: _sequences,
    Cause.KV_CACHE: _kv_cache,
    Cause.ENGINE_CPU: _engine_cpu,
    Cause.COMPUTE: _compute,
    Cause.NO_ANSWER: _no_answer,
    Cause.SERVER: _server,
}
FEEDS: Final[Mapping[Feed, Sentence]] = {
    Feed.FETCH: _fetch,
    Feed.LOOP: _loop,
    Feed.STORE: _store,
    Feed.QUARANTINE: _quarantine,
}


def _runs(load: Load) -> str:
    return f"{_count(load.running)} of {_count(load.max_num_seqs)} sequences run"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
