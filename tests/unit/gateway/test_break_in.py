"""What callers try who want more than they may: other callers' secrets, time, memory or room."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from dragoman_gateway import connections, held
from dragoman_gateway.keys import KeyRing
from dragoman_gateway.log import Log
from dragoman_producer.testing import InMemoryClient
from support.fakes.glossaries_in_memory import GlossariesInMemory
from support.fakes.played_gateway import PlayedGateway, detector, write_keys

ASKED = {"text": "Hello.", "source_lang": "EN", "target_lang": "DE"}
BODY = json.dumps(ASKED).encode()
LENGTH = f"Content-Length: {len(BODY)}"


def header(secret: str) -> dict[str, str]:
    return {"Authorization": f"DeepL-Auth-Key {secret}"}


def request(*headers: str, body: bytes = BODY, path: str = "/v2/translate") -> bytes:
    """Return the bytes of a POST of JSON."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def submitted(client: InMemoryClient, count: int) -> None:
    """Return once so many jobs are submitted."""
    async with asyncio.timeout(30):
        while len(client.submitted) < count:  # noqa: ASYNC110 - the client has no event for it
            await asyncio.sleep(0.01)


# --- HTTP -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        (LENGTH, "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding : chunked",),
        ("Content-Length: 5", "Content-Length: 50"),
        (f"Content-Length: +{len(BODY)}",),
        (f"Content-Length: {len(BODY)}, {len(BODY)}",),
        (LENGTH, "X: a\r\n Transfer-Encoding: chunked"),
        (LENGTH, "X: a\rTransfer-Encoding: chunked"),
        (LENGTH, "X: a\x00b"),
        (LENGTH, "Host: other"),
    ],
)
async def test_a_request_whose_end_is_in_doubt_is_refused_and_nothing_behind_it_is_read(
    headers: tuple[str, ...],
) -> None:
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(request(*headers) + LAST)
        assert gateway.client.submitted == []
    assert raw.count(b"HTTP/1.") == 1
    assert raw.startswith(b"HTTP/1.0 400 ")


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
async def test_an_offer_of_another_protocol_is_not_taken(protocol: str) -> None:
    """Java's client offers HTTP/2 with each of its requests, also with those that have a body."""
    offer = request(LENGTH, "Connection: Upgrade", f"Upgrade: {protocol}")
    async with PlayedGateway() as gateway, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        for _ in range(3):
            writer.write(offer)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert b"[de] Hello." in await reader.readuntil(b"}]}")
        writer.close()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("text=%E9%99%BD%E5%AD%90%E3%83%93%E3%83%BC%E3%83%A0", "陽子ビーム"),
        ("text=a%26b%3Dc%2Bd+e%23f", "a&b=c+d e#f"),
        ("text=a;b", "a;b"),
    ],
)
async def test_escapes_in_a_query_are_read_once(query: str, text: str) -> None:
    async with PlayedGateway() as gateway:
        head = f"GET /v2/translate?{query}&source_lang=EN&target_lang=DE HTTP/1.1\r\n"
        raw = await gateway.raw(head.encode() + b"Host: localhost\r\nConnection: close\r\n\r\n")
    assert json.loads(raw.partition(b"\r\n\r\n")[2])["translations"][0]["text"] == f"[de] {text}"


async def test_every_answer_has_its_headers_and_no_version_of_a_server() -> None:
    async with PlayedGateway() as gateway:
        sent = [
            request("Connection: close", LENGTH),
            b"no http\r\n\r\n",
            b"GET /x HTTP/1.0\r\n\r\n",
        ]
        raws = [await gateway.raw(each) for each in sent]
    for raw in raws:
        lines = raw.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        found = {line.split(": ")[0]: line.split(": ")[1] for line in lines}
        assert len(found["X-Trace-ID"]) == 32
        assert found["Cache-Control"] == "no-store"
        assert found["X-Content-Type-Options"] == "nosniff"
        assert found["Server"] == "dragoman"


async def test_what_a_proxy_would_say_of_a_caller_changes_nothing(tmp_path: Path) -> None:
    claims = {
        "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "localhost", "X-Real-IP": "127.0.0.1",
        "Forwarded": "for=127.0.0.1", "X-Original-URL": "/health", "X-HTTP-Method-Override": "GET",
    }  # fmt: skip
    async with PlayedGateway(keys_file=write_keys(tmp_path, "s3cret")) as gateway:
        status, _ = await gateway.post("/v2/translate", ASKED, headers=claims)
    assert status == 403


# --- memory and room ------------------------------------------------------------------------------


