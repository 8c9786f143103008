"""Tests of the echo engine against section 8 of the contract, including the fault lines."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman_connections.settings import SettingsError
from dragoman_worker.engines.echo import EchoEngine, latency
from dragoman_worker.engines.echo_faults import Fault, split_fault
from dragoman_worker.engines.starting import open_engine
from dragoman_worker.errors import EngineDead, PermanentEngineError, TooLong, TransientEngineError
from dragoman_worker.ports import Decoding, Generation, GenerationRequest, Message, Prompt
from dragoman_worker.settings import EchoSettings, EngineSettings
from support.processes.waiting import eventually


def echo(max_num_seqs: int = 256, **settings: object) -> EchoEngine:
    return EchoEngine(
        EngineSettings(
            kind="echo",
            echo=EchoSettings.model_validate(settings),
            options={"max_num_seqs": max_num_seqs, "max_model_len": 1_000},
        )
    )


def request(
    source: str, *, attempt: int = 1, tokens: int = 8, lang: str = "de"
) -> GenerationRequest:
    return GenerationRequest(
        request_id="r",
        prompt_ids=range(tokens),
        decoding=Decoding(max_tokens=64),
        source=source,
        target_lang=lang,
        attempt=attempt,
    )


async def started(engine: EchoEngine, *sources: str) -> list[asyncio.Task[Generation]]:
    """Start one task per source and wait until each is running or queued."""
    tasks = [asyncio.create_task(engine.generate(request(source))) for source in sources]
    await asyncio.sleep(0)  # each runs up to its first wait
    now = engine.stats()
    assert now.running + now.waiting == len(sources)
    return tasks


async def test_tag_mode_puts_the_normalised_tag_before_the_text() -> None:
    made = await echo().generate(request("你好。\n再见。", lang="zh-CN"))
    assert made.text == "[zh-CN] 你好。\n再见。"
    assert made.finish_reason == "stop"
    assert made.prompt_tokens == 8
    assert made.completion_tokens > 0


async def test_identity_mode_returns_the_text_itself() -> None:
    assert (await echo(mode="identity").generate(request("Hello."))).text == "Hello."


async def test_fault_lines_are_plain_text_unless_faults_are_on() -> None:
    assert (await echo().generate(request("#!fatal\nHello."))).text == "[de] #!fatal\nHello."


@pytest.mark.parametrize(
    ("source", "fault", "rest"),
    [
        ("#!hang\nHello.", Fault("hang"), "Hello."),
        ("#!sleep 2.5\nHello.\n#!fatal", Fault("sleep", seconds=2.5), "Hello.\n#!fatal"),
        ("#!transient 2\r\nHello.", Fault("transient", times=2), "Hello."),
        ("#!engine-dead", Fault("engine-dead"), ""),
        ("#!copy  \nHello.", Fault("copy"), "Hello."),
        ("#!copycat\nHello.", None, "#!copycat\nHello."),
        ("#!sleep\nHello.", None, "#!sleep\nHello."),
        ("#!transient two\nHello.", None, "#!transient two\nHello."),
        (" #!fatal\nHello.", None, " #!fatal\nHello."),
        ("Hello.\n#!fatal", None, "Hello.\n#!fatal"),
    ],
)
def test_only_a_whole_first_line_is_a_fault_line(
    source: str, fault: Fault | None, rest: str
) -> None:
    assert split_fault(source) == (fault, rest)


@pytest.mark.parametrize(
    ("line", "text", "finish"),
    [
        ("#!empty", "", "stop"),
        ("#!length", "[de] Hello.", "length"),
        ("#!repeat", "[de] Hello.", "repetition"),
        ("#!copy", "Hello.", "stop"),
        ("#!sleep 0.001", "[de] Hello.", "stop"),
    ],
)
async def test_a_fault_that_changes_the_generation(line: str, text: str, finish: str) -> None:
    made = await echo(faults=True).generate(request(f"{line}\nHello."))
    assert (made.text, made.finish_reason) == (text, finish)


async def test_fatal_fails_permanently() -> None:
    with pytest.raises(PermanentEngineError) as failed:
        await echo(faults=True).generate(request("#!fatal\nHello."))
    assert not isinstance(failed.value, TransientEngineError)


async def test_transient_fails_the_attempts_it_names_and_no_more() -> None:
    engine = echo(faults=True)
    for attempt in (1, 2):
        with pytest.raises(TransientEngineError):
            await engine.generate(request("#!transient 2\nHello.", attempt=attempt))
    third = await engine.generate(request("#!transient 2\nHello.", attempt=3))
    assert third.text == "[de] Hello."


async def test_answers_and_sleeping_requests_are_signs_of_life_and_hanging_ones_are_none() -> None:
    engine = echo(faults=True)
    (hanging,) = await started(engine, "#!hang\n1")
    silent = engine.signs_of_life()
    assert engine.signs_of_life() == silent
    await engine.generate(request("next to it"))
    answered = engine.signs_of_life()
    assert answered > silent
    tasks = [hanging, asyncio.create_task(engine.generate(request("#!sleep 60\n2")))]
    await asyncio.sleep(0)
    assert engine.signs_of_life() > answered
    engine.declare_dead("does not answer")
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [EngineDead] * 2


async def stalled(file: Path) -> EchoEngine:
    """Return an engine that was started before the file was made."""
    engine = echo(faults=True, stall_file=file)
    await engine.start()
    await asyncio.to_thread(file.touch)
    await eventually(lambda: engine._stall.stalled, timeout_s=10, what="a stalled engine")
    return engine


async def test_while_the_stall_file_exists_nothing_is_answered_and_no_sign_is_given(
    tmp_path: Path,
) -> None:
    file = tmp_path / "stall"
    engine = await stalled(file)
    tasks = await started(engine, "1", "#!sleep 0.001\n2")
    silent = engine.signs_of_life()
    assert not (await asyncio.wait(tasks, timeout=0.05))[0]
    assert engine.signs_of_life() == silent
    file.unlink()
    assert [(await task).text for task in tasks] == ["[de] 1", "[de] 2"]
    assert engine.signs_of_life() > silent
    await engine.close()


async def test_an_engine_does_not_start_while_the_stall_file_exists(tmp_path: Path) -> None:
    file = tmp_path / "stall"
    file.touch()
    engine = echo(stall_file=file)
    start = asyncio.create_task(engine.start())
    assert not (await asyncio.wait([start], timeout=0.05))[0]
    file.unlink()
    await start
    await engine.close()


async def test_a_stalled_engine_that_is_declared_dead_fails_its_requests(tmp_path: Path) -> None:
    engine = await stalled(tmp_path / "stall")
    (waiting,) = await started(engine, "1")
    engine.declare_dead("does not answer")
    with pytest.raises(EngineDead, match="does not answer"):
        await waiting


async def test_hang_lasts_until_it_is_cancelled_and_then_frees_its_slot() -> None:
    engine = echo(faults=True, max_num_seqs=1)
    (hanging,) = await started(engine, "#!hang\nHello.")
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert engine.stats().running == 0
    assert (await engine.generate(request("Hello."))).finish_reason == "stop"


async def test_engine_dead_fails_all_requests_in_flight_and_calls_back_once() -> None:
    engine = echo(faults=True, max_num_seqs=3)
    deaths: list[EngineDead] = []
    engine.on_death(deaths.append)
    dying = ["#!hang\n1", "#!sleep 60\n2", "#!engine-dead\n3", "waits", "waits too"]
    tasks = [asyncio.create_task(engine.generate(request(source))) for source in dying]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [EngineDead] * 5
    assert engine.stats().running == 0
    assert engine.stats().waiting == 0
    with pytest.raises(EngineDead):
        await engine.generate(request("after"))
    assert len(deaths) == 1


async def kill(engine: EchoEngine) -> None:
    with pytest.raises(EngineDead):
        await engine.generate(request("#!engine-dead\nx"))


async def test_a_callback_registered_after_the_death_is_called_at_once() -> None:
    engine = echo(faults=True)
    await kill(engine)
    deaths: list[EngineDead] = []
    engine.on_death(deaths.append)
    assert len(deaths) == 1


def test_exit_kills_the_process_without_cleaning_up() -> None:
    script = """
