"""Report of what limits a running worker's throughput and which setting changes it.

Source is `dragoman_load` on the worker's metrics page: a summary of the last ten seconds, from
which the worker derives `dragoman_bottleneck`. Replicas are judged together and one by one.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from dragoman_connections.settings import SettingsError
from dragoman_worker.health.bottleneck import Cause, Feed, Load, bottleneck, feed_limit, together
from dragoman_worker.tuning.sentences import CAUSES, FEEDS

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
class LimitsReport:
    """Limits of all replicas together and of each by its number, and the GPUs of each."""

    whole: Limit
    replicas: Mapping[str, Limit]
    gpus: Mapping[str, Sequence[str]]
    """Names by replica; empty where NVML reads none."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the whole and of each replica."""
        each = [
            {"replica": name, "gpus": list(self.gpus.get(name, ())), **_json(limit)}
            for name, limit in self.replicas.items()
        ]
        return {**_json(self.whole), "replicas": each}


def ask(url: str) -> LimitsReport:
    """Fetch the report of the worker at `url`. Raises NoAnswer, SettingsError if it is no URL."""
    address = page_of(url)
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as page:  # noqa: S310  the user gives it
            text = page.read()
    except HTTPException as error:  # its text may be a line of another protocol
        raise NoAnswer(_not_a_worker(address, type(error).__name__)) from None
    except (OSError, ValueError) as error:
        cause = getattr(error, "reason", error)
        reason = getattr(cause, "strerror", None) or cause  # without the system's number
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
        raise SettingsError(
            f"{url!r} is not a worker's URL; give --url such as http://127.0.0.1:9464"
        )
    return whole.rstrip("/").removesuffix("/metrics") + "/metrics"


def report(page: str) -> LimitsReport:
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
    return LimitsReport(
        limit(together(list(loads.values()))),
        {name: limit(load) for name, load in loads.items()},
        _gpus(families),
    )


def limit(load: Load) -> Limit:
    """Return the limit of one load."""
    cause = bottleneck(load)
    feed = feed_limit(load) if cause is Cause.FEED else None
    sentence, change = FEEDS[feed](load) if feed else CAUSES[cause](load)
    numbers = {name: value for name, value in asdict(load).items() if value is not None}
    return Limit(cause, feed, sentence, change, numbers)


def _not_a_worker(address: str, reason: str) -> str:
    return (
        f"the server at {address} is not a Dragoman worker ({reason}); "
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


def _gpus(families: Iterable[Metric]) -> dict[str, list[str]]:
    """Return the GPUs that each replica reports, by its number."""
    found: dict[str, list[str]] = {}
    for family in families:
        if family.name == "dragoman_gpu_busy_ratio":
            for sample in family.samples:
                names = found.setdefault(sample.labels.get("replica", "0"), [])
                names.append(sample.labels.get("gpu", ""))
    return {replica: sorted(names) for replica, names in found.items()}


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
