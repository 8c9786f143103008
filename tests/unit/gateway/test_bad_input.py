"""What no client should send: each is answered in the API's shape, and harms nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_gateway import connections, parameters
from dragoman_gateway.errors import ApiError
from dragoman_gateway.log import Log
from dragoman_gateway.parameters import Parameters
from support.fakes.played_gateway import PlayedGateway, write_keys

ASKED = {"text": "Hello.", "source_lang": "EN", "target_lang": "DE"}
LIMIT = 64 * 1024


def request(body: bytes, *headers: str, method: str = "POST", version: str = "1.1") -> bytes:
    """Return the bytes of a request to /v2/translate that closes its connection."""
    lines = [
        f"{method} /v2/translate HTTP/{version}",
        "Host: localhost",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answer(raw: bytes) -> tuple[int, dict[str, str]]:
    """Return status and JSON of the first answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


BODY = json.dumps(ASKED).encode()
JSON = "Content-Type: application/json"
EXPECT = "Expect: 100-continue"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"null", 400),
        (b"\xff\xfe", 400),
        (b'{"text": "\\ud800", "target_lang": "DE"}', 400),
        (b'{"text": "a", "target_lang": "\\udfff"}', 400),
        (b'{"text": {"a": 1}, "target_lang": "DE"}', 400),
        (b'{"\\ud800": {"a": 1}}', 400),
        (b"{" + b",".join(b'"%d": 1' % n for n in range(3_000)) + b"}", 400),
        (b'{"text": [' + b'"",' * 3_000 + b'""], "target_lang": "DE"}', 400),
        (b'{"text": [["a"]], "target_lang": "DE"}', 400),
        (b'{"text": "a", "target_lang": ["DE", "FR", {}]}', 400),
        (b"[" * 10_000, 400),
        (b'{"text": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
        (b'{"text": ' + b"1" * 5_000 + b', "target_lang": "DE"}', 400),
        (b'{"text": "a", "target_lang": "' + b"x" * 10_000 + b'"}', 400),
        (b'{"text": "a\\u0000b", "source_lang": "EN", "target_lang": "DE"}', 200),
        (b'{"text": NaN, "source_lang": "EN", "target_lang": "DE"}', 200),
        (b"", 400),
    ],
)
async def test_odd_json_is_answered(body: bytes, status: int) -> None:
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(request(body, JSON, f"Content-Length: {len(body)}"))
    found, said = answer(raw)
    assert found == status
    assert status == 200 or said["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"text=%ED%A0%80&target_lang=DE",
        b"text=%ff&target_lang=DE",
        b"text=a&target_lang=%00",
        b"&&&=&=",
        b"text" * 1000,
        b"a=1&" * 100_000,
    ],
)
async def test_odd_forms_are_400(body: bytes) -> None:
    form = "Content-Type: application/x-www-form-urlencoded"
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(request(body, form, f"Content-Length: {len(body)}"))
    assert answer(raw)[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\n' * 10_000 + b"--x--",
        b'--x\r\nContent-Disposition: form-data; name="text"; filename="../../x"\r\n\r\na\r\n--x--',
        b"--x\r\n" + b"content-disposition:" * 13_000 + b"\r\n\r\na\r\n--x--",
        b"--x\r\n\r\n--x--",
        b"--x" * 5,
        b"",
    ],
)
async def test_odd_multipart_is_400(body: bytes) -> None:
    async with PlayedGateway() as gateway:
        for kind in ("multipart/form-data; boundary=x", "multipart/form-data"):
            raw = await gateway.raw(
                request(body, f"Content-Type: {kind}", f"Content-Length: {len(body)}")
            )
            assert answer(raw)[0] == 400


async def test_a_body_above_the_limit_is_413_before_it_is_read() -> None:
    async with PlayedGateway(max_body_bytes=LIMIT) as gateway:
        raw = await gateway.raw(request(b"only this much", JSON, "Content-Length: 1073741824"))
    status, said = answer(raw)
    assert status == 413
    assert said["message"] == (
        f"The request has 1073741824 bytes; the limit is {LIMIT}. Send less at once."
    )


async def test_a_body_without_end_is_413_at_the_limit() -> None:
    async with PlayedGateway(max_body_bytes=LIMIT) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(request(b"", JSON, "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        raw = b""
        with contextlib.suppress(ConnectionError):  # it may be reset while we still send
            for _ in range(1_000):
                writer.write(chunk)
                await asyncio.wait_for(writer.drain(), 10)
        with contextlib.suppress(ConnectionError):
            raw = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        status, _ = await gateway.post("/v2/translate", ASKED)
    assert status == 200
    assert not raw or answer(raw)[0] == 413


async def test_a_compressed_body_is_415() -> None:
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(
            request(BODY, JSON, "Content-Encoding: gzip", f"Content-Length: {len(BODY)}")
        )
    assert answer(raw)[0] == 415


async def test_old_http_and_curls_question_before_a_body_are_answered() -> None:
    async with PlayedGateway(max_body_bytes=LIMIT) as gateway:
        old = await gateway.raw(request(BODY, JSON, f"Content-Length: {len(BODY)}", version="1.0"))
        expects_old = await gateway.raw(
            request(BODY, JSON, f"Content-Length: {len(BODY)}", EXPECT, version="1.0")
        )
        expects = await gateway.raw(request(BODY, JSON, f"Content-Length: {len(BODY)}", EXPECT))
        refused = await gateway.raw(request(b"", JSON, f"Content-Length: {LIMIT + 1}", EXPECT))
    assert answer(old)[0] == answer(expects_old)[0] == 200
    assert expects.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert answer(refused)[0] == 413


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls\r\n\r\n",
        b"POST /v2/translate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v2/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 1_000 + b"\r\n",
    ],
)
async def test_what_is_no_http_is_400_in_json(sent: bytes) -> None:
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(sent)
    status, said = answer(raw)
    assert (status, said["message"]) == (400, "The request is not valid HTTP.")


