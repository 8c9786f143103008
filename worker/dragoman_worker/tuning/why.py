"""What limits a running worker's throughput now, and which setting would change it?

It reads the worker's own page of metrics: `dragoman_load`, what the last ten seconds came to, by
which the worker judges `dragoman_bottleneck`. Several replicas are judged together and each.
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

ASK_S: Final = 5.0
_KNOWN: Final = {field.name for field in fields(Load)}
_NEEDED: Final = [field.name for field in fields(Load) if field.default is MISSING]


class NoAnswer(Exception):
    """No worker tells anything there; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a load: `sentence` names it with its numbers, `change` what to do about it."""

    cause: Cause
    feed: Feed | None
    sentence: str
    change: str
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Report:
    """All replicas together, and each by its number."""

    whole: Limit
    replicas: Mapping[str, Limit]

    def as_json(self) -> dict[str, Any]:
        """The whole's fields, with those of each replica."""
        each = [{"replica": name, **_json(limit)} for name, limit in self.replicas.items()]
        return {**_json(self.whole), "replicas": each}


def ask(url: str) -> Report:
    """The report of the worker at `url`. Raises SettingsError of no URL, and NoAnswer."""
    place = page_of(url)
    try:
        with urllib.request.urlopen(place, timeout=ASK_S) as page:  # noqa: S310  a person gives it
            text = page.read()
    except HTTPException as error:  # its own text may be a line of another protocol
        raise NoAnswer(_stranger(place, type(error).__name__)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NoAnswer(
            f"no worker answers at {place} ({reason}); give --url, or the worker's settings"
        ) from None
    try:
        return report(text.decode())
    except ValueError:  # no UTF-8, no metrics, or another program's
        raise NoAnswer(_stranger(place, "none of a worker's metrics are told")) from None


def page_of(url: str) -> str:
    """Where the worker of that URL tells its metrics; http:// may be left out.

    Raises SettingsError if it is no URL.
    """
    whole = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(whole)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # the port is no number, or the brackets do not match
        good = False
    if not good or not whole.isascii() or not whole.isprintable() or " " in whole:
        raise SettingsError(f"{url!r} is no URL of a worker: give --url as http://127.0.0.1:9464")
    return whole.rstrip("/").removesuffix("/metrics") + "/metrics"


def report(page: str) -> Report:
    """The report of a page of metrics.

    Raises NoAnswer if no replica works yet, and ValueError if it is no worker's page.
    """
    families = list(text_string_to_metric_families(page))
    if not any(family.name.startswith("dragoman_") for family in families):
        raise ValueError("no dragoman_ metric is told")
    rows = _rows(families)
    loads = {name: Load(**row) for name, row in sorted(rows.items()) if _whole(row)}
    if not loads:
        raise NoAnswer("no replica of this worker takes jobs yet; ask again when it is ready")
    return Report(
        limit(together(list(loads.values()))),
        {name: limit(load) for name, load in loads.items()},
    )


def limit(load: Load) -> Limit:
    """Name the cause of one load."""
    cause = bottleneck(load)
    feed = feed_limit(load) if cause is Cause.FEED else None
    sentence, change = _FEEDS[feed](load) if feed else _CAUSES[cause](load)
    numbers = {name: value for name, value in asdict(load).items() if value is not None}
    return Limit(cause, feed, sentence, change, numbers)


def _stranger(place: str, why: str) -> str:
    return (
        f"what answers at {place} is no dragoman worker ({why}); "
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
    return sentence, "Nothing: it would do more jobs if there were more."


def _fetch(load: Load) -> tuple[str, str]:
    sentence = (
        f"Jobs come in too slowly: {_count(load.queued)} are queued, {_count(load.in_flight)} are "
        f"in hand, and {_runs(load)}."
    )
    change = (
        "Look at the broker and the way to it; raise limits.max_in_flight_jobs, or "
        "limits.partition_span if one long job holds a partition up."
    )
    return sentence, change


def _loop(load: Load) -> tuple[str, str]:
    sentence = (
        f"The worker's own CPU feeds the engine too slowly: its event loop takes "
        f"{_percent(load.loop_busy)} of a core and runs {load.loop_late_s * 1000:.0f} ms late, "
        f"{_count(load.queued)} jobs are queued, and {_runs(load)}."
    )
    return sentence, "Raise engine.replicas, or give the worker more cores."


def _store(load: Load) -> tuple[str, str]:
    sentence = (
        f"Redis, or Kafka as it takes what jobs end with, is too slow: {_count(load.storing)} of "
        f"{_count(load.in_flight)} jobs in hand wait for it, {_count(load.stalled)} of them for "
        f"longer than a second, and {_runs(load)}."
    )
    return (
        sentence,
        "Look at the server of redis.url (CPU, slow log, AOF's disk) and the way to it.",
    )


def _quarantine(load: Load) -> tuple[str, str]:
    sentence = (
        f"{_count(load.quarantined)} jobs that were in the engine when processes died run in small "
        f"cohorts, all others kept out, {_count(load.queued)} are queued, and {_runs(load)}."
    )
    return sentence, "It passes. Look at the log for what ended the processes before."


def _sequences(load: Load) -> tuple[str, str]:
    ours = load.most_items < load.max_num_seqs
    bound = "limits.max_engine_items" if ours else "engine.options.max_num_seqs"
    sentence = (
        f"The engine runs as many sequences as {bound} lets it: {_runs(load)}, "
        f"{_count(load.waiting)} wait inside it, and its KV cache is "
        f"{_percent(load.kv_cache_usage)} full."
    )
    # An engine that only waits gains without end.
    gain = f"; up to about {_count(load.full_batch)} gain much" if load.full_batch < 1e5 else ""
    return sentence, f"Raise {bound}{gain}."


def _kv_cache(load: Load) -> tuple[str, str]:
    held = load.tokens_hold_back >= 0.5
    sentence = (
        f"The KV cache has no room for more: it is {_percent(load.kv_cache_usage)} full"
        f"{', others wait for its tokens' if held else ''}, {load.preemptions_per_s:.1f} sequences "
        f"a second are preempted, and {_runs(load)}."
    )
    # Nobody but a person sets a bound below a cache that has room.
    if held and load.tokens < load.kv_cache_tokens and load.kv_cache_usage < 0.5:
        return (
            sentence,
            "Raise limits.max_engine_tokens, or leave it out: the worker finds its own.",
        )
    if load.devices == 0:
        return sentence, "Give it more memory: engine.options.kv_cache_memory_bytes."
    change = (
        "Give it more memory (engine.options.gpu_memory_utilization, or fewer engine.replicas), or "
        "take half a token (engine.options.kv_cache_dtype = 'fp8')."
    )
    return sentence, change


def _engine_cpu(load: Load) -> tuple[str, str]:
    sentence = (
        f"The engine's own CPU work keeps the GPU waiting: a kernel runs "
        f"{_percent(load.gpu_busy or 0.0)} of the time, while {_runs(load)} and "
        f"{_count(load.waiting)} wait inside the engine."
    )
    return sentence, "Raise engine.replicas: several engines share one GPU."


def _compute(load: Load) -> tuple[str, str]:
    if load.gpu_busy is None:
        return _compute_unseen(load)
    sentence = (
        f"The GPU does what it can: it is busy {_percent(load.gpu_busy)} of the time, "
        f"{_runs(load)}, and the KV cache is {_percent(load.kv_cache_usage)} full."
    )
    return sentence, "Done. Next: engine.options.quantization = 'fp8' if quality allows, or GPUs."


def _compute_unseen(load: Load) -> tuple[str, str]:
    if load.devices:
        sentence = (
            f"The engine does what it can: {_runs(load)}. Whether the GPU is its limit or its own "
            "CPU work cannot be told without NVML."
        )
        return sentence, "Install nvidia-ml-py, which tells; then engine.replicas or fp8."
    sentence = (
        f"The engine does what it can: {_runs(load)}. On a CPU its own work and the model's take "
        "the same cores, and the two limits are one."
    )
    return sentence, "Done. Next: more cores, a smaller or a quantized model, or a GPU."


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
