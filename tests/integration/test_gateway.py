"""The gateway on a real Kafka and Redis with an echo worker; the official packages are clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import deepl
import pytest

from support.processes.gateway_process import GatewayProcess
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

Topic = Callable[..., str]

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture(scope="module")
def served(
    kafka: KafkaBroker, redis_installed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """Start a gateway and an echo worker that all tests of this module share."""
    folder = tmp_path_factory.mktemp("gateway")
    topic = kafka.create_topic("gateway-tests", 2, None)
    kafka.create_topic(f"{topic}-dead", 1, None)
    with RedisServer(binary=redis_installed) as server:
        given: dict[str, Any] = {"kafka": kafka.bootstrap, "redis": server.url, "topic": topic}
        settings = {"serve.formality": ["de", "fr"]}
        with (
            ForkedWorker(folder, **given) as worker,
            GatewayProcess(folder, **given, settings=settings) as gateway,
        ):
            worker.ready()
            yield gateway.ready()


@pytest.fixture
def translator(served: GatewayProcess) -> deepl.DeepLClient:
    return deepl.DeepLClient("any-key", server_url=served.url)


def test_texts_are_translated_in_the_order_of_deepls_client(translator: deepl.DeepLClient) -> None:
    texts = ["Where is the station?", "", "Bonjour, comment allez-vous aujourd'hui ?", "Thanks."]
    found = translator.translate_text(texts, target_lang="DE")
    assert isinstance(found, list)
    assert [each.text for each in found] == [f"[de] {text}" if text else "" for text in texts]
    assert [each.detected_source_lang for each in found] == ["EN", "EN", "FR", "EN"]
    assert [each.billed_characters for each in found] == [len(text) for text in texts]
