"""The chart's pod as it is rendered: no root, no rights, a read-only file system; jobs complete.

Its memory and its writable volumes have the sizes that the chart renders.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import helm_python as helm
import psutil
import pytest
import redis
import yaml

from support.chaos.netns import why_not
from support.processes.memory_limit import MemoryLimit
from support.processes.pod import PodProcess, memory_limit_of
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, publish
from support.services.ports import free_port
from support.services.redis_server import RedisServer

_CHART = Path(__file__).parents[2] / "deploy" / "chart"


def rendered(values: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of the worker's pod."""
    with helm.Chart.load(_CHART / "dragoman") as chart:
        given = {"image": {"pullPolicy": "Never"}, **values}
        text = chart.render(given, name="rel")["dragoman/templates/deployment.yaml"]
    [deployment] = [one for one in yaml.safe_load_all(text) if one and one["kind"] == "Deployment"]
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    assert found["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    return found


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    """Return the pod of the example with the echo engine."""
    example = (_CHART / "examples" / "echo.yaml").read_text(encoding="utf-8")
    return rendered(helm.values_from_yaml(example))


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def here(
    port: int, kafka: KafkaBroker, redis_server: RedisServer, topic: Callable[..., str]
) -> dict[str, str]:
    """Return the environment that names the services of the tests."""
    if reason := why_not():
        pytest.skip(reason)
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    return {
        "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap,
        "DRAGOMAN_KAFKA__TOPICS": name,
        "DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC": f"{name}-dead",
        "DRAGOMAN_KAFKA__GROUP_ID": f"{name}-group",
        "DRAGOMAN_REDIS__URL": redis_server.url,
        "DRAGOMAN_HTTP__HOST": "127.0.0.1",
        "DRAGOMAN_HTTP__PORT": str(port),
    }


def completes(
    running: PodProcess, memory: MemoryLimit, here: dict[str, str], ready_s: float
) -> None:
    """Let the pod translate, and check its rights, its memory and its end."""
    port, topic = here["DRAGOMAN_HTTP__PORT"], here["DRAGOMAN_KAFKA__TOPICS"]
    running.wait_for(lambda: _is_ready(port), timeout_s=ready_s, what="/readyz")
    status = Path(f"/proc/{running.pid}/status").read_text(encoding="utf-8")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    started = {one.pid for one in psutil.Process(running.pid).children(recursive=True)}
    assert {running.pid, *started} == memory.pids
    jobs = [
        {"job_id": f"{topic}-{n}", "text": "Hello, my friend.", "target_lang": "de"}
        for n in range(20)
    ]
    publish(here["DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS"], topic, jobs)
    with redis.Redis.from_url(here["DRAGOMAN_REDIS__URL"]) as client:
        assert {ended(client, one["job_id"])["status"] for one in jobs} == {"completed"}
    running.terminate()
    assert running.wait(timeout_s=60) == 0
    assert memory.kills == 0
    assert 0 < memory.peak_bytes < memory.limit_bytes


@pytest.mark.netns
@pytest.mark.memcg
def test_jobs_complete_in_the_chart_s_pod(
    pod: dict[str, Any], here: dict[str, str], tmp_path: Path
) -> None:
    # The judge's process and the memory too.
    more = {"DRAGOMAN_QUALITY__LEVEL": "basic", "DRAGOMAN_MEMORY__ENABLED": "true"}
    with (
        memory_limit_of(pod) as memory,
        PodProcess(pod, here | more, tmp_path / "pod.log", memory=memory) as running,
    ):
        completes(running, memory, here, ready_s=60)


@pytest.mark.netns
@pytest.mark.memcg
@pytest.mark.vllm
@pytest.mark.timeout(900)
def test_vllm_translates_in_the_chart_s_pod(
    here: dict[str, str], demo_model: Path, tmp_path: Path
) -> None:
    options = {"max_num_seqs": 64, "max_model_len": 512}
    spec = rendered(
        {
            "settings": {"engine": {"profile": "demo", "options": options}},
            "model": {"hostPath": str(demo_model), "path": "/srv/model"},
        }
    )
    with (
        memory_limit_of(spec) as memory,
        PodProcess(spec, here, tmp_path / "pod.log", memory=memory) as running,
    ):
        completes(running, memory, here, ready_s=600)


@pytest.mark.netns
@pytest.mark.memcg
def test_a_pod_beyond_its_memory_is_killed(
    pod: dict[str, Any], here: dict[str, str], tmp_path: Path
) -> None:
    with (
        MemoryLimit("24Mi") as memory,
        PodProcess(pod, here, tmp_path / "pod.log", memory=memory) as running,
    ):
        running.wait(timeout_s=60)
        assert memory.kills


def _is_ready(port: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
