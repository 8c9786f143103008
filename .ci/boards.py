"""The panels of the Grafana dashboards: fleet, one worker, dead letters and quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

JOB: Final = 'job=~"$job"'
_REPLICA: Final = 'job=~"$job",instance=~"$instance",replica=~"$replica"'
_SHARES: Final = 'stat=~"empty|gpu_busy|kv_cache_usage|loop_busy|starved|tokens_hold_back"'
_SAVED: Final = 'result=~"hit|approved|joined"'
_RATE: Final = "$__rate_interval"

Query = tuple[str, str]
"""Expression and legend."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, for the first row of a dashboard."""

    title: str
    about: str
    expression: str
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time."""

    title: str
    about: str
    queries: Sequence[Query]
    unit: str = "short"
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard: its rows by title."""

    name: str
    title: str
    about: str
    by_replica: bool
    rows: dict[str, Sequence[Figure | Chart]]


def _rate(metric: str, labels: str, by: str = "") -> str:
    total = f"(rate({metric}{{{labels}}}[{_RATE}]))"
    return f"sum by ({by}) {total}" if by else f"sum {total}"


def _quantiles(histogram: str, labels: str, more: str = "") -> list[Query]:
    """Return the median, the 95th and the 99th percentile of a histogram."""
    buckets = f"sum by (le) (rate({histogram}_bucket{{{labels}{more}}}[{_RATE}]))"
    return [(f"histogram_quantile(0.{q}, {buckets})", f"{q} %") for q in ("50", "95", "99")]


def _gauge(metric: str, labels: str, by: str = "") -> str:
    return f"sum by ({by}) ({metric}{{{labels}}})" if by else f"sum({metric}{{{labels}}})"


# --- fleet ----------------------------------------------------------------------------------------

