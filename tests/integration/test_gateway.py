"""The gateway on a real Kafka and Redis with echo workers; the official packages are clients."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deepl
import libretranslatepy
import pytest
import redis

from support.gateway_callers import Callers, asked, post
from support.processes.gateway_process import GatewayProcess
from support.processes.waiting import wait_until
from support.processes.worker_process import ForkedWorker
from support.services.kafka_broker import KafkaBroker
from support.services.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class Site:
    """A topic and a Redis of its own, with what is started on them."""

    def __init__(self, folder: Path, kafka: KafkaBroker, server: RedisServer, topic: str) -> None:
        self.folder, self.kafka, self.redis, self.topic = folder, kafka, server, topic
        self.given: dict[str, Any] = {
            "kafka": kafka.bootstrap, "redis": server.url, "topic": topic
        }  # fmt: skip

    def worker(self, **settings: Any) -> ForkedWorker:
        return ForkedWorker(self.folder, **self.given, settings=settings)

    def gateway(self, name: str = "gateway", **serve: Any) -> GatewayProcess:
        settings = {f"serve.{key}": value for key, value in serve.items()}
        settings["connect_timeout_s"] = 3
        return GatewayProcess(self.folder, **self.given, settings=settings, name=name)

    def jobs(self) -> list[str]:
        """Return the ids of the jobs that have a key."""
        with redis.Redis.from_url(self.redis.url) as client:
            return sorted(key.decode() for key in client.scan_iter("dragoman:job:gw.*"))

    def deliveries(self) -> list[int]:
        """Return how often each job was claimed."""
        with redis.Redis.from_url(self.redis.url) as client:
            return [int(client.hget(key, "deliveries") or 0) for key in self.jobs()]


@pytest.fixture
def site(
    kafka: KafkaBroker, own_redis: RedisServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Site:
    topic = kafka.create_topic(f"gw-{abs(hash(request.node.name)) % 10**9}", 2, None)
    kafka.create_topic(f"{topic}-dead", 1, None)
    return Site(tmp_path, kafka, own_redis, topic)


@pytest.fixture(scope="module")
def served(
    kafka: KafkaBroker, redis_installed: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """Start a gateway and an echo worker that all tests of this module share."""
    folder = tmp_path_factory.mktemp("gateway")
    topic = kafka.create_topic("gateway-tests", 2, None)
    kafka.create_topic(f"{topic}-dead", 1, None)
    with RedisServer(binary=redis_installed) as server:
        site = Site(folder, kafka, server, topic)
        with site.worker() as worker, site.gateway(formality=["de", "fr"]) as gateway:
            worker.ready()
            yield gateway.ready()


@pytest.fixture
def translator(served: GatewayProcess) -> deepl.DeepLClient:
    return deepl.DeepLClient("any-key", server_url=served.url)


# --- the official packages ----------------------------------------------------------------------


def test_texts_are_translated_in_the_order_of_deepls_client(translator: deepl.DeepLClient) -> None:
    texts = ["Where is the station?", "", "Bonjour, comment allez-vous aujourd'hui ?", "Thanks."]
    found = translator.translate_text(texts, target_lang="DE")
    assert isinstance(found, list)
    assert [each.text for each in found] == [f"[de] {text}" if text else "" for text in texts]
    assert [each.detected_source_lang for each in found] == ["EN", "EN", "FR", "EN"]
    assert [each.billed_characters for each in found] == [len(text) for text in texts]


def test_every_option_of_deepls_client_for_texts_is_understood(
    translator: deepl.DeepLClient,
) -> None:
    found = translator.translate_text(
        '<doc><p>One <x id="1"/> two.</p><raw>stay</raw></doc>',
        source_lang="EN",
        target_lang="PT-BR",
        context="A page.",
        split_sentences="nonewlines",
        preserve_formatting=True,
        formality="prefer_more",
        tag_handling="xml",
        outline_detection=False,
        splitting_tags=["p"],
        non_splitting_tags="b",
        ignore_tags=["raw", "x"],
        model_type="quality_optimized",
        custom_instructions=["Be brief."],
    )
    assert isinstance(found, deepl.TextResult)
    assert found.text == '<doc><p>[pt-BR] One <x id="1"/> two.</p><raw>stay</raw></doc>'
    assert found.model_type_used == "quality_optimized"


def test_deepls_client_reads_languages_and_usage(translator: deepl.DeepLClient) -> None:
    sources = {each.code: each for each in translator.get_source_languages()}
    targets = {each.code: each for each in translator.get_target_languages()}
    assert sources["EN"].supports_formality is None
    assert targets["DE"].supports_formality is True
    assert {"EN-GB", "EN-US", "PT-BR", "PT-PT", "ZH-HANS"} <= targets.keys()
    assert translator.get_usage().character.valid


def test_deepls_client_knows_our_errors(served: GatewayProcess) -> None:
    client = deepl.DeepLClient("any-key", server_url=served.url)
    with pytest.raises(deepl.DeepLException, match=r"target_lang.*not supported"):
        client.translate_text("a", target_lang="XX")
    with pytest.raises(deepl.DeepLException, match=r"Target language.*formality"):
        client.translate_text("a", target_lang="TR", formality="more")


def test_libretranslates_client(served: GatewayProcess) -> None:
    client = libretranslatepy.LibreTranslateAPI(f"{served.url}/")
    assert client.translate("Hello there.", "en", "de") == "[de] Hello there."
    assert client.detect("Bonjour tout le monde, comment ça va ?")[0]["language"] == "fr"
    assert {"en", "de"} <= {each["code"] for each in client.languages()}


def test_curl_sends_a_form_of_two_megabytes_and_is_refused_with_the_limit(
    served: GatewayProcess, tmp_path: Path
) -> None:
    (tmp_path / "form").write_text("text=" + "x" * 2_000_000)
    done = subprocess.run(
        ["curl", "-s", "-w", "%{http_code}", "--data-binary", f"@{tmp_path / 'form'}",
         f"{served.url}/v2/translate"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.endswith("413")
    assert "1048576" in done.stdout


# --- slow jobs, deaths and outages --------------------------------------------------------------


def test_an_sdk_that_gives_up_and_asks_again_pays_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "min_connection_timeout", 1.0)
    text = "#!sleep 3\nHello."
    with site.worker() as worker, site.gateway() as gateway:
        worker.ready()
        client = deepl.DeepLClient("k", server_url=gateway.ready().url)
        with ThreadPoolExecutor(8) as pool:
            found = list(
                pool.map(lambda _: client.translate_text(text, target_lang="DE"), range(8))
            )
    assert {str(each) for each in found} == {"[de] Hello."}
    assert site.deliveries() == [1]


SOON_ABANDONED = """
import sys
from dragoman_gateway import cli, jobs
jobs.ABANDONED_S = 3.0
sys.exit(cli.main())
"""
"""A gateway that takes over after 3 s, not 60, what another one did not publish."""


def test_a_gateway_killed_under_load_pays_nothing_twice_and_leaves_no_caller_without_an_answer(
    site: Site,
) -> None:
    """`benchmarks/gateway/kills.py` kills it 30 times."""
    with site.worker(**{"engine.echo.latency_s": 0.2}) as worker:
        gateway = site.gateway(hold_s=4)
        gateway.argv[1:3] = ["-c", SOON_ABANDONED]
        with gateway:
            worker.ready()
            callers = Callers(gateway.ready().url, 16)
            for _ in range(2):
                callers.wait_for(callers.answered() + 20)
                gateway.kill()
                gateway.start()
                gateway.ready()
            callers.stop()
    assert all(tries[-1] == 200 for tries in callers.answers.values())
    assert set(site.deliveries()) == {1}
    assert len(site.jobs()) == len(callers.answers)


def test_a_redis_that_is_away_is_503_and_nothing_accepted_is_lost(site: Site) -> None:
    with site.worker() as worker, site.gateway(hold_s=8) as gateway:
        worker.ready()
        gateway.ready()
        site.redis.stop()
        status, body = post(gateway.url, asked("Hello."))
        assert (status, body) == (
            503,
            {"message": "The translation queue cannot be reached. Ask again."},
        )
        site.redis.start()
        found = wait_until(
            lambda: post(gateway.url, asked("Hello."))[0] == 200, timeout_s=60, what="an answer"
        )
    assert found


def test_a_broker_that_is_away_is_503_and_nothing_accepted_is_lost(
    own_kafka: KafkaBroker, own_redis: RedisServer, tmp_path: Path
) -> None:
    topic = own_kafka.create_topic("gateway-outage", 2, None)
    own_kafka.create_topic(f"{topic}-dead", 1, None)
    site = Site(tmp_path, own_kafka, own_redis, topic)
    texts = [f"#!sleep 2\nText {number}." for number in range(8)]

    def until_answered(text: str) -> bool:
        return post(gateway.url, asked(text))[0] == 200

    with site.worker() as worker, site.gateway(hold_s=6) as gateway:
        worker.ready()
        gateway.ready()
        with ThreadPoolExecutor(len(texts)) as pool:
            held = list(pool.map(lambda text: pool.submit(post, gateway.url, asked(text)), texts))
            wait_until(lambda: len(site.jobs()) == len(texts), timeout_s=30, what="accepted jobs")
            own_kafka.kill()
            refused, said = post(gateway.url, asked("New."))
            languages = urllib.request.urlopen(f"{gateway.url}/v2/languages", timeout=5).status  # noqa: S310
            own_kafka.restart()
            assert [
                each.result(90)[0] for each in held if each.result(90)[0] not in {200, 503}
            ] == []
        for text in [*texts, "New."]:
            wait_until(lambda text=text: until_answered(text), timeout_s=90, what=text)  # type: ignore[misc]
    assert (refused, languages) == (503, 200)
    assert "Ask again." in said["message"]
    assert len(site.jobs()) == len(texts) + 1


def test_a_stop_answers_what_is_held_and_exits_with_0(site: Site) -> None:
    with site.worker() as worker, site.gateway(grace_s=20) as gateway:
        worker.ready()
        gateway.ready()
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(post, gateway.url, asked("#!sleep 3\nHello."))
            wait_until(site.jobs, timeout_s=30, what="a job that is held")
            gateway.send(signal.SIGTERM)
            assert held.result(60)[0] == 200
        assert gateway.wait(timeout_s=30) == 0


def test_languages_come_from_the_workers(site: Site) -> None:
    with redis.Redis.from_url(site.redis.url) as client, site.gateway() as gateway:
        gateway.ready()
        said = {"languages": ["de", "en", "sw"], "formality": True, "seen": _now()}
        client.hset("dragoman:workers", "w1", json.dumps(said))
        client.expire("dragoman:workers", 60)

        def codes() -> set[str]:
            with urllib.request.urlopen(f"{gateway.url}/v2/languages", timeout=5) as answer:  # noqa: S310
                return {each["language"] for each in json.load(answer)}

        assert wait_until(lambda: codes() == {"DE", "EN", "SW"}, timeout_s=30, what="languages")


def test_a_user_with_the_rights_of_the_page_suffices_in_redis(site: Site) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/gateway.md").read_text()
    [rights] = re.findall(
        r"^ACL SETUSER gateway on >PASSWORD (.+?)^```", page, re.MULTILINE | re.DOTALL
    )
    with redis.Redis.from_url(site.redis.url) as client:
        client.execute_command("ACL", "SETUSER", "gateway", "on", ">PASSWORD", *rights.split())
        with site.worker() as worker:
            worker.ready()
            as_user = {"redis.username": "gateway", "redis.password": "PASSWORD"}
            gateway = site.gateway(languages=["de", "en"])
            gateway.argv += [part for pair in as_user.items() for part in ("--set", "=".join(pair))]
            with gateway:
                gateway.ready()
                assert post(gateway.url, asked("Hello."))[0] == 200
                counted = wait_until(
                    lambda: list(client.scan_iter("dragoman:gateway:usage:*")),
                    timeout_s=30,
                    what="usage",
                )
        assert client.ttl(counted[0]) > 0
        refused = client.execute_command("ACL", "LOG")
    assert refused == []


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
