"""Report of what limits a running worker, and the `why` command."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from typer.testing import CliRunner

from dragoman_worker.__main__ import app
from dragoman_worker.health.bottleneck import Cause, Feed, Load, bottleneck
from dragoman_worker.metrics import Metrics
from dragoman_worker.process.http import ReplicaLabel
from dragoman_worker.tuning.why import NoAnswer, limit, report
from support.services.ports import free_ports

BUSY = Load(
    seconds=10,
    empty=0.0,
    starved=0.0,
    queued=12_345,
    in_flight=1_800,
    storing=3,
    stalled=0,
    held=612,
    items=615,
    most_items=615,
    tokens=840_000,
    tokens_hold_back=0.0,
    running=506.4,
    waiting=98,
    kv_cache_usage=0.41,
    preemptions_per_s=0.0,
    items_per_s=186.2,
    loop_busy=0.32,
    loop_late_s=0.001,
    max_num_seqs=512,
    kv_cache_tokens=700_000,
    full_batch=384,
    devices=1,
    gpu_busy=0.975,
)
SIXTEEN = replace(BUSY, running=15.4, waiting=3, items=20, most_items=20, max_num_seqs=16)
SERVED = replace(BUSY, devices=0, gpu_busy=None, servers=1)
STARVED = replace(BUSY, starved=1.0, running=12, waiting=0)


def page(*loads: Load, **more: float) -> str:
    pages = []
    for number, load in enumerate(loads):
        metrics = Metrics(CollectorRegistry())
        metrics.limited_by(bottleneck(load), {**asdict(load), **more})
        served = CollectorRegistry()
        served.register(ReplicaLabel(str(number), [metrics.registry]))
        pages.append(generate_latest(served).decode())
    return "".join(pages)


@pytest.mark.parametrize(
    ("load", "cause", "part", "change"),
    [
        (replace(BUSY, empty=1.0, queued=0, running=0), "queue_empty", "0 jobs wait", "Nothing"),
        (STARVED, "feed", "12 of 512 sequences run", "limits.max_in_flight_jobs"),
        (replace(STARVED, loop_busy=0.93), "feed", "93 % of a core", "engine.replicas"),
        (replace(STARVED, storing=1_790, stalled=1_500), "feed", "1,790 of 1,800", "redis.url"),
        (SIXTEEN, "sequences", "15 of 16 sequences run", "Raise engine.options.max_num_seqs"),
        (
            replace(BUSY, most_items=25, running=25),
            "sequences",
            "25 of 512",
            "limits.max_engine_items",
        ),
        (
            replace(BUSY, running=100, kv_cache_usage=0.97, preemptions_per_s=7.5),
            "kv_cache",
            "7.5 sequences per second are preempted",
            "gpu_memory_utilization",
        ),
        (
            replace(BUSY, running=9, kv_cache_usage=0.9, tokens_hold_back=1.0, devices=0),
            "kv_cache",
            "others wait for its tokens",
            "kv_cache_memory_bytes",
        ),
        (
            replace(BUSY, running=9, kv_cache_usage=0.02, tokens_hold_back=1.0, tokens=9_000),
            "kv_cache",
            "2 % full",
            "limits.max_engine_tokens",
        ),
        (
            replace(BUSY, running=0, waiting=20, items_per_s=0, silent_s=42),
            "no_answer",
            "no sign of life for 42 s",
            "supervisor.stuck_after_s",
        ),
        (
            replace(BUSY, running=0, items_per_s=0, server_away=0.8),
            "server",
            "for 80 % of the time it got no requests",
            "engine_server_away",
        ),
        (replace(BUSY, gpu_busy=0.42), "engine_cpu", "a kernel runs 42 %", "Raise engine.replicas"),
        (BUSY, "compute", "busy 98 % of the time", "fp8"),
        (replace(BUSY, gpu_busy=None), "compute", "Without NVML", "nvidia-ml-py"),
        (replace(BUSY, gpu_busy=None, devices=0), "compute", "two limits are one", "more cores"),
    ],
)
def test_each_limit_is_named_with_its_numbers_and_the_setting(
    load: Load, cause: str, part: str, change: str
) -> None:
    found = limit(load)
    assert found.cause.value == cause
    assert part in found.sentence
    assert change in found.change


def test_the_limit_of_a_server_speaks_of_the_server_and_of_no_cpu_or_gpu_here() -> None:
    for load in (SERVED, replace(SERVED, kv_cache_usage=0.95, running=100)):
        words = f"{limit(load).sentence} {limit(load).change}"
        assert "server" in words
        assert "on a CPU" not in words
        assert "engine.options" not in words


def test_the_stats_of_the_page_are_those_that_the_worker_judged() -> None:
    found = report(page(BUSY, STARVED))
    assert found.replicas["0"].numbers == pytest.approx(asdict(BUSY))
    assert found.replicas["1"].feed is Feed.FETCH
    assert found.whole.cause is Cause.FEED
    assert found.whole.numbers["max_num_seqs"] == 1_024


def test_unknown_stats_of_a_newer_worker_are_ignored() -> None:
    assert report(page(BUSY, of_tomorrow=1.0)).whole.cause is Cause.COMPUTE


def test_a_worker_that_takes_no_jobs_yet_has_no_limit() -> None:
    empty = generate_latest(Metrics(CollectorRegistry()).registry).decode()
    with pytest.raises(NoAnswer, match="ready"):
        report(empty)


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def served() -> Iterator[tuple[list[str], int]]:
    """Serve a page of metrics that the test sets; yield the page and the port."""
    pages: list[str] = [""]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/metrics"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(pages[0].encode(errors="surrogateescape"))

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield pages, server.server_port
        server.shutdown()
        thread.join()


def run(*arguments: str, columns: int = 120) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["why", *arguments], env={"COLUMNS": str(columns)})
    return result.exit_code, result.stdout, result.stderr


def test_the_report_is_a_sentence_the_setting_and_the_numbers(
    served: tuple[list[str], int],
) -> None:
    pages, port = served
    pages[0] = page(SIXTEEN)
    status, out, _ = run("--set", f"http.port={port}")
    assert status == 0
    first, second, *_ = out.splitlines()
    assert first.startswith("sequences: The engine runs as many sequences as")
    assert "max_num_seqs" in second or "max_num_seqs" in first
    assert ["KV", "cache", "in", "use", "41%"] in [line.split() for line in out.splitlines()]


def test_a_narrow_terminal_loses_no_word(served: tuple[list[str], int]) -> None:
    pages, port = served
    pages[0] = page(SIXTEEN, BUSY, STARVED)
    _, wide, _ = run("--url", f"http://127.0.0.1:{port}", columns=200)
    status, narrow, _ = run("--url", f"http://127.0.0.1:{port}/metrics", columns=60)
    assert status == 0
    assert max(map(len, narrow.splitlines())) <= 60
    assert "…" not in narrow
    assert "".join(wide.split()).startswith("".join(narrow.split())[:150])
    assert "replica 2: feed, fetch" in narrow


def test_json_is_one_object_with_each_replica(served: tuple[list[str], int]) -> None:
    pages, port = served
    pages[0] = page(BUSY, SIXTEEN)
    status, out, _ = run("--json", "--set", f"http.port={port}")
    assert status == 0
    data = json.loads(out)
    assert data["numbers"]["queued"] == 24_690
    assert [each["cause"] for each in data["replicas"]] == ["compute", "sequences"]
    assert data["sentence"].startswith("The ")


def test_the_gpus_of_each_replica_are_named(served: tuple[list[str], int]) -> None:
    pages, port = served
    busy = 'dragoman_gpu_busy_ratio{{gpu="{}",replica="{}"}} 0.9\n'
    rows = "".join(
        busy.format(gpu, replica) for gpu, replica in (("0", "0"), ("3", "1"), ("2", "1"))
    )
    pages[0] = page(BUSY, BUSY) + "# TYPE dragoman_gpu_busy_ratio gauge\n" + rows
    _, out, _ = run("--url", f"http://127.0.0.1:{port}")
    assert "replica 0 (GPU 0): compute" in out
    assert "replica 1 (GPU 2, 3): compute" in out
    _, text, _ = run("--json", "--url", f"http://127.0.0.1:{port}")
    assert [each["gpus"] for each in json.loads(text)["replicas"]] == [["0"], ["2", "3"]]


def test_a_missing_worker_is_reported_in_one_line() -> None:
    (port,) = free_ports(1)
    status, out, err = run("--set", f"http.port={port}")
    assert (status, out) == (1, "")
    assert f"no worker answers at http://127.0.0.1:{port}/metrics (Connection refused)" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:x", "http://a b", "file:///etc/hosts", "http://"]
)
@pytest.mark.parametrize("more", [(), ("--watch",)])
def test_an_invalid_url_is_a_usage_error(url: str, more: tuple[str, ...]) -> None:
    status, out, err = run("--url", url, *more)
    assert (status, out) == (2, "")
    assert f"{url!r} is not a worker's URL; give --url such as http://" in err


def test_a_url_needs_no_scheme(served: tuple[list[str], int]) -> None:
    pages, port = served
    pages[0] = page(BUSY)
    assert run("--url", f"127.0.0.1:{port}")[0] == 0
    assert run("--url", f"localhost:{port}/metrics")[0] == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<html><body>Welcome</body></html>",
        "# HELP up Whether.\n# TYPE up gauge\nup 1.0\n",
        "\udcff",
    ],
)
def test_the_page_of_another_program_is_no_worker(
    content: str, served: tuple[list[str], int]
) -> None:
    pages, port = served
    pages[0] = content
    status, out, err = run("--url", f"http://127.0.0.1:{port}")
    assert (status, out) == (1, "")
    assert f"the server at http://127.0.0.1:{port}/metrics is not a Dragoman worker" in err
    assert err.count("\n") == 1


def test_a_server_of_another_protocol_is_no_worker() -> None:
    def refuse() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"-ERR unknown command 'GET'\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse)
        thread.start()
        status, out, err = run("--url", f"http://127.0.0.1:{listening.getsockname()[1]}")
        thread.join()
    assert (status, out) == (1, "")
    assert "is not a Dragoman worker (BadStatusLine)" in err


def test_columns_that_do_not_fit_are_printed_below_and_nothing_is_cut(
    served: tuple[list[str], int],
) -> None:
    pages, port = served
    pages[0] = page(SIXTEEN, BUSY, STARVED, BUSY)
    _, out, _ = run("--url", f"http://127.0.0.1:{port}", columns=40)
    lines = [line.split() for line in out.splitlines()]
    heads = [line[1:] for line in lines if line[:1] == ["replica"] and ":" not in line[1]]
    assert list(chain(*heads)) == ["all", "0", "1", "2", "3"]
    queued = [line[2:] for line in lines if line[:2] == ["jobs", "queued"]]
    assert list(chain(*queued)) == ["49,380", *["12,345"] * 4]
    assert sum(line[:2] == ["KV", "cache"] and "41%" in line for line in lines) == len(heads)


def test_port_0_needs_an_explicit_url() -> None:
    status, _, err = run("--set", "http.port=0")
    assert status == 2
    assert "--url" in err
