"""Documents through the gateway, on a real Kafka and Redis; the official package is the client."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepl
import pytest
import redis

from support.processes.gateway_process import GatewayProcess
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class DocumentSite:
    """A worker, a Redis, and gateways on one folder of documents."""

    def __init__(self, folder: Path, kafka: KafkaBroker, server: RedisServer, topic: str) -> None:
        self.folder, self.server = folder, server
        self._given: dict[str, Any] = {
            "kafka": kafka.bootstrap,
            "redis": server.url,
            "topic": topic,
        }

    def worker(self, latency_s: float = 0.0) -> ForkedWorker:
        settings = {"engine.echo.latency_s": latency_s}
        return ForkedWorker(self.folder, **self._given, settings=settings)

    def gateway(self, name: str) -> GatewayProcess:
        settings = {
            "serve.documents.dir": str(self.folder / "documents"), "connect_timeout_s": 3,
            "serve.languages": "de,en,fr",
        }  # fmt: skip
        return GatewayProcess(self.folder, **self._given, settings=settings, name=name)

    def deliveries(self) -> list[int]:
        """Return how often each job of the documents was claimed."""
        with redis.Redis.from_url(self.server.url) as client:
            keys = list(client.scan_iter("dragoman:job:*"))
            return [int(client.hget(key, "deliveries") or 0) for key in keys]


@pytest.fixture
def site(
    kafka: KafkaBroker, own_redis: RedisServer, tmp_path: Path, request: pytest.FixtureRequest
) -> DocumentSite:
    topic = kafka.create_topic(f"gwd-{abs(hash(request.node.name)) % 10**9}", 2, None)
    kafka.create_topic(f"{topic}-dead", 1, None)
    return DocumentSite(tmp_path, kafka, own_redis, topic)


@pytest.fixture
def served(site: DocumentSite) -> Iterator[GatewayProcess]:
    with site.worker() as worker, site.gateway("gateway") as gateway:
        worker.ready()
        yield gateway.ready()


def translated(client: deepl.DeepLClient, data: bytes, name: str) -> bytes:
    given, out = io.BytesIO(data), io.BytesIO()
    given.name = name
    client.translate_document(given, out, source_lang="EN", target_lang="DE", timeout_s=60)
    return out.getvalue()


def downloaded(client: deepl.DeepLClient, handle: deepl.DocumentHandle) -> bytes:
    out = io.BytesIO()
    client.translate_document_download(handle, out)
    return out.getvalue()


def test_documents_of_deepls_client_and_what_it_is_told_of_bad_ones(
    site: DocumentSite, served: GatewayProcess
) -> None:
    client = deepl.DeepLClient("any-key", server_url=served.url)
    assert translated(client, b"Hello.\n", "a.txt") == b"[de] Hello.\n"
    assert translated(client, b"<p>Hello.</p>", "../../b.html") == b"<p>[de] Hello.</p>"
    handle = client.translate_document_upload(b"Good day.", target_lang="DE", filename="c.txt")
    again = client.translate_document_upload(b"Good day.", target_lang="DE", filename="c.txt")
    assert (again.document_id, again.document_key) == (handle.document_id, handle.document_key)
    status = client.translate_document_wait_until_done(handle)
    assert (status.done, status.billed_characters) == (True, 9)
    assert downloaded(client, handle) == b"[de] Good day."
    for data, name in ((b"x", "a.unknown"), (b"", "a.txt"), (b"x", "a" * 4000)):
        with pytest.raises(deepl.DeepLException, match="Invalid file data"):
            client.translate_document_upload(data, target_lang="DE", filename=name)
    given = io.BytesIO(b"a")
    given.name = "a.txt"
    with pytest.raises(deepl.DocumentTranslationException, match="Source and target language"):
        client.translate_document(given, io.BytesIO(), source_lang="DE", target_lang="DE")
    with pytest.raises(deepl.DocumentTranslationException, match="corrupt"):
        translated(client, b"PK\x03\x04 no zip", "a.docx")
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_get_status(deepl.DocumentHandle("AB" * 16, handle.document_key))


def test_a_gateway_killed_under_documents_loses_none_and_pays_nothing_twice(
    site: DocumentSite,
) -> None:
    text = "\n\n".join(f"Sentence number {number}." for number in range(2_000))
    with (
        site.worker(0.3) as worker, site.gateway("one") as one, site.gateway("two") as two,
    ):  # fmt: skip
        worker.ready()
        first = deepl.DeepLClient("k", server_url=one.ready().url)
        second = deepl.DeepLClient("k", server_url=two.ready().url)
        handles = [
            first.translate_document_upload(
                f"{number}. {text}".encode(), target_lang="DE", source_lang="EN", filename="a.txt"
            )
            for number in range(3)
        ]
        wait_until(site.deliveries, timeout_s=30, what="jobs")
        one.kill()
        found = []
        for handle in handles:
            assert second.translate_document_wait_until_done(handle, 90).done
            found.append(downloaded(second, handle).decode())
    for number, each in enumerate(found):
        assert each.startswith(f"[de] {number}. Sentence number 0.")
        assert each.count("[de]") == 2_000
    assert set(site.deliveries()) == {1}


def test_an_upload_without_the_boundary_it_names_is_refused_and_leaves_nothing(
    site: DocumentSite, served: GatewayProcess
) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    request = urllib.request.Request(f"{served.url}/v2/document", b"y" * 200_000, kind)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)  # noqa: S310
    refused.value.close()
    assert refused.value.code == 400
    assert [each.name for each in (site.folder / "documents").iterdir()] == ["secret"]
