"""The memory around the engine: recalled, shared, remembered; and what lookups find before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dragoman_schemas.approved import ApprovedTranslation
from dragoman_schemas.scripts import Quarantine
from dragoman_schemas.wire import open_record
from dragoman_text.detection import Detection
from dragoman_text.terms import Term, TermIndex
from dragoman_text.verdicts import Candidate, Finding
from dragoman_worker.errors import PermanentEngineError
from dragoman_worker.job.assessments import QualityRules
from dragoman_worker.job.opening import Openings
from dragoman_worker.job.plan import Plan, Unit
from dragoman_worker.job.planner import Planner
from dragoman_worker.job.recall import Recall
from dragoman_worker.ports import Claim, ClaimRequest, StoredGlossary
from dragoman_worker.process.journal import Stage
from support.fakes.core import Core, record
from support.fakes.inline_judge import InlineJudge
from support.fakes.local_memory import LocalMemory
from support.fakes.scripted_engine import Says
from support.fakes.scripted_judge import ScriptedJudge, judging
from support.processes.waiting import eventually

NOW = "2030-01-01T00:00:00.000Z"
LONG = " ".join(f"This is sentence number {n} of a long text." for n in range(40))
RULES = QualityRules("basic", max_attempts=2, on_fail="best_effort")


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


@pytest.mark.parametrize("tokenises", [False, True])
async def test_a_job_of_many_recalled_items_needs_no_engine_and_few_look_ups(
    tokenises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = remembering()
    core.tokenises = tokenises
    sizes: list[int] = []
    fill = Recall.fill

    async def counted(recall: Recall, plan: Plan, units: Sequence[Unit]) -> None:
        sizes.append(len(units))
        await fill(recall, plan, units)

    monkeypatch.setattr(Recall, "fill", counted)
    texts = [f"text {n}" for n in range(100)]
    _, items = await results(core, record("j0", texts), record("j1", texts))
    assert [item.text for item in items] == [text.upper() for text in texts]
    assert all(item.cached for item in items)
    assert len(core.engine.requests) == 100
    assert sizes[-3:] == [1, 64, 35]


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
        await eventually(lambda: core.permits.waiting == 0, timeout_s=30, what="all followers")
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


async def test_a_suspect_whose_first_items_are_recalled_runs_and_holds_nothing_afterwards() -> None:
    core = remembering()
    items = ["one", "two", "three", "four", "five"]
    suspect = record("j1", items)
    envelope = open_record(suspect)
    for number in range(2):  # left behind by crashed workers
        claim = Claim(envelope.job_id, envelope.fingerprint, f"crashed{number}")
        await core.store.claim(
            ClaimRequest(claim, "dragoman.jobs/0/1", NOW, quarantine=Quarantine.BY_ITSELF)
        )
    await results(core, record("j0", "one"), suspect, record("j2", "after"))
    assert core.texts("j1") == [item.upper() for item in items]
    assert core.texts("j2") == ["AFTER"]
    assert core.permits.held_items == 0


async def test_each_planning_of_recalled_items_is_journaled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = remembering()
    texts = [f"text {number}" for number in range(70)]
    inside = 0
    at_each: list[int] = []

    class Journaled(Openings):
        def enter_now(self, name: str, stage: Stage) -> int | None:
            nonlocal inside
            slot = super().enter_now(name, stage)
            inside += slot is not None
            return slot

        def leave(self, slot: int) -> None:
            nonlocal inside
            inside -= 1
            super().leave(slot)

    def step(planner: Planner, plan: Plan, *, timed: bool = False) -> Unit | None:
        at_each.append(inside)
        return planned(planner, plan, timed=timed)

    planned = Planner.step
    core.openings = Journaled()
    core.consumer.append(record("j0", texts))
    await core.run_all()
    core.restart()
    monkeypatch.setattr(Planner, "step", step)
    core.consumer.append(record("j1", texts))
    await core.run_all()
    assert core.engine.asked("text 69") == 1
    assert at_each == [1] * 70


async def test_a_piece_does_not_answer_an_item_with_a_limit_of_characters() -> None:
    def rule(candidate: Candidate) -> Sequence[Finding]:
        most = candidate.max_chars
        long = most is not None and len(candidate.target) > most and not candidate.joined
        return [Finding("max_chars", "fail", "why")] if long else []

    core = remembering(judging(rule))
    core.max_tokens = 40
    [[first]] = await results(core, record("j0", [{"text": LONG, "max_chars": 10}]))
    piece = core.engine.requests[0].source
    core.restart()
    core.consumer.append(record("j1", [{"text": piece, "max_chars": 10}]))
    await core.run_all()
    assert len(piece) < len(LONG)
    assert first.quality == "ok"
    result = core.state("j1").result
    assert result is not None
    assert [item.quality for item in result.translations] == ["fail"]


async def test_words_and_literals_do_not_share_answers() -> None:
    core = remembering()
    text = "Go and see."
    jobs = (
        record("j0", text, do_not_translate=["Go"]),
        record("j1", [{"text": text, "protect": ["Go"]}]),
    )
    await results(core, *jobs)
    assert core.engine.asked(text) == 2


async def test_an_item_recalled_in_pieces_is_cached() -> None:
    core = remembering()
    core.max_tokens = 40
    _, [item] = await results(core, record("j0", LONG), record("j1", LONG))
    assert len(core.engine.requests) > 1
    assert (item.cached, item.quality) == (True, "ok")


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


async def test_an_approved_translation_is_found_by_the_detected_language() -> None:
    core = remembering(ScriptedJudge(languages=lambda _: Detection("fr", 0.9)))
    local(core).approve(ApprovedTranslation("un", "eins", "de", "fr"))
    [[item]] = await results(core, record("j0", "un", source_lang=...))
    assert item.text == "eins"


async def test_a_doubtful_language_finds_no_approved_translation() -> None:
    core = remembering(ScriptedJudge(languages=lambda _: Detection("fr", 0.2)))
    local(core).approve(ApprovedTranslation("un", "eins", "de", "fr"))
    [[item]] = await results(core, record("j0", "un", source_lang=...))
    assert item.text == "UN"


async def test_an_approved_translation_that_is_too_long_is_ignored() -> None:
    core = remembering()
    local(core).approve(ApprovedTranslation("one", "much too long", "de"))
    [[item]] = await results(core, record("j0", [{"text": "one", "max_chars": 5}]))
    assert item.text == "ONE"


GATES = InlineJudge()


def with_gates(*approved: ApprovedTranslation, **rules: Any) -> Core:
    core = remembering()
    core.judge, core.rules = GATES, replace(RULES, **rules)
    local(core).approve(*approved)
    return core


def prefixes(item: Any) -> list[str]:
    return [warning.split(":")[0] for warning in item.warnings]


MARKET = ApprovedTranslation(
    "The market opens at nine.", "GENEHMIGT du kleiner Markt um neun.", "de", "en"
)


async def test_an_approved_translation_says_what_it_lacks_of_what_the_job_asks_for() -> None:
    core = with_gates(MARKET)
    asked = {"glossary": {"market": "Basar"}, "formality": "more"}
    [[item]] = await results(core, record("j0", MARKET.source, target_lang="de", **asked))
    assert (item.text, item.quality, item.cached) == (MARKET.target, "warn", True)
    assert prefixes(item) == ["glossary", "formality"]
    assert item.checks["memory"] == {"origin": "approved"}
    assert item.checks["glossary"]["verdict"] == "warn"


@pytest.mark.parametrize("level", ["basic", "strict"])
@pytest.mark.parametrize(
    ("source", "target", "asked"),
    [
        (MARKET.source, MARKET.target, {"do_not_translate": ["market"]}),
        ("%s of 3 files were copied.", "Dateien wurden kopiert.", {}),
        ("Open <b>all</b> the files.", "Öffnen Sie alle Dateien.", {}),
        ("Hello {name}, welcome.", "Hallo {nom}, willkommen.", {}),
    ],
)
async def test_an_approved_translation_that_has_lost_what_must_stay_is_not_used(
    level: Any, source: str, target: str, asked: dict[str, Any]
) -> None:
    core = with_gates(ApprovedTranslation(source, target, "de", "en"), level=level)
    [[item]] = await results(core, record("j0", source, target_lang="de", **asked))
    assert item.text != target
    assert core.engine.requests
    assert "memory" in prefixes(item)


async def test_an_approved_translation_in_another_style_is_used_as_it_is() -> None:
    source = "Save the file before you close the window, or your changes are lost."
    for target in (source, "Sichern!", "Enregistrez le fichier avant de fermer la fenêtre."):
        core = with_gates(ApprovedTranslation(source, target, "de", "en"), level="strict")
        [[item]] = await results(core, record("j0", source, target_lang="de"))
        assert (item.text, item.quality, item.warnings) == (target, "ok", [])


async def test_without_gates_an_approved_translation_keeps_what_its_item_protects() -> None:
    source = "%s of 3 files were copied."
    core = with_gates(ApprovedTranslation(source, "kopiert", "de", "en"), level="off")
    item = {"text": source, "protect": ["%s"]}
    [used], [kept] = await results(
        core, record("j0", source, target_lang="de"), record("j1", [item], target_lang="de")
    )
    assert (used.text, used.warnings) == ("kopiert", [])
    assert kept.text == source.upper()
    assert prefixes(kept) == ["memory"]


async def test_an_approved_translation_that_cannot_be_judged_is_unchecked() -> None:
    core = remembering(ScriptedJudge(available=False))
    local(core).approve(ApprovedTranslation("one", "eins", "de"))
    [[item]] = await results(core, record("j0", "one"))
    assert (item.text, item.quality) == ("eins", "unchecked")
    assert prefixes(item) == ["unjudged"]


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