FLEET: Final = Board(
    "fleet",
    "Dragoman: fleet",
    "All workers of a job: the backlog, the throughput, and what limits it.",
    by_replica=False,
    rows={
        "Now": [
            Figure("Replicas ready", "Engines that take jobs.", _gauge("dragoman_ready", JOB)),
            Figure(
                "Jobs per second",
                "Jobs that reached a terminal state.",
                _rate("dragoman_jobs_total", JOB),
            ),
            Figure("Waiting jobs", "Unsettled records.", _gauge("dragoman_lag_jobs", JOB)),
            Figure(
                "ETA of the backlog",
                "At the rate of the last 30 minutes. Too long: add workers.",
                f"{_gauge('dragoman_lag_jobs', JOB)} / "
                f"sum(rate(dragoman_jobs_total{{{JOB}}}[30m]))",
                "s",
            ),
            Figure(
                "Dead letters in an hour",
                "Details: the dead letters dashboard.",
                f"sum(increase(dragoman_dead_letters_total{{{JOB}}}[1h]))",
            ),
            Figure(
                "Next certificate to expire",
                "Of the certificates that the settings name.",
                f"min(dragoman_certificate_expiry_timestamp_seconds{{{JOB}}}) * 1000",
                "dateTimeFromNow",
            ),
        ],
        "Throughput": [
            Chart(
                "Jobs per second",
                "By terminal status.",
                [(_rate("dragoman_jobs_total", JOB, "status"), "{{status}}")],
                stacked=True,
            ),
            Chart(
                "Items per second",
                "Items that left the engine, and items of finished jobs.",
                [
                    (_rate("dragoman_engine_items_total", JOB), "left the engine"),
                    (_rate("dragoman_items_total", JOB), "in finished jobs"),
                ],
            ),
            Chart(
                "Tokens per second",
                "Read and written by the engines.",
                [(_rate("dragoman_tokens_total", JOB, "kind"), "{{kind}}")],
            ),
        ],
        "Backlog": [
            Chart(
                "Waiting jobs",
                "Unsettled records by worker, and by topic where a worker has several.",
                [
                    (_gauge("dragoman_lag_jobs", JOB, "instance"), "{{instance}}"),
                    (_gauge("dragoman_class_lag_jobs", JOB, "topic"), "topic {{topic}}"),
                ],
            ),
            Chart(
                "Time in the queue",
                "From the record's timestamp to the first item in the engine.",
                _quantiles("dragoman_job_seconds", JOB, ',phase="queue"'),
                "s",
            ),
            Chart(
                "Time per job",
                "From the record's timestamp to the terminal state.",
                _quantiles("dragoman_job_seconds", JOB, ',phase="total"'),
                "s",
            ),
        ],
        "Gateway": [
            Chart(
                "Requests per second",
                "By status. 499: the client disconnected before the answer; its job keeps running.",
                [(_rate("dragoman_gateway_requests_total", JOB, "status"), "{{status}}")],
                stacked=True,
            ),
            Chart(
                "Time per request",
                "Time until the answer, all endpoints.",
                _quantiles("dragoman_gateway_request_seconds", JOB),
                "s",
            ),
            Chart(
                "Held requests",
                "Requests waiting for a translation, by gateway.",
                [(_gauge("dragoman_gateway_held", JOB, "instance"), "{{instance}}")],
            ),
            Chart(
                "Predicted wait",
                "For a new job, by topic. Above serve.shed_after_s, new jobs are refused.",
                [
                    (
                        f"max by (topic) (dragoman_gateway_predicted_wait_seconds{{{JOB}}})",
                        "{{topic}}",
                    ),
                    (_rate("dragoman_gateway_shed_total", JOB, "topic"), "refused/s of {{topic}}"),
                ],
                "s",
            ),
            Chart(
                "Characters per second",
                "Sent to the queue by each key.",
                [(_rate("dragoman_gateway_characters_total", JOB, "key"), "{{key}}")],
            ),
            Chart(
                "Documents",
                "In the folder of the gateways by status, and those that found no room.",
                [
                    (
                        f"max by (status) (dragoman_gateway_documents{{{JOB}}})",
                        "{{status}}",
                    ),
                    (_rate("dragoman_gateway_documents_no_space_total", JOB), "no room/s"),
                ],
            ),
        ],
        "Limits": [
            Chart(
                "What limits throughput",
                "Replicas by cause: queue_empty is idle, feed is Kafka, Redis or the event loop.",
                [(f"count by (cause) (dragoman_bottleneck{{{JOB}}} == 1)", "{{cause}}")],
                stacked=True,
            ),
            Chart(
                "GPU busy",
                "Share of time in which a kernel ran; 100 % does not mean that the GPU is full.",
                [(f"dragoman_gpu_busy_ratio{{{JOB}}}", "{{instance}} GPU {{gpu}}")],
                "percentunit",
            ),
            Chart(
                "Engine fed",
                "Items in the engines, and the most that admission allows.",
                [
                    (_gauge("dragoman_items_in_flight", JOB), "in the engines"),
                    (_gauge("dragoman_admission_items", JOB), "allowed"),
                    (_gauge("dragoman_items_waiting", JOB), "waiting for a permit"),
                ],
            ),
        ],
        "Health": [
            Chart(
                "Replicas",
                "Up: answered the scrape. Ready: takes jobs.",
                [
                    (_gauge("dragoman_replica_up", JOB), "up"),
                    (_gauge("dragoman_ready", JOB), "ready"),
                ],
            ),
            Chart(
                "Restarts and redeliveries",
                "Both follow crashes and lost partitions; at a steady rate, check the log.",
                [
                    (f"sum(increase(dragoman_replica_restarts_total{{{JOB}}}[5m]))", "restarts"),
                    (f"sum(increase(dragoman_redeliveries_total{{{JOB}}}[5m]))", "redeliveries"),
                ],
            ),
            Chart(
                "Commits per second",
                "By outcome; failed: the group's coordinator.",
                [(_rate("dragoman_commits_total", JOB, "outcome"), "{{outcome}}")],
            ),
            Chart(
                "Uncommitted work",
                "The longest that finished work has waited for Redis or its commit.",
                [(f"max by (instance) (dragoman_commit_age_seconds{{{JOB}}})", "{{instance}}")],
                "s",
            ),
            Chart(
                "Dropped lines of the log",
                "Per second. Nobody reads stderr, or its disk is full; jobs continue.",
                [(_rate("dragoman_log_lines_dropped_total", JOB), "lines")],
            ),
            Chart(
                "Versions",
                "Replicas by version, during an upgrade.",
                [(f"count by (version) (dragoman_build_info{{{JOB}}})", "{{version}}")],
                stacked=True,
            ),
        ],
    },
)

# --- one worker -----------------------------------------------------------------------------------

