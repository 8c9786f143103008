"""The chart's pod as it is rendered: no root, no rights, a read-only file system; jobs complete."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest
import redis
import yaml

from support.chaos.netns import why_not
from support.processes.pod import PodProcess
from support.services.kafka_broker import KafkaBroker
from support.services.plain_clients import ended, publish
from support.services.ports import free_port
from support.services.redis_server import RedisServer

_CHART = Path(__file__).parents[2] / "deploy" / "chart"


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    """Return the pod of the example with the echo engine."""
    values = helm.values_from_yaml((_CHART / "examples" / "echo.yaml").read_text(encoding="utf-8"))
    with helm.Chart.load(_CHART / "dragoman") as chart:
        text = chart.render(values, name="rel")["dragoman/templates/deployment.yaml"]
    [deployment] = [one for one in yaml.safe_load_all(text) if one and one["kind"] == "Deployment"]
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    assert found["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    return found


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.mark.netns
def test_jobs_complete_in_the_chart_s_pod(
    pod: dict[str, Any],
    port: int,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    name = topic(partitions=2)
    kafka.create_topic(f"{name}-dead", 1)
    here = {
        "DRAGOMAN_KAFKA__BOOTSTRAP_SERVERS": kafka.bootstrap,
        "DRAGOMAN_KAFKA__TOPICS": name,
        "DRAGOMAN_KAFKA__DEAD_LETTER_TOPIC": f"{name}-dead",
        "DRAGOMAN_KAFKA__GROUP_ID": f"{name}-group",
        "DRAGOMAN_REDIS__URL": redis_server.url,
        "DRAGOMAN_HTTP__HOST": "127.0.0.1",
        "DRAGOMAN_HTTP__PORT": str(port),
        # The judge's process and the memory too.
        "DRAGOMAN_QUALITY__LEVEL": "basic",
        "DRAGOMAN_MEMORY__ENABLED": "true",
    }
    with PodProcess(pod, here, tmp_path / "pod.log") as running:
        running.wait_for(lambda: _is_ready(port), timeout_s=60, what="/readyz")
        status = Path(f"/proc/{running.pid}/status").read_text(encoding="utf-8")
        assert "CapEff:\t0000000000000000" in status
        assert "NoNewPrivs:\t1" in status
        jobs = [
            {"job_id": f"{name}-{n}", "text": "Hello, my friend.", "target_lang": "de"}
            for n in range(20)
        ]
        publish(kafka.bootstrap, name, jobs)
        with redis.Redis.from_url(redis_server.url) as client:
            assert {ended(client, one["job_id"])["status"] for one in jobs} == {"completed"}
        running.terminate()
        assert running.wait(timeout_s=60) == 0


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
