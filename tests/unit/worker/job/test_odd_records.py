"""Every odd record is settled, and blocks neither the event loop nor the next record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

import pytest

from dragoman_schemas.results import TranslationResult
from dragoman_worker.engines.echo import EchoEngine
from dragoman_worker.errors import UnknownProfile
from dragoman_worker.ports import Prompt
from dragoman_worker.process.event_loop import seldom_collected
from dragoman_worker.prompts import names, tokens
from dragoman_worker.prompts.base import Profile, PromptInput
from dragoman_worker.prompts.chat import CHAT
from dragoman_worker.prompts.plain import PLAIN
from dragoman_worker.settings import EngineSettings
from support.builders.chat_tokenizers import byte_level
from support.builders.odd_records import ODD_RECORDS, OddRecord
from support.fakes.core import Core, record
from support.processes.stalls import Stalls, longest_stall
from support.processes.waiting import eventually

LONGEST_STALL_S: Final = 0.3
PATIENCE_S: Final = 120.0
PLANNED_LONG: Final = (
    *("mail_like_items", "one_word_of_128_kib", "thai_without_spaces", "marks_in_reverse_order"),
    *("opened_comments", "control_tokens", "short_sentences", "short_items_with_a_long_context"),
    *("terms_that_occur_everywhere", "terms_for_many_items", "terms_of_capital_sharp_s"),
    *("protected_overlaps", "small_objects", "fractions", "unknown_fields_of_every_item"),
)
"""Those that cost most where prompts are tokenised; the others cost the same with both engines."""


class TokenisingEcho(EchoEngine):
    """The echo engine behind a real tokenizer, a chat template and a model's usual context."""

    def __init__(self) -> None:
        super().__init__(EngineSettings(kind="echo", options={"max_model_len": 4_096}))

    def encode(self, prompt: Prompt) -> Sequence[int]:
        return tokens.encode(prompt, _tokenizer())

    def count_tokens(self, text: str) -> int:
        return tokens.count(text, _tokenizer())


@cache
def _tokenizer() -> Any:
    return byte_level(bos=False)


@pytest.fixture(scope="module", autouse=True)
def _everything_is_loaded() -> Iterator[None]:
    """As a worker has loaded it before its first job."""
    names.load()
    tokens.encode(CHAT.render(PromptInput("A text.", "de", "en")).prompt, _tokenizer())
    with seldom_collected():
        yield


@pytest.mark.parametrize("name", ODD_RECORDS)
async def test_an_odd_record_ends_as_it_must_and_so_does_the_next_one(name: str) -> None:
    odd = ODD_RECORDS[name]()
    core = _core(EchoEngine(EngineSettings(kind="echo")), PLAIN)
    stalls = await _worked_off(core, odd.value)
    assert _end(core, odd) == odd.expect
    assert core.state("bystander").status == "completed"
    assert stalls.cpu_s < LONGEST_STALL_S


@pytest.mark.parametrize("name", PLANNED_LONG)
async def test_an_odd_record_holds_no_loop_where_prompts_are_tokenised(name: str) -> None:
    odd = ODD_RECORDS[name]()
    core = _core(TokenisingEcho(), CHAT)
    stalls = await _worked_off(core, odd.value)
    assert core.state("bystander").status == "completed"
    assert stalls.cpu_s < LONGEST_STALL_S


async def test_forty_jobs_of_many_items_at_once_hold_no_loop() -> None:
    """Each of them is harmless; planned one after another in one round of the loop they are not."""
    core = _core(TokenisingEcho(), CHAT)
    ids = [f"a{number}" for number in range(40)]
    context = "All of it. " * 100
    values = [record(job_id, ["Hello."] * 64, context=context) for job_id in ids]
    stalls = await _worked_off(core, *values)
    assert {core.state(job_id).status for job_id in ids} == {"completed"}
    assert stalls.cpu_s < LONGEST_STALL_S


def _core(engine: Any, profile: Profile) -> Core:
    def choose(name: str | None) -> Profile:
        if name is not None:
            raise UnknownProfile("profile: there is none of this name")
        return profile

    return Core(engine=engine, choose_profile=choose)


async def _worked_off(core: Core, *values: bytes | None) -> Stalls:
    """Return the longest stall until these records and a bystander behind them are completed."""
    for value in (*values, record("bystander")):
        core.consumer.append(value)
    async with longest_stall() as stalls, core.working():
        await eventually(
            lambda: core.consumer.committed() == core.consumer.end(),
            timeout_s=PATIENCE_S,
            what="every record completed",
        )
    return stalls


def _end(core: Core, odd: OddRecord) -> str:
    if odd.job_id is None:
        (letter,) = core.dead_letters.letters
        return f"dead-letter:{letter.code}"
    result = core.state(odd.job_id).result
    assert result is not None
    return _told(result)


def _told(result: TranslationResult) -> str:
    if result.status == "failed" and result.error is not None:
        return f"failed:{result.error.code}"
    return str(result.status)