import asyncio, atexit
from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.ports import Decoding, GenerationRequest
from dragoman_worker.settings import EchoSettings, EngineSettings
atexit.register(print, "cleaned up")
engine = EchoEngine(EngineSettings(kind="echo", echo=EchoSettings(faults=True)))
request = GenerationRequest("r", [1], Decoding(max_tokens=1), "#!exit\\nHello.", "de", 1)
asyncio.run(engine.generate(request))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 70
    assert not done.stdout


async def test_no_more_than_max_num_seqs_run_and_the_others_wait_in_order() -> None:
    engine = echo(max_num_seqs=2, latency_s=0.005)
    order: list[str] = []

    async def one(source: str) -> None:
        await engine.generate(request(source))
        assert engine.stats().running <= 2
        order.append(source)

    tasks = [asyncio.create_task(one(str(number))) for number in range(6)]
    await asyncio.sleep(0)
    assert (engine.stats().running, engine.stats().waiting) == (2, 4)
    assert 0 < (engine.stats().kv_cache_usage or 0) < 1
    await asyncio.gather(*tasks)
    assert order == ["0", "1", "2", "3", "4", "5"]
    assert (engine.stats().running, engine.stats().waiting) == (0, 0)
    assert engine.stats().kv_cache_usage == 0


async def test_a_cancelled_request_in_the_queue_blocks_no_other() -> None:
    engine = echo(max_num_seqs=1, faults=True)
    hanging, cancelled, queued = await started(engine, "#!hang\n1", "2", "3")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert engine.stats().waiting == 1
    hanging.cancel()
    assert (await queued).text == "[de] 3"
    assert engine.stats().running == 0