WORKER: Final = Board(
    "worker",
    "Dragoman: one worker",
    "The replicas of one worker, from the partition to the offset.",
    by_replica=True,
    rows={
        "Now": [
            Figure("Ready", "Replicas that take jobs.", _gauge("dragoman_ready", _REPLICA)),
            Figure("Jobs in flight", "Polled.", _gauge("dragoman_jobs_in_flight", _REPLICA)),
            Figure("Items in the engine", "", _gauge("dragoman_items_in_flight", _REPLICA)),
            Figure("Jobs per second", "", _rate("dragoman_jobs_total", _REPLICA)),
            Figure("Waiting jobs", "", _gauge("dragoman_lag_jobs", _REPLICA)),
            Figure(
                "Uncommitted work",
                "Above 60: the log names Kafka or Redis.",
                f"max(dragoman_commit_age_seconds{{{_REPLICA}}})",
                "s",
            ),
        ],
        "Path of a job": [
            Chart(
                "Jobs in flight, by step",
                "Many in claim or settle: Redis or the broker is slow.",
                [(_gauge("dragoman_jobs_in_step", _REPLICA, "step"), "{{step}}")],
                stacked=True,
            ),
            Chart(
                "Mean time, by phase",
                "Of finished jobs.",
                [
                    (
                        (
                            f"{_rate('dragoman_job_seconds_sum', _REPLICA, 'phase')} / "
                            f"{_rate('dragoman_job_seconds_count', _REPLICA, 'phase')}"
                        ),
                        "{{phase}}",
                    )
                ],
                "s",
            ),
            Chart(
                "Wait for a permit",
                "Time an item waits before it enters the engine.",
                _quantiles("dragoman_engine_wait_seconds", _REPLICA),
                "s",
            ),
        ],
        "Engine": [
            Chart(
                "Sequences",
                "Inside the engine; compare running with max_num_seqs.",
                [
                    (_gauge("dragoman_engine_running", _REPLICA, "replica"), "{{replica}} running"),
                    (_gauge("dragoman_engine_waiting", _REPLICA, "replica"), "{{replica}} waiting"),
                ],
            ),
            Chart(
                "Admission",
                "Items in the engine and waiting for a permit, and the limit.",
                [
                    (_gauge("dragoman_items_in_flight", _REPLICA), "in the engine"),
                    (_gauge("dragoman_admission_items", _REPLICA), "bound"),
                    (_gauge("dragoman_items_waiting", _REPLICA), "waiting"),
                ],
            ),
            Chart(
                "Tokens",
                "Tokens reserved by the items in the engine, and the limit.",
                [
                    (_gauge("dragoman_admission_held_tokens", _REPLICA), "reserved"),
                    (_gauge("dragoman_admission_tokens", _REPLICA), "bound"),
                ],
            ),
            Chart(
                "Seconds per token",
                "Rising with the items in flight: the engine is full.",
                _quantiles("dragoman_decode_seconds_per_token", _REPLICA),
                "s",
            ),
            Chart(
                "KV cache in use",
                "Full with preemptions: the cache limits throughput.",
                [
                    (
                        f"max by (replica) (dragoman_kv_cache_usage_ratio{{{_REPLICA}}})",
                        "{{replica}}",
                    )
                ],
                "percentunit",
            ),
            Chart(
                "Preemptions per second",
                "A steady rate: more memory for the cache.",
                [(_rate("dragoman_preemptions_total", _REPLICA, "replica"), "{{replica}}")],
            ),
            Chart(
                "GPU memory",
                "By NVML.",
                [
                    (f"dragoman_gpu_memory_used_bytes{{{_REPLICA}}}", "GPU {{gpu}} used"),
                    (f"dragoman_gpu_memory_total_bytes{{{_REPLICA}}}", "GPU {{gpu}} total"),
                ],
                "bytes",
            ),
        ],
        "Limits": [
            Chart(
                "What limits throughput",
                "1 for the cause, as dragoman-worker why reports it.",
                [(_gauge("dragoman_bottleneck", _REPLICA, "cause"), "{{cause}}")],
                stacked=True,
            ),
            Chart(
                "Engine idle while jobs waited",
                "Share of time. If it grows, run dragoman-worker why.",
                [(_rate("dragoman_feed_wait_seconds_total", _REPLICA, "replica"), "{{replica}}")],
                "percentunit",
            ),
            Chart(
                "Shares behind it",
                "Means of the last 10 s.",
                [(f"avg by (stat) (dragoman_load{{{_REPLICA},{_SHARES}}})", "{{stat}}")],
                "percentunit",
            ),
        ],
        "Process": [
            Chart(
                "Event loop",
                "Lag with high CPU: the worker blocks its loop. Lag with low CPU: too few cores.",
                [
                    (f"max(dragoman_event_loop_lag_seconds{{{_REPLICA}}})", "lag"),
                    (f"max(dragoman_event_loop_lag_cpu_seconds{{{_REPLICA}}})", "CPU in it"),
                ],
                "s",
            ),
            Chart(
                "Event loop busy",
                "Above 0.7: more replicas.",
                [
                    (
                        f"max by (replica) (dragoman_event_loop_busy_ratio{{{_REPLICA}}})",
                        "{{replica}}",
                    )
                ],
                "percentunit",
            ),
            Chart(
                "Watchdogs that fail",
                "1: the check saw no sign of life; the replica restarts on its own.",
                [(f"max by (check) (dragoman_watchdog_failing{{{_REPLICA}}})", "{{check}}")],
            ),
            Chart(
                "Tasks",
                "Follow the jobs in flight.",
                [(_gauge("dragoman_event_loop_tasks", _REPLICA, "replica"), "{{replica}}")],
            ),
            Chart(
                "Kafka",
                "Ignored completions follow every rebalance; rebuilds and resyncs are rare.",
                [
                    (_rate("dragoman_stale_completions_total", _REPLICA), "ignored completions"),
                    (_rate("dragoman_resyncs_total", _REPLICA), "resyncs"),
                    (_rate("dragoman_consumer_rebuilds_total", _REPLICA), "rebuilds"),
                ],
            ),
        ],
    },
)

