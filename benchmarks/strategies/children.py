"""Child processes that keep an engine loaded and run requests in one of several ways.

A child answers `("load", path)` and `("run", how, arguments)` over a pipe with `("ok", row)` or
`("error", text)`; `("stop",)` ends it. A row has the wall-clock start and end, each job's latency
in seconds from the moment it was handed over, and the tokens written.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import struct
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from baseline import parameters
from limits import QUALIFIED_NAME, VARIABLE
from work import Request, load

Row = dict[str, Any]


def row(start: float, latencies: Sequence[float], tokens: int) -> Row:
    """Return the row of a run that ends now."""
    return {"start": start, "end": time.time(), "latencies": list(latencies), "tokens": tokens}


def on_gpus(gpus: str | None, target: Callable[..., None], *args: Any) -> None:
    """Run the target of a child process that sees `gpus` only, or all of them."""
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    target(*args)


def _serve(pipe: Connection, run: Callable[[list[Request], str, Row], Row]) -> None:
    """Serve commands until `stop`, or until the pipe closes because the parent has exited."""
    pipe.send(("ok", {}))
    requests: list[Request] = []
    while True:
        try:
            command = pipe.recv()
        except EOFError:
            return
        if command[0] == "stop":
            return
        try:
            if command[0] == "load":
                requests = load(command[1])
                pipe.send(("ok", {}))
            else:
                pipe.send(("ok", run(requests, command[1], command[2])))
        except Exception:  # noqa: BLE001  the parent reports it
            pipe.send(("error", traceback.format_exc()))


def _token_prompt(request: Request) -> Any:
    return {"prompt_token_ids": request.prompt_ids}


# --- LLM ------------------------------------------------------------------------------------------


def llm_child(pipe: Connection, tasks: Any, answers: Any, model: str, options: Row) -> None:
    """Run `LLM` in this process; its engine is a child process, as vLLM does by default."""
    from vllm import LLM  # noqa: PLC0415

    llm: Any = LLM(model=model, **options)

    def run(requests: list[Request], how: str, given: Row) -> Row:
        if how == "generate":
            return _generate(llm, requests[: given["jobs"]])
        return _from_queue(llm, requests, tasks, answers, given)

    _serve(pipe, run)


def _generate(llm: Any, requests: list[Request]) -> Row:
    """Generate all at once. The interface answers every job when the last one is done."""
    prompts = [_token_prompt(request) for request in requests]
    sampling = [parameters(request.decoding, request.exact) for request in requests]
    start = time.time()
    outputs = llm.generate(prompts, sampling, use_tqdm=False)
    written = sum(len(output.outputs[0].token_ids) for output in outputs)
    taken = time.time() - start
    return row(start, [taken] * len(requests), written)


def _from_queue(llm: Any, requests: list[Request], tasks: Any, answers: Any, given: Row) -> Row:
    """Run static batches: up to `batch` requests or `wait_s`; one at a time is a batch of one."""
    sampling = [
        parameters(request.decoding, request.exact) for request in requests[: given["jobs"]]
    ]
    start, written, last = time.time(), 0, False
    while not last:
        numbers, last = _gather(tasks, given["batch"], given["wait_s"])
        prompts = [_token_prompt(requests[number]) for number in numbers]
        if not numbers:
            continue
        outputs = llm.generate(prompts, [sampling[number] for number in numbers], use_tqdm=False)
        for number, output in zip(numbers, outputs, strict=True):
            written += len(output.outputs[0].token_ids)
            answers.put((number, output.outputs[0].text))
    return row(start, [], written)


def _gather(tasks: Any, most: int, wait_s: float) -> tuple[list[int], bool]:
    """Return the next batch, and whether it is the last."""
    numbers: list[int] = []
    deadline = float("inf")
    while len(numbers) < most:
        left = deadline - time.monotonic()
        try:
            number = tasks.get(timeout=None if deadline == float("inf") else max(left, 0.0))
        except queue.Empty:
            break
        if number is None:
            return numbers, True
        numbers.append(number)
        deadline = min(deadline, time.monotonic() + wait_s)
    return numbers, False


# --- AsyncLLM -------------------------------------------------------------------------------------


def async_child(pipe: Connection, tasks: Any, answers: Any, model: str, options: Row) -> None:
    """Run a bare AsyncLLM whose `max_num_seqs` can be lowered between runs."""
    here = str(Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    limit = Path(os.environ[VARIABLE])
    loop = asyncio.new_event_loop()

    async def build() -> Any:
        from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: PLC0415
        from vllm.v1.engine.async_llm import AsyncLLM  # noqa: PLC0415

        chosen = {"scheduler_cls": QUALIFIED_NAME, "async_scheduling": True, **options}
        return AsyncLLM.from_engine_args(AsyncEngineArgs(model=model, **chosen))

    engine = loop.run_until_complete(build())

    def run(requests: list[Request], how: str, given: Row) -> Row:
        with limit.open("r+b") as file:  # in place: the engine has it mapped
            file.write(struct.pack("<I", given.get("max_num_seqs") or 0))
        wanted = requests[: given["jobs"]]
        if how == "in-flight":
            return loop.run_until_complete(_in_flight(engine, wanted, given["in_flight"]))
        return loop.run_until_complete(_one_at_a_time(engine, wanted, tasks, answers))

    _serve(pipe, run)


async def _ask(engine: Any, request: Request, sampling: Any, name: str) -> Any:
    last = None
    async for output in engine.generate(_token_prompt(request), sampling, name):
        last = output
    return last.outputs[0]  # type: ignore[union-attr]


async def _in_flight(engine: Any, requests: list[Request], clients: int) -> Row:
    """Run the given number of clients, each with one request under way."""
    sampling = [parameters(request.decoding, request.exact) for request in requests]
    numbers = iter(range(len(requests)))
    latencies: list[float] = []
    written = 0
    start = time.time()

    async def client() -> None:
        nonlocal written
        for number in numbers:
            handed_over = time.perf_counter()
            output = await _ask(engine, requests[number], sampling[number], f"{start}-{number}")
            latencies.append(time.perf_counter() - handed_over)
            written += len(output.token_ids)

    await asyncio.gather(*(client() for _ in range(clients)))
    return row(start, latencies, written)


async def _one_at_a_time(engine: Any, requests: list[Request], tasks: Any, answers: Any) -> Row:
    """Run the second of two workers behind one queue."""
    start, written = time.time(), 0
    while (number := await asyncio.to_thread(tasks.get)) is not None:
        sampling = parameters(requests[number].decoding, requests[number].exact)
        output = await _ask(engine, requests[number], sampling, f"{start}-{number}")
        written += len(output.token_ids)
        answers.put((number, output.text))
    return row(start, [], written)


# --- an asynchronous consumer of `vllm serve` -----------------------------------------------------


def http_child(pipe: Connection, url: str, model: str) -> None:
    """Run the usual consumer: aiohttp with a bound on requests in flight."""

    def run(requests: list[Request], how: str, given: Row) -> Row:
        bodies = [body(request, model) for request in requests[: given["jobs"]]]
        return _fast_loop(_consume(url + "/v1/completions", bodies, given["in_flight"]))

    _serve(pipe, run)


def _fast_loop(work: Any) -> Row:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        done: Row = asyncio.run(work)
    else:
        done = uvloop.run(work)
    return done


def decoding_fields(request: Request) -> Row:
    """Return the request's decoding in the names of vLLM's HTTP interface."""
    decoding = request.decoding
    return {
        "max_tokens": request.exact or decoding.max_tokens,
        "min_tokens": request.exact or 0,
        "ignore_eos": request.exact is not None,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "top_k": max(decoding.top_k, 0),
        "repetition_penalty": decoding.repetition_penalty,
        "frequency_penalty": decoding.frequency_penalty,
        "stop": list(decoding.stop),
        "stop_token_ids": list(decoding.stop_token_ids),
    }


def body(request: Request, model: str) -> bytes:
    """Return the body of a completion of the same token ids."""
    asked = {"model": model, "prompt": request.prompt_ids, **decoding_fields(request)}
    return json.dumps(asked).encode()


async def _consume(url: str, bodies: list[bytes], clients: int) -> Row:
    import aiohttp  # noqa: PLC0415

    numbers = iter(range(len(bodies)))
    latencies: list[float] = []
    written = 0
    start = time.time()

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal written
        for number in numbers:
            handed_over = time.perf_counter()
            async with session.post(url, data=bodies[number]) as answer:
                answer.raise_for_status()
                reply = await answer.json()
            latencies.append(time.perf_counter() - handed_over)
            written += reply["usage"]["completion_tokens"]

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"Content-Type": "application/json"},
    ) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return row(start, latencies, written)