async def test_a_slot_handed_to_a_request_cancelled_at_that_moment_goes_to_the_next() -> None:
    engine = echo(max_num_seqs=1, faults=True)
    hanging, cancelled, queued = await started(engine, "#!hang\n1", "2", "3")
    hanging.cancel()
    hanging.add_done_callback(lambda _: cancelled.cancel())
    assert (await queued).text == "[de] 3"
    await asyncio.wait([hanging, cancelled])
    assert engine.stats().running == 0


async def test_a_generation_takes_at_least_the_latency() -> None:
    begin = time.monotonic()
    await echo(latency_s=0.05).generate(request("Hello."))
    assert time.monotonic() - begin >= 0.045


def test_the_spread_keeps_the_mean_and_is_the_same_for_the_same_text() -> None:
    drawn = [latency(1.0, 0.5, f"text {number}") for number in range(2_000)]
    assert drawn == [latency(1.0, 0.5, f"text {number}") for number in range(2_000)]
    assert 0.5 <= min(drawn) < 0.6
    assert 1.4 < max(drawn) <= 1.5
    assert sum(drawn) / len(drawn) == pytest.approx(1.0, abs=0.05)


async def test_a_caller_without_latency_does_not_starve_the_loop() -> None:
    engine = echo()
    other_ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(other_ran.set)
    for _ in range(100):
        await engine.generate(request("Hello."))
    assert other_ran.is_set()


async def test_a_prompt_beyond_the_context_is_too_long() -> None:
    with pytest.raises(TooLong, match="1000"):
        await echo().generate(request("Hello.", tokens=1_000))


async def test_exact_lengths_are_reported_as_a_real_engine_would() -> None:
    engine = EchoEngine(EngineSettings(kind="echo", exact_lengths=True))
    made = await engine.generate(request("Hello."))
    assert (made.completion_tokens, made.finish_reason) == (64, "stop")


def test_tokens_are_counted_in_prompts_of_both_kinds() -> None:
    engine = echo()
    assert engine.count_tokens("") == 0
    assert engine.count_tokens("12345678") == 2
    assert len(engine.encode(Prompt(completion="12345678"))) == 2
    parts = ({"type": "text", "text": "5678"},)
    chat = Prompt(messages=(Message("system", "1234"), Message("user", parts)))
    assert len(engine.encode(chat)) == 2


async def test_it_reports_its_name_and_limits() -> None:
    engine = open_engine(EngineSettings(kind="echo", options={"max_num_seqs": 7}))
    await engine.start()
    assert (engine.model, engine.info.name) == ("echo", "echo")
    assert engine.info.version
    assert engine.limits.max_num_seqs == 7
    assert engine.limits.max_model_len > 100_000
    await engine.close()
    await engine.close()


@pytest.mark.parametrize("value", [0, -1, "many", True, 1.5])
def test_a_limit_that_is_no_positive_integer_is_refused_by_name(value: object) -> None:
    settings = EngineSettings(kind="echo", options={"max_num_seqs": value})
    with pytest.raises(SettingsError, match=r"engine\.options\.max_num_seqs"):
        open_engine(settings)


def test_opening_the_echo_engine_imports_no_vllm() -> None:
    script = """
import sys
from dragoman_worker.engines.starting import open_engine
from dragoman_worker.settings import EngineSettings
open_engine(EngineSettings(kind="echo"))
sys.exit(bool({"vllm", "torch"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        timeout=30,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0
