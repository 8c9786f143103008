"""Servers that lie: each ends in a clear state, and the next request is answered as ever."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from dragoman_connections.settings import SettingsError, load_settings
from dragoman_worker.engines.openai.replies import (
    Away,
    Busy,
    Locked,
    RequestRejected,
    TooLongForServer,
    check_status,
    parsed,
)
from dragoman_worker.engines.openai.request_ids import RequestIds
from dragoman_worker.engines.openai.trust import Trust
from dragoman_worker.errors import (
    EngineDead,
    Halt,
    TooLong,
    TransientEngineError,
    Unavailable,
    Unreachable,
)
from dragoman_worker.settings import EngineSettings, WorkerSettings
from support.builders.openai_engines import back, replies, request, settings, started
from support.processes.waiting import eventually
from support.services.openai_server import OpenAIServer, answer, error
from support.services.raw_server import RawServer, http

GOOD = json.dumps(answer("done")).encode()
Writer = asyncio.StreamWriter


def writes(*parts: bytes) -> Callable[[Writer, dict[str, Any]], Awaitable[None]]:
    """Write these bytes and close the connection."""

    async def write(writer: Writer, _: dict[str, Any]) -> None:
        for part in parts:
            writer.write(part)
        await writer.drain()
        writer.close()

    return write


async def endless(writer: Writer, _: dict[str, Any]) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


async def resets(writer: Writer, _: dict[str, Any]) -> None:
    writer.write(http(GOOD, Content_Length="9999"))
    await writer.drain()
    writer.transport.abort()


# --- replies that are no answer: an attempt at most -----------------------------------------------


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"choices": [{"index": 3, "text": "x", "finish_reason": "stop"}]}, "not the first"),
        ({"choices": [{"index": [], "text": "x", "finish_reason": "stop"}]}, "not the first"),
        ({"choices": answer()["choices"] * 2}, "exactly one choice"),
        ({"choices": {"0": 1}}, "exactly one choice"),
        ({"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}, "no text"),
        (
            {
                "choices": [
                    {
                        "message": {"content": None, "reasoning_content": "TEXT?"},
                        "finish_reason": "stop",
                    }
                ]
            },
            "thoughts and no text",
        ),
        ({"error": {"message": "TEXT", "code": "x"}}, "an error inside"),
        ({"model": "x" * 100_000}, "another model"),
    ],
)
async def test_a_reply_that_is_no_answer_costs_an_attempt(reply: dict[str, Any], says: str) -> None:
    handler = replies(lambda: web.json_response({**answer(), **reply}))
    async with OpenAIServer(handler) as server, started(server) as made:
        with pytest.raises(TransientEngineError, match=says) as caught:
            await made.generate(request(made))
        assert len(str(caught.value)) < 300
        assert "TEXT" not in str(caught.value)
        assert (await made.generate(request(made))).text == "done"


@pytest.mark.parametrize("reason", [[], {}, 7, "", "STOP", "eos_token", True])
async def test_an_unknown_finish_reason_is_never_a_success(reason: object) -> None:
    choice = {"index": 0, "text": "x", "finish_reason": reason}
    handler = replies(lambda: web.json_response({**answer(), "choices": [choice]}))
    async with OpenAIServer(handler) as server, started(server) as made:
        assert (await made.generate(request(made))).finish_reason == "error"


@pytest.mark.parametrize("usage", [None, [], {}, "7", {"completion_tokens": -1}])
@pytest.mark.parametrize("count", [-1, 10**18, 2.5, True, "7", None])
async def test_counts_that_cannot_be_are_not_believed(usage: object, count: object) -> None:
    if isinstance(usage, dict):
        usage = {"prompt_tokens": count, "completion_tokens": count}
    handler = replies(lambda: web.json_response({**answer(), "usage": usage}))
    async with OpenAIServer(handler) as server, started(server) as made:
        asked = request(made)
        given = await made.generate(asked)
    assert (given.prompt_tokens, given.completion_tokens) == (len(asked.prompt_ids), 0)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (writes(http(gzip.compress(b"\0" * 10**8), Content_Encoding="gzip")), "compressed"),
        (writes(http(b"", Content_Encoding="zstd")), "compressed"),
        (endless, "larger than"),
        (writes(http(b"[" * 100_000)), "not JSON"),
        (writes(http(b"\xff\xfe")), "not JSON"),
        (writes(http(b"data: {}\n\ndata: [DONE]\n\n")), "not JSON"),
        (writes(http(b'{"n": ' + b"9" * 5_000 + b"}")), "not JSON"),
        (writes(b"HTTP/1.0 200 OK\r\n\r\n" + GOOD[:20]), "not JSON"),
    ],
    ids=["bomb", "zstd", "endless", "deep", "bytes", "stream", "digits", "half of 1.0"],
)
async def test_a_body_that_is_none_costs_an_attempt(write: Any, says: str) -> None:
    async with RawServer(write) as server, started(server) as made:
        with pytest.raises(TransientEngineError, match=says):
            await made.generate(request(made))
        assert (await made.generate(request(made))).text == "done"


@pytest.mark.parametrize(
    "write",
    [
        resets,
        writes(b""),
        writes(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nGARBAGE"),
        writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal"),
        writes(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"),
        writes(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000),
        writes(http(GOOD, Content_Length="9999")),
        writes(http(GOOD, status="307 Temporary Redirect", Location="http://127.0.0.1:1/")),
        writes(http(GOOD, status="302 Found", Location="/v1/completions")),
        writes(http(b"<html>", status="520 Origin")),
        writes(http(b'{"error": {"message": "TEXT", "code": 502}}')),
        writes(http(b'{"error": {"message": "Loading model", "code": 503}}', status="503 No")),
    ],
    ids=[
        *("reset", "nothing", "ssh", "chunks", "half a chunk", "negative", "header", "length"),
        *("redirect", "own redirect", "cloudflare", "502 inside 200", "loading"),
    ],
)
async def test_a_connection_that_breaks_costs_no_attempt(write: Any) -> None:
    async with RawServer(write) as server, started(server) as made:
        assert (await made.generate(request(made))).text == "done"


async def test_a_reply_of_http_1_0_that_ends_with_its_connection_is_an_answer() -> None:
    write = writes(b"HTTP/1.0 200 OK\r\n\r\n" + GOOD)
    async with RawServer(write) as server, started(server) as made:
        assert (await made.generate(request(made))).text == "done"


async def test_a_reply_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_worker.engines.openai.concurrency._BASE_S", 0.1)
    monkeypatch.setattr("dragoman_worker.engines.openai.concurrency._SLOWEST_S", 0.001)

    async def drip(writer: Writer, __: dict[str, Any]) -> None:
        writer.write(http(b"", Content_Length="1000"))
        for _ in range(1_000):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with RawServer(drip) as server, started(server) as made:
        with pytest.raises(TransientEngineError, match="no answer within"):
            await made.generate(request(made))
        assert (await made.generate(request(made))).text == "done"


async def test_bytes_after_a_reply_are_not_the_next_answer() -> None:
    async def twice(writer: Writer, _: dict[str, Any]) -> None:
        writer.write(http(GOOD) + http(json.dumps(answer("of another")).encode()))

    async with RawServer(twice) as server, started(server) as made:
        server.times = 3
        for _ in range(4):
            assert (await made.generate(request(made))).text == "done"


async def test_bytes_that_come_long_after_a_reply_are_not_the_next_answer() -> None:
    late = asyncio.Event()

    async def twice(writer: Writer, _: dict[str, Any]) -> None:
        writer.write(http(GOOD))
        asyncio.get_running_loop().call_later(0.05, more, writer)

    def more(writer: Writer) -> None:
        writer.write(http(json.dumps(answer("of another")).encode()))
        late.set()

    async with RawServer(twice) as server, started(server) as made:
        assert (await made.generate(request(made))).text == "done"
        await late.wait()
        (kept,) = made._session._connector._conns.values()  # type: ignore[union-attr]
        await eventually(lambda: kept[0][0].should_close, timeout_s=20, what="bytes came")
        assert (await made.generate(request(made))).text == "done"


async def test_the_answer_to_another_request_is_not_taken() -> None:
    ids: list[str] = []

    async def mixes_up(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        ids.append(request.headers["X-Request-Id"])
        given = f"cmpl-{ids[0]}-0"  # as vLLM builds them
        return web.json_response({**answer(f"of {len(ids)}"), "id": given})

    async with OpenAIServer(mixes_up) as server, started(server) as made:
        assert (await made.generate(request(made, "TEXT 1"))).text == "of 1"
        with pytest.raises(TransientEngineError, match="another request"):
            await made.generate(request(made, "TEXT 2"))
        cached = await made.generate(request(made, "TEXT 1"))
        assert cached.text == "of 3"


def test_an_id_is_of_another_request_only_if_that_is_certain() -> None:
    ids, others = RequestIds(), RequestIds()
    asked = ids.of(b"a")
    assert not ids.is_of_another(f"chatcmpl-{asked}", asked)
    assert not ids.is_of_another(ids.of(b"a"), asked)
    assert ids.is_of_another(f"cmpl-{ids.of(b'b')}-0", asked)
    for unknown in (None, 7, "", "chatcmpl-123", others.of(b"b")):
        assert not ids.is_of_another(unknown, asked)


# --- statuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 512 tokens. However, you requested 600"),
        (400, "The decoder prompt (length 600) is longer than the maximum model length of 512."),
        (400, "'max_tokens' is too large: 9. This model's maximum context length is 8 tokens"),
        (400, "The input (600 tokens) is longer than the model's context length (512 tokens)."),
        (400, "Requested token count exceeds the model's maximum context length of 512 tokens."),
        (400, "the request exceeds the available context size. try increasing the context size"),
        (400, "the input length exceeds the context length"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096."),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000"),
        (400, "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (
            500,
            "[pid=7] The decoder prompt (length 9) is longer than the maximum model len",
        ),
        (400, "The sum of prompt length (600) should not exceed max_num_tokens (512)"),
        (413, "<html>Request Entity Too Large</html>"),
    ],
)
def test_a_prompt_beyond_the_context_is_recognized_by_each_servers_words(
    status: int, message: str
) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    with pytest.raises(TooLongForServer):
        check_status(status, {}, body, quote=False)


@pytest.mark.parametrize(
    ("code", "kind"), [(401, Locked), (429, Busy), (400, RequestRejected), (504, Away)]
)
def test_an_error_inside_a_success_counts_by_its_code(code: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        parsed(json.dumps({"error": {"code": code, "message": "TEXT"}}).encode())


async def test_fewer_tokens_are_asked_for_where_an_estimated_prompt_is_longer() -> None:
    async def measures(_: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if body["max_tokens"] > 40:
            return error(400, "maximum context length is 512 tokens")
        return web.json_response(answer("done"))

    async with OpenAIServer(measures) as server, started(server) as made:
        given = await made.generate(request(made, max_tokens=200))
        assert given.text == "done"

        async def too_long(_: web.Request, body: dict[str, Any]) -> web.StreamResponse:
            return error(400, "maximum context length is 512 tokens")

        server.on_text = too_long
        with pytest.raises(TooLong):
            await made.generate(request(made, max_tokens=200))


def full_cache() -> web.Response:
    """Answer as llama.cpp does where the slots share one context and it is used up."""
    said = {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}
    return web.json_response({"error": said}, status=500)


async def test_requests_that_do_not_fit_beside_each_other_are_sent_again_and_none_is_cut() -> None:
    at_once = 0

    async def shares(_: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        nonlocal at_once
        at_once += 1
        await asyncio.sleep(0.01)
        full, at_once = at_once > 2, at_once - 1
        return full_cache() if full else web.json_response(answer(str(body["max_tokens"])))

    async with OpenAIServer(shares) as server, started(server) as made:
        given = await asyncio.gather(*(made.generate(request(made)) for _ in range(30)))
    assert {each.text for each in given} == {"20"}


async def test_a_request_that_does_not_fit_alone_is_too_long() -> None:
    handler = replies(*(full_cache for _ in range(9)))
    async with OpenAIServer(handler) as server, started(server) as made:
        with pytest.raises(TooLong):
            await made.generate(request(made))


async def test_a_request_that_never_fits_is_too_long_also_while_others_fit() -> None:
    async def one_is_large(_: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.sleep(0.01)
        return full_cache() if "LARGE" in str(body) else web.json_response(answer())

    async with OpenAIServer(one_is_large) as server, started(server) as made:

        async def others() -> None:
            while True:
                await made.generate(request(made))

        tasks = [asyncio.create_task(others()) for _ in range(4)]
        with pytest.raises(TooLong):
            await made.generate(request(made, "TEXT LARGE"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- the start ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>", b"[]", b"{}", b'{"data": null}', b'{"data": [7]}', b'{"data": [{"id": 7}]}'),
        b"[" * 100_000,
    ],
)
async def test_a_list_of_models_that_is_none_is_named(body: bytes) -> None:
    server = OpenAIServer()
    server.models_body = body
    async with server:
        with pytest.raises(Halt, match=r"list of models|models: none"):
            async with started(server):
                pass


async def test_a_list_of_large_names_is_cut() -> None:
    async with OpenAIServer() as server:
        server.models = [{"id": "x" * 1_000_000}, {"id": "y"}]
        with pytest.raises(Halt, match="no model is called 'm'") as caught:
            async with started(server):
                pass
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("length", [1, 3])
async def test_a_context_that_holds_no_text_ends_the_start(length: int) -> None:
    async with OpenAIServer() as server:
        server.models = [{"id": "m", "max_model_len": length}]
        with pytest.raises(Halt, match="holds no text"):
            async with started(server):
                pass


@pytest.mark.parametrize("length", [-1, "512", True, 0, None, 1e9])
async def test_a_context_that_is_no_number_is_not_believed(length: object) -> None:
    async with OpenAIServer() as server:
        server.models = [{"id": "m", "max_model_len": length}]
        async with started(server) as made:
            assert made.limits.max_model_len == 4_096


async def test_a_start_waits_for_a_server_that_loads_its_model() -> None:
    async with OpenAIServer() as server:
        server.loading = True
        with pytest.raises(Unreachable, match="503"):
            async with started(server):
                pass
        starting = asyncio.create_task(_started_once(server, wait_s=0.001))
        await eventually(lambda: server.asked > 20, timeout_s=20, what="asked again")
        assert not starting.done()
        server.loading = False
        assert await starting == "m"


async def test_a_start_waits_for_a_server_that_is_away_for_so_long() -> None:
    async with OpenAIServer() as server:
        await server.stop()
        with pytest.raises(Unreachable, match="Is it running"):
            await _started_once(server, wait_s=0.05)
        starting = asyncio.create_task(_started_once(server, wait_s=60))
        await asyncio.sleep(0)
        await server.start()
        assert await starting == "m"


async def _started_once(server: OpenAIServer, *, wait_s: float) -> str:
    async with started(server, wait_s=wait_s) as made:
        return made.model


# --- several servers, and servers that change -----------------------------------------------------


async def test_servers_with_different_models_are_named_at_the_start() -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        two.models = [{"id": "n", "max_model_len": 512}]
        with pytest.raises(Halt, match=f"no model is called 'm' at {two.url}; models: n"):
            async with started(one, two, model=None):
                pass


async def test_the_smallest_context_of_several_servers_counts() -> None:
    async with OpenAIServer() as one, OpenAIServer() as two:
        two.models = [{"id": "m", "max_model_len": 256}]
        async with started(one, two) as made:
            assert made.limits.max_model_len == 256


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_one_locked_server_of_two_is_left_out_and_taken_back(status: int) -> None:
    async with OpenAIServer() as one, OpenAIServer() as two, started(one, two) as made:
        deaths: list[EngineDead] = []
        made.on_death(deaths.append)
        one.refuses_all = status
        given = await asyncio.gather(*(made.generate(request(made)) for _ in range(20)))
        assert {each.text for each in given} == {"Hallo."}
        first = made._servers.all[0]
        assert str(status) in first.away
        one.refuses_all = None
        await eventually(lambda: not first.away, timeout_s=20, what="taken back")
        assert not deaths
        one.refuses_all = two.refuses_all = status
        with pytest.raises(EngineDead):
            await asyncio.gather(*(made.generate(request(made)) for _ in range(20)))
        assert len(deaths) == 1


async def test_a_server_that_comes_back_with_a_smaller_context_ends_the_replica() -> None:
    async with OpenAIServer() as server, started(server) as made:
        deaths: list[EngineDead] = []
        made.on_death(deaths.append)
        await server.stop()
        with pytest.raises(Unavailable):
            await made.generate(request(made))
        server.models = [{"id": "m", "max_model_len": 128}]
        await server.start()
        await eventually(lambda: bool(deaths), timeout_s=20, what="the end")
        assert "context is 128" in str(deaths[0])
        assert not deaths[0].blames_jobs


async def test_a_server_whose_harmless_answers_are_none_is_an_outage() -> None:
    async with OpenAIServer() as server, started(server) as made:
        server.replies_all = {"object": "nothing"}
        with pytest.raises(Unavailable, match="exactly one choice"):
            await made.generate(request(made))
        server.replies_all = None
        await back(made)
        assert (await made.generate(request(made))).text == "Hallo."


# --- addresses, keys, authorities -----------------------------------------------------------------


async def test_an_address_may_have_a_prefix_a_version_and_a_slash() -> None:
    async def never(_: Writer, __: dict[str, Any]) -> None:
        raise AssertionError

    async with RawServer(never, prefix="/llm/a b".replace(" ", "%20")) as server:
        server.times = 0
        for ending in ("", "/", "/v1", "/v1//"):
            async with started(server, url=(f"{server.url}{ending}",)) as made:
                assert (await made.generate(request(made))).text == "done"


async def test_an_address_of_ip_version_6_works() -> None:
    async with RawServer(resets, host="::1") as server, started(server) as made:
        assert (await made.generate(request(made))).text == "done"


async def test_a_password_in_the_address_is_sent_and_never_shown() -> None:
    async with RawServer(resets) as server:
        url = server.url.replace("http://", "http://user:pass%40word@")
        async with started(server, url=(url,)) as made:
            assert (await made.generate(request(made))).text == "done"
            shown = [made.found, made._servers.all[0].url, repr(settings(server, url=(url,)))]
            assert not any("word" in each for each in shown)
        assert all(b"Authorization: Basic" in head for head in server.heads)
        with pytest.raises(SettingsError, match="not both"):
            async with started(server, url=(url,), api_key="k"):
                pass


@pytest.mark.parametrize("url", ["http://h/v1?api-version=1", "http://h#a", "ftp://h", "h:8000"])
def test_an_address_with_a_query_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="give the URL"):
        EngineSettings(kind="openai", url=(url,))


@pytest.mark.parametrize(
    ("given", "urls"),
    [
        ("http://h:8000", ("http://h:8000",)),
        ("http://h:8000, http://g/v1", ("http://h:8000", "http://g")),
        ('["http://h:8000"]', ("http://h:8000",)),
    ],
)
def test_addresses_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: str, urls: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DRAGOMAN_ENGINE__KIND", "openai")
    monkeypatch.setenv("DRAGOMAN_ENGINE__URL", given)
    assert load_settings(WorkerSettings).engine.url == urls


async def test_a_key_with_a_line_break_is_refused() -> None:
    async with OpenAIServer() as server:
        with pytest.raises(SettingsError, match=r"engine\.api_key"):
            async with started(server, api_key="a\r\nX: b"):
                pass


def test_authorities_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    import certifi

    file = tmp_path / "ca.pem"
    file.write_bytes(Path(certifi.where()).read_bytes())
    trust = Trust(file)
    first = trust.context
    trust.refresh()
    assert trust.context is first
    file.write_text("half a file")
    os.utime(file, (1, 1))
    trust.refresh()
    assert trust.context is first
    file.write_bytes(Path(certifi.where()).read_bytes())
    os.utime(file, (2, 2))
    trust.refresh()
    assert trust.context is not first
    with pytest.raises(SettingsError, match=r"engine\.ca_file"):
        Trust(tmp_path / "none.pem")