# --- dead letters and quality ---------------------------------------------------------------------

QUALITY: Final = Board(
    "quality",
    "Dragoman: dead letters and quality",
    "What failed, what the gates found, what the memory saved.",
    by_replica=False,
    rows={
        "In the time shown": [
            Figure(
                "Dead letters",
                "dragoman dead-letters list shows them.",
                f"sum(increase(dragoman_dead_letters_total{{{JOB}}}[$__range]))",
            ),
            Figure(
                "Items that failed the gates",
                "Share of all items.",
                f'sum(increase(dragoman_items_total{{{JOB},quality="fail"}}[$__range])) / '
                f"sum(increase(dragoman_items_total{{{JOB}}}[$__range]))",
                "percentunit",
            ),
            Figure(
                "Memory hits",
                "Share of lookups.",
                f"sum(increase(dragoman_memory_total{{{JOB},{_SAVED}}}[$__range])) / "
                f"sum(increase(dragoman_memory_total{{{JOB}}}[$__range]))",
                "percentunit",
            ),
            Figure(
                "Records lost",
                "Deleted by Kafka before they were read.",
                f"sum(increase(dragoman_lost_to_retention_total{{{JOB}}}[$__range]))",
            ),
            Figure(
                "Recreated partitions",
                "Their topic was deleted and created again; they are read from the beginning.",
                f"sum(increase(dragoman_recreated_partitions_total{{{JOB}}}[$__range]))",
            ),
        ],
        "Failures": [
            Chart(
                "Dead letters in 5 minutes",
                "By code.",
                [
                    (
                        f"sum by (code) (increase(dragoman_dead_letters_total{{{JOB}}}[5m])) > 0",
                        "{{code}}",
                    )
                ],
                stacked=True,
            ),
            Chart(
                "Jobs that did not complete",
                "Per second, by status.",
                [
                    (
                        _rate("dragoman_jobs_total", f'{JOB},status!="completed"', "status"),
                        "{{status}}",
                    )
                ],
            ),
            Chart(
                "Repeated generations",
                "Per second, by code. Near the rate of the items: the model loops.",
                [(f"{_rate('dragoman_retries_total', JOB, 'code')} > 0", "{{code}}")],
            ),
        ],
        "Quality": [
            Chart(
                "Verdicts",
                "Share of the items.",
                [
                    (
                        (
                            f"{_rate('dragoman_items_total', JOB, 'quality')} / ignoring (quality) "
                            f"group_left {_rate('dragoman_items_total', JOB)}"
                        ),
                        "{{quality}}",
                    )
                ],
                "percentunit",
                stacked=True,
            ),
            Chart(
                "Findings per second, by gate",
                "If only one gate rises, look at its answers with dragoman result --check.",
                [(f"{_rate('dragoman_gates_total', JOB, 'gate')} > 0", "{{gate}}")],
            ),
            Chart(
                "Findings per second, by what followed",
                "",
                [(_rate("dragoman_gates_total", JOB, "action"), "{{action}}")],
            ),
            Chart(
                "Time to judge an answer",
                "Above 0.1 s: the judge process lacks CPU.",
                _quantiles("dragoman_judge_seconds", JOB),
                "s",
            ),
            Chart(
                "Judges replaced",
                "In 5 minutes; usually 0.",
                [(f"sum(increase(dragoman_judge_restarts_total{{{JOB}}}[5m]))", "restarts")],
            ),
            Chart(
                "Memory",
                "Lookups per second, by result.",
                [(_rate("dragoman_memory_total", JOB, "result"), "{{result}}")],
                stacked=True,
            ),
        ],
    },
)

BOARDS: Final = (FLEET, WORKER, QUALITY)