async def test_a_client_that_does_not_read_its_answers_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "WRITE_S", 0.2)
    body = json.dumps({**ASKED, "text": "x" * 100_000}).encode()
    sent = request(f"Content-Length: {len(body)}", body=body)

    async def unread(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        try:
            while True:
                writer.write(sent)
                await writer.drain()
        finally:
            writer.close()

    async with PlayedGateway() as gateway, asyncio.timeout(60):
        with pytest.raises(ConnectionError):  # buffers fill, and the gateway ends it
            await unread(gateway.port)
        assert (await gateway.post("/v2/translate", ASKED))[0] == 200


async def test_a_wrong_key_in_a_header_is_refused_before_the_body_has_come(tmp_path: Path) -> None:
    sent = request("Authorization: Bearer wrong", "Content-Length: 1000", body=b"{")
    async with PlayedGateway(keys_file=write_keys(tmp_path, "s3cret")) as gateway:
        raw = await gateway.raw(sent)
    assert raw.startswith(b"HTTP/1.1 403 ")


async def test_large_bodies_of_unknown_callers_are_bounded_together_and_small_ones_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "_MOST_BYTES", 150_000)
    half = request("Content-Length: 200000", body=b" " * 100_000)
    async with PlayedGateway(keys_file=write_keys(tmp_path, "s3cret")) as gateway:
        pairs = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(5)]
        for _, writer in pairs:
            writer.write(half)
        ended = [asyncio.create_task(reader.read(100)) for reader, _ in pairs]
        done, pending = await asyncio.wait(ended, timeout=30, return_when="FIRST_COMPLETED")
        known, _ = await gateway.post("/v2/translate", ASKED, headers=header("s3cret"))
        body, _ = await gateway.post("/v2/translate", {**ASKED, "auth_key": "s3cret"})
        for each in pending:
            each.cancel()
        for _, writer in pairs:
            writer.close()
    assert all(each.result().startswith(b"HTTP/1.1 503 ") for each in done)
    assert (known, body) == (200, 200)


async def test_one_key_cannot_hold_all_connections(tmp_path: Path) -> None:
    client = InMemoryClient(held=True)
    two = write_keys(tmp_path, "one", "two")
    async with PlayedGateway(client, keys_file=two, max_connections=8) as gateway:
        crowd = [
            asyncio.create_task(gateway.post("/v2/translate", ASKED, headers=header("one")))
            for _ in range(6)
        ]
        done, _ = await asyncio.wait(crowd, return_when="FIRST_COMPLETED", timeout=30)
        other = asyncio.create_task(gateway.post("/v2/translate", ASKED, headers=header("two")))
        await submitted(client, 2)
        await client.run_all()
        statuses = [status for status, _ in await asyncio.gather(*crowd)]
        assert (await other)[0] == 200
    assert [each.result()[0] for each in done] == [429] * len(done)
    assert sorted(statuses) == [200] * 4 + [429] * 2


async def test_texts_that_take_long_are_read_and_written_beside_the_requests_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: set[str] = set()
    plain = type(detector()).detect

    def noted(self: Any, *given: Any) -> Any:
        threads.add(threading.current_thread().name)
        return plain(self, *given)

    monkeypatch.setattr(type(detector()), "detect", noted)
    async with PlayedGateway() as gateway:
        body = {"text": "Hello, my friend. " * 1_000}
        status, _ = await gateway.post("/v2/translate", {**body, "target_lang": "DE"})
    assert status == 200
    assert {name.split("_")[0] for name in threads} == {"texts"}


# --- keys -----------------------------------------------------------------------------------------


async def test_missing_wrong_and_expired_keys_cannot_be_told_apart(tmp_path: Path) -> None:
    file = write_keys(tmp_path, "old\nexpires = 2020-01-01T00:00:00Z", "new")
    answers = []
    async with PlayedGateway(keys_file=file) as gateway:
        for given in ({}, header("wrong"), header("old"), header("x" * 5_000)):
            async with gateway.http.post("/v2/translate", json=ASKED, headers=given) as response:
                ours = {
                    k: v for k, v in response.headers.items() if k not in {"X-Trace-ID", "Date"}
                }
                answers.append((response.status, await response.json(), ours))
    assert all(each == answers[0] for each in answers)


def test_every_secret_takes_one_digest_and_one_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = KeyRing(write_keys(tmp_path, "old\nexpires = 2020-01-01T00:00:00Z", "new"), ())
    steps: list[str] = []

    def noted(name: str, call: Any) -> Any:
        def work(*given: Any) -> Any:
            steps.append(name)
            return call(*given)

        return work

    monkeypatch.setattr(hashlib, "sha256", noted("digest", hashlib.sha256))
    monkeypatch.setattr(hmac, "compare_digest", noted("compare", hmac.compare_digest))
    for secret in (None, "", "wrong", "old", "new"):
        steps.clear()
        ring.find(secret)
        assert steps == ["digest", "compare"]


