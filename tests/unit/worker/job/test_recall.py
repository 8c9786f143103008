"""The memory around the engine: recalled, shared, remembered; and what lookups find before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman_schemas.approved import ApprovedTranslation
from dragoman_text.terms import Term, TermIndex
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.job.assessments import Rules
from dragoman_worker.ports import Candidate, Detection, Finding, StoredGlossary
from dragoman_worker.stores.local_memory import LocalMemory
from support.fakes.core import Core, record
from support.fakes.scripted_engine import Says
from support.fakes.scripted_judge import ScriptedJudge, judging
from support.processes.waiting import eventually

RULES = Rules("basic", max_attempts=2, on_fail="best_effort")


def remembering(judge: ScriptedJudge | None = None) -> Core:
    core = Core(judge=judge or ScriptedJudge(), rules=RULES)
    core.memory = LocalMemory(core.metrics)
    return core


def local(core: Core) -> LocalMemory:
    assert isinstance(core.memory, LocalMemory)
    return core.memory


async def results(core: Core, *jobs: bytes) -> list[Any]:
    """Return the items of these jobs, which run one after another."""
    found = []
    async with core.working():
        for number, value in enumerate(jobs):
            core.consumer.append(value)
            await core.all_completed()
            result = core.state(f"j{number}").result
            assert result is not None
            found.append(result.translations)
    return found


async def test_an_answer_is_recalled_by_the_next_job_without_a_permit() -> None:
    core = remembering()
    [[first], [second]] = await results(core, record("j0", "one"), record("j1", "one"))
    assert core.engine.asked("one") == 1
    assert (first.text, first.cached, first.attempts) == ("ONE", False, 1)
    assert (second.text, second.cached, second.attempts) == ("ONE", True, 0)
    assert second.quality == "ok"


async def test_a_job_of_many_recalled_items_needs_no_engine() -> None:
    core = remembering()
    texts = [f"text {n}" for n in range(100)]
    _, items = await results(core, record("j0", texts), record("j1", texts))
    assert [item.text for item in items] == [text.upper() for text in texts]
    assert all(item.cached for item in items)
    assert len(core.engine.requests) == 100


async def test_an_unknown_item_among_recalled_ones_is_generated() -> None:
    core = remembering()
    known, mixed = ["a b", "c d"], ["a b", "new", "c d", "newer"]
    _, items = await results(core, record("j0", known), record("j1", mixed))
    assert [item.text for item in items] == ["A B", "NEW", "C D", "NEWER"]
    assert [item.cached for item in items] == [True, False, True, False]


async def test_an_answer_that_failed_is_not_remembered() -> None:
    def rule(candidate: Candidate) -> Sequence[Finding]:
        return [Finding("length", "fail", "why")] if candidate.target == "ONE" else []

    core = remembering(judging(rule))
    await results(core, record("j0", "one"), record("j1", "one"))
    assert core.engine.asked("one") == 4


@pytest.mark.parametrize(("memory", "asked"), [("use", 1), ("refresh", 2), ("off", 2)])
async def test_a_job_decides_whether_it_uses_the_memory(memory: str, asked: int) -> None:
    core = remembering()
    await results(core, record("j0", "one"), record("j1", "one", memory=memory))
    assert core.engine.asked("one") == asked


async def test_a_refreshed_answer_replaces_the_remembered_one() -> None:
    core = remembering()
    core.engine.script("one", Says("OLD"), Says("NEW"))
    jobs = (record("j0", "one"), record("j1", "one", memory="refresh"), record("j2", "one"))
    _, _, [last] = await results(core, *jobs)
    assert (last.text, last.cached) == ("NEW", True)


async def test_without_a_verdict_nothing_is_remembered() -> None:
    core = remembering()
    off = {"level": "off"}
    await results(core, record("j0", "one", quality=off), record("j1", "one", quality=off))
    assert core.engine.asked("one") == 2


async def test_equal_items_of_one_job_are_generated_once() -> None:
    core = remembering()
    [items] = await results(core, record("j0", ["same"] * 10))
    assert [item.text for item in items] == ["SAME"] * 10
    assert core.engine.asked("same") == 1
    assert [item.cached for item in items].count(False) == 1


async def test_a_follower_holds_no_permit() -> None:
    core = remembering()
    release = core.engine.hold("same")
    async with core.working():
        for number in range(20):
            core.consumer.append(record(f"j{number}", "same"))
        await core.inside("same")
        await eventually(lambda: core.permits.waiting == 0, timeout_s=10, what="all followers")
        assert core.permits.held_items == 1
        release.set()
        await core.all_completed()
    assert core.engine.asked("same") == 1


async def test_followers_go_on_when_their_leader_is_cancelled() -> None:
    core = remembering()
    core.engine.hold("same")
    async with core.working():
        for number in range(3):
            core.consumer.append(record(f"j{number}", "same"))
        await core.inside("same")
        core.store.cancel("j0")
        await core.all_completed()
    assert core.state("j0").status == "cancelled"
    assert [core.texts(f"j{n}") for n in (1, 2)] == [["SAME"], ["SAME"]]
    assert core.engine.asked("same") == 2


async def test_followers_go_on_when_their_leader_fails() -> None:
    core = remembering()
    release = asyncio.Event()
    core.engine.script("same", release, PermanentEngineError("no"))
    async with core.working():
        for number in range(3):
            core.consumer.append(record(f"j{number}", "same"))
        await core.inside("same")
        release.set()
        await core.all_completed()
    assert core.state("j0").status == "failed"
    assert [core.texts(f"j{n}") for n in (1, 2)] == [["SAME"], ["SAME"]]


# --- approved translations ------------------------------------------------------------------------


async def test_an_approved_translation_is_used_without_the_engine() -> None:
    core = remembering()
    local(core).approve(ApprovedTranslation("one", "eins", "de"))
    [[item]] = await results(core, record("j0", "one"))
    assert (item.text, item.cached, item.quality, item.attempts) == ("eins", True, "ok", 0)
    assert item.checks == {"memory": {"origin": "approved"}}
    assert core.engine.requests == []


async def test_an_approved_translation_is_used_by_a_job_that_asks_for_new_answers() -> None:
    core = remembering()
    local(core).approve(ApprovedTranslation("one", "eins", "de"))
    _, [item] = await results(
        core, record("j0", "one", memory="off"), record("j1", "one", memory="refresh")
    )
    assert item.text == "eins"
    assert core.engine.asked("one") == 1


async def test_an_approved_translation_that_is_too_long_is_ignored() -> None:
    core = remembering()
    local(core).approve(ApprovedTranslation("one", "much too long", "de"))
    [[item]] = await results(core, record("j0", [{"text": "one", "max_chars": 5}]))
    assert item.text == "ONE"


async def test_blanks_around_an_approved_text_stay() -> None:
    core = remembering()
    local(core).approve(ApprovedTranslation("one", "eins", "de"))
    [[item]] = await results(core, record("j0", "  one\n"))
    assert item.text == "  eins\n"


# --- languages and glossaries ---------------------------------------------------------------------


async def test_a_missing_source_language_is_asked_of_the_judge() -> None:
    core = remembering(ScriptedJudge(languages=lambda _: Detection("fr", 0.9)))
    [[item]] = await results(core, record("j0", "one", source_lang=...))
    assert item.detected_source_lang == "fr"


class OneGlossary:
    async def find(self, name: str, target_lang: str) -> StoredGlossary | None:
        if name != "known":
            return None
        return StoredGlossary(name, "1", "en", TermIndex([Term("one", ("eins",))]))


async def test_the_terms_of_a_stored_glossary_reach_the_judge() -> None:
    judge = ScriptedJudge()
    core = remembering(judge)
    core.glossaries = OneGlossary()
    await results(core, record("j0", "one two", glossary_id="known"))
    assert [term.source for term in judge.judged[0].terms] == ["one"]


async def test_an_unknown_glossary_fails_the_job_by_its_code() -> None:
    core = remembering()
    core.glossaries = OneGlossary()
    core.consumer.append(record("j0", "one", glossary_id="none"))
    await core.run_all()
    result = core.state("j0").result
    assert result is not None
    assert result.error is not None
    assert result.error.code == "unknown_glossary"