async def test_pipelined_requests_are_answered_in_order() -> None:
    one = request(BODY, JSON, f"Content-Length: {len(BODY)}").replace(b"Connection: close\r\n", b"")
    last = request(b"", method="GET").replace(b"/v2/translate", b"/health")
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(one * 3 + last)
    assert raw.count(b"HTTP/1.1 200 OK") == 4
    assert raw.endswith(b'{"status":"ok"}')


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/nothing", 404),
        ("POST", "/v2/document", 404),
        ("GET", "/v3/style_rules", 404),
        ("POST", "/translate_file", 404),
        ("GET", "/", 404),
        ("DELETE", "/v2/translate", 405),
        ("PUT", "/translate", 405),
        ("POST", "//v2/translate/", 200),
        ("POST", "/v2//translate", 200),
        ("HEAD", "/v2/languages", 200),
        ("OPTIONS", "/v2/translate", 204),
    ],
)
async def test_paths_and_methods(method: str, path: str, status: int) -> None:
    async with PlayedGateway() as gateway:
        url = f"{gateway.url}{path}"  # aiohttp's own joining would take `//v2` for a host
        async with gateway.http.request(method, url, json=ASKED) as response:
            assert response.status == status
            assert len(response.headers["X-Trace-ID"]) == 32
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            if status in {404, 405}:
                said = await response.json()
                assert said.get("message") or said.get("error")


async def test_a_trace_of_the_caller_goes_on_and_another_is_replaced() -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    async with PlayedGateway() as gateway:
        for given, same in ((f"00-{trace}-00f067aa0ba902b7-01", True), ("garbage", False)):
            async with gateway.http.get("/health", headers={"traceparent": given}) as response:
                assert (response.headers["X-Trace-ID"] == trace) is same


async def test_silent_connections_end_and_nobody_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 0.3)
    async with PlayedGateway() as gateway:
        pairs = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(100)]
        for _, writer in pairs:
            writer.write(b"POST /v2/translate HTTP/1.1\r\nHost: x\r\n")
        status, _ = await gateway.post("/v2/translate", ASKED)
        ended = await asyncio.wait_for(asyncio.gather(*(each.read() for each, _ in pairs)), 30)
        for _, writer in pairs:
            writer.close()
    assert status == 200
    assert set(ended) == {b""}


async def test_above_the_limit_an_idle_connection_ends_and_requests_go_on() -> None:
    async with PlayedGateway(max_connections=8) as gateway:
        pairs = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(30)]
        status, _ = await gateway.post("/v2/translate", ASKED)
        assert len(gateway.server.connections) <= 9
        for _, writer in pairs:
            writer.close()
    assert status == 200


async def test_a_body_that_trickles_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "_READ_S", 0.2)
    async with PlayedGateway() as gateway:
        raw = await gateway.raw(request(b"{", JSON, "Content-Length: 100"))
    assert answer(raw)[0] == 408


async def test_a_defect_of_ours_is_500_without_its_words() -> None:
    async with PlayedGateway() as gateway:

        async def broken(*_: object) -> object:
            raise ZeroDivisionError("Hello.")

        gateway.jobs.result = broken  # type: ignore[method-assign, assignment]
        status, said = await gateway.post("/v2/translate", ASKED)
    assert (status, said["message"]) == (500, "Internal error.")


async def test_no_secret_and_no_text_is_logged(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = write_keys(tmp_path, "canary-secret")
    async with PlayedGateway(keys_file=keys) as gateway:
        gateway.front._log = log = Log(requests=True)
        for secret in ("canary-secret", "canary-wrong"):
            for text in ("canary text", ["canary", {"canary": 1}]):
                await gateway.post(
                    "/v2/translate?canary=query&auth_key=canary-query",
                    {**ASKED, "text": text, "context": "canary context"},
                    headers={"Authorization": f"DeepL-Auth-Key {secret}"},
                )
        log.close()
    written = capfd.readouterr().err
    assert '"status": 200' in written
    assert "canary" not in written


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_a_flag_is_yes_no_or_an_error(value: object) -> None:
    try:
        found: object = Parameters({"x": [str(value)]}).flag("x", default=True)
    except ApiError as error:
        found = error.status
    assert found in {True, False, 400}


async def test_bodies_that_never_end_leave_room_for_other_callers() -> None:
    async with PlayedGateway(max_connections=8) as gateway:
        pairs = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(8)]
        for _, writer in pairs:
            writer.write(request(b"{", JSON, "Content-Length: 100"))
        status, _ = await gateway.post("/v2/translate", ASKED)
        for _, writer in pairs:
            writer.close()
    assert status == 200
