"""Report of what limits a running worker's throughput and which setting changes it.

Source is `dragoman_load` on the worker's metrics page: a summary of the last ten seconds, from
which the worker derives `dragoman_bottleneck`. Replicas are judged together and one by one.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from dragoman_connections.settings import SettingsError
from dragoman_worker.health.bottleneck import Cause, Feed, Load, bottleneck, feed_limit, together

TIMEOUT_S: Final = 5.0
_KNOWN: Final = {field.name for field in fields(Load)}
_NEEDED: Final = [field.name for field in fields(Load) if field.default is MISSING]


class NoAnswer(Exception):
    """No worker answers at the URL; the message gives the reason and what to do."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit of one load: `sentence` names it with its numbers, `change` gives the remedy."""

    cause: Cause
    feed: Feed | None
    sentence: str
    change: str
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Report:
    """Limits of all replicas together and of each by its number."""

    whole: Limit
    replicas: Mapping[str, Limit]

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the whole and of each replica."""
        each = [{"replica": name, **_json(limit)} for name, limit in self.replicas.items()]
        return {**_json(self.whole), "replicas": each}


def ask(url: str) -> Report:
    """Fetch the report of the worker at `url`. Raises NoAnswer, SettingsError if it is no URL."""
    address = page_of(url)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as page:  # noqa: S310  the user gives it
            text = page.read()
    except HTTPException as error:  # its text may be a line of another protocol
        raise NoAnswer(_not_a_worker(address, type(error).__name__)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NoAnswer(
            f"no worker answers at {address} ({reason}); give --url, or the worker's settings"
        ) from None
    try:
        return report(text.decode())
    except ValueError:  # no UTF-8, no metrics, or metrics of another program
        raise NoAnswer(_not_a_worker(address, "it serves no dragoman metrics")) from None


def page_of(url: str) -> str:
    """Return the URL of the worker's metrics page; `url` may omit http:// and /metrics.

    Raises SettingsError if it is no URL.
    """
    whole = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(whole)
        valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # the port is no number, or brackets do not match
        valid = False
    if not valid or not whole.isascii() or not whole.isprintable() or " " in whole:
        raise SettingsError(f"{url!r} is no URL of a worker: give --url as http://127.0.0.1:9464")
    return whole.rstrip("/").removesuffix("/metrics") + "/metrics"


def report(page: str) -> Report:
    """Return the report of a page of metrics.

    Raises NoAnswer if no replica is ready yet, and ValueError if it is no worker's page.
    """
    families = list(text_string_to_metric_families(page))
    if not any(family.name.startswith("dragoman_") for family in families):
        raise ValueError("the page has no dragoman_ metric")
    rows = _rows(families)
    loads = {name: Load(**row) for name, row in sorted(rows.items()) if _whole(row)}
    if not loads:
        raise NoAnswer("no replica of this worker takes jobs yet; ask again when it is ready")
    return Report(
        limit(together(list(loads.values()))),
        {name: limit(load) for name, load in loads.items()},
    )


def limit(load: Load) -> Limit:
    """Return the limit of one load."""
    cause = bottleneck(load)
    feed = feed_limit(load) if cause is Cause.FEED else None
    sentence, change = _FEEDS[feed](load) if feed else _CAUSES[cause](load)
    numbers = {name: value for name, value in asdict(load).items() if value is not None}
    return Limit(cause, feed, sentence, change, numbers)


def _not_a_worker(address: str, reason: str) -> str:
    return (
        f"the server at {address} is no dragoman worker ({reason}); "
        "give --url, or the worker's settings"
    )


def _rows(families: Iterable[Metric]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for family in families:
        if family.name == "dragoman_load":
            for sample in family.samples:
                row = rows.setdefault(sample.labels.get("replica", "0"), {})
                if (stat := sample.labels.get("stat", "")) in _KNOWN:
                    row[stat] = sample.value
    return rows


def _whole(row: Mapping[str, float]) -> bool:
    return all(name in row for name in _NEEDED)


def _json(limit: Limit) -> dict[str, Any]:
    return {
        "cause": limit.cause.value,
        "feed": limit.feed.value if limit.feed else None,
        "sentence": limit.sentence,
        "change": limit.change,
        "numbers": {name: round(value, 4) for name, value in limit.numbers.items()},
    }


# --- sentences ------------------------------------------------------------------------------------


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


_CAUSES: Final = {
    Cause.QUEUE_EMPTY: _queue_empty,
    Cause.SEQUENCES: _sequences,
    Cause.KV_CACHE: _kv_cache,
    Cause.ENGINE_CPU: _engine_cpu,
    Cause.COMPUTE: _compute,
}
_FEEDS: Final = {
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