async def test_a_key_learns_nothing_of_anothers_texts(tmp_path: Path) -> None:
    file = write_keys(tmp_path, 'one\nglossaries = ["names"]', 'two\nmemory = "off"')
    client = InMemoryClient(held=True)
    glossaries = GlossariesInMemory()
    glossaries.add("names", "en", {"de": {"Hello": "Hallo"}})
    async with PlayedGateway(client, keys_file=file, glossaries=glossaries) as gateway:
        first = asyncio.create_task(gateway.post("/v2/translate", ASKED, headers=header("one")))
        second = asyncio.create_task(gateway.post("/v2/translate", ASKED, headers=header("two")))
        await submitted(client, 2)  # neither waits for the other's job
        await client.run_all()
        await asyncio.gather(first, second)
        jobs = {each.metadata["key"]: each for each in client.submitted if each.metadata}
        theirs = await gateway.post(
            "/v2/translate", {**ASKED, "glossary_id": "names"}, headers=header("two")
        )
        none = await gateway.post(
            "/v2/translate", {**ASKED, "glossary_id": "nothing"}, headers=header("two")
        )
        _, usage = await gateway.get("/v2/usage", headers=header("two"))
    assert jobs["key0"].job_id != jobs["key1"].job_id
    assert jobs["key1"].memory == "off"
    assert theirs == none == (404, {"message": "Glossary not found."})
    assert usage["character_count"] == len("Hello.")


@pytest.mark.parametrize(
    "given",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Host": ""},
        {"Host": "[::1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_without_keys_a_page_in_a_browser_of_this_machine_may_not_ask(
    given: dict[str, str],
) -> None:
    async with PlayedGateway(cors_origins=["https://mine.example"]) as gateway:
        for path in ("/v2/translate", "/translate", "/detect"):
            status, _ = await gateway.post(path, {**ASKED, "q": "Hello."}, headers=given)
            assert status == 403
        assert gateway.client.submitted == []


@pytest.mark.parametrize(
    "given",
    [
        {"Host": "localhost:1"},
        {"Host": "[::1]:80"},
        {"Origin": "https://mine.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "moz-extension://b3d6c9e0", "Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_without_keys_programs_pages_and_extensions_of_this_machine_may_ask(
    given: dict[str, str],
) -> None:
    async with PlayedGateway(cors_origins=["https://mine.example"]) as gateway:
        status, _ = await gateway.post("/v2/translate", ASKED, headers=given)
    assert status == 200


async def test_nothing_that_a_caller_says_is_logged_or_counted_by_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A canary in every header, in the path, in the query and in every field of every body."""
    names = (
        "Authorization", "Accept", "Accept-Language", "Cookie", "Content-Language", "From",
        "Origin", "Referer", "User-Agent", "traceparent", "tracestate", "X-Forwarded-For",
        "X-Request-ID", "X-Trace-ID", "Content-Type", "Expect", "Upgrade",
        "Access-Control-Request-Method",
    )  # fmt: skip
    fields = (
        "text", "q", "source_lang", "target_lang", "source", "target", "context", "formality",
        "glossary_id", "tag_handling", "model_type", "custom_instructions", "api_key", "auth_key",
        "format", "split_sentences", "ignore_tags", "canary",
    )  # fmt: skip
    async with PlayedGateway(keys_file=write_keys(tmp_path, "canary-key")) as gateway:
        gateway.front._log = log = Log(requests=True)
        for path in ("/v2/translate", "/translate", "/v2/usage", "/v2/canary", "/detect"):
            for name in names:
                await gateway.post(path, ASKED, headers={**header("canary-key"), name: "canary"})
            for field in fields:
                for value in ("canary", ["canary"], {"canary": "canary"}):
                    body = {**ASKED, "q": "a", "source": "en", "target": "de", field: value}
                    await gateway.post(f"{path}?{field}=canary", body, headers=header("canary-key"))
        await gateway.raw(b"CANARY canary HTTP/1.1\r\ncanary: canary\r\n\r\n")
        await gateway.raw(b"canary\r\n\r\n")
        log.close()
        counted = generate_latest(gateway.metrics.registry).decode()
    written = capfd.readouterr()
    assert '"status": 200' in written.err
    assert "canary" not in (written.err + written.out + counted).lower()
