"""The judge contract: what the worker relies on, in a process and inline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry

from dragoman_text.terms import Term
from dragoman_text.verdicts import Candidate, Finding
from dragoman_worker.metrics import Metrics
from dragoman_worker.ports import Judge
from dragoman_worker.quality.judge import ProcessJudge
from support.fakes import odd_gates
from support.fakes.inline_judge import InlineJudge

LARGEST = 128 * 1024
TESTS = Path(odd_gates.__file__).parents[2]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=["inline", "process"])
async def judge(request: pytest.FixtureRequest) -> AsyncIterator[Judge]:
    if request.param == "inline":
        yield InlineJudge(odd_gates.judge)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS))
        made = ProcessJudge(
            timeout_s=60, metrics=Metrics(CollectorRegistry()), gates=odd_gates.NAME
        )
        await made.ready()
    yield made
    await made.close()


async def test_a_judgement_without_findings_keeps_the_text(judge: Judge) -> None:
    judgement = await judge.judge(Candidate("Hello.", "Hallo. ", "de"))
    assert judgement is not None
    assert (judgement.text, judgement.findings, judgement.verdict) == ("Hallo. ", (), "ok")


async def test_findings_and_the_repaired_text_come_back(judge: Judge) -> None:
    judgement = await judge.judge(Candidate("#fix", "Hallo. ", "de"))
    assert judgement is not None
    assert judgement.text == "Hallo."
    assert judgement.length_distance == 0.5
    expected = Finding("framing", "fixed", "blanks at the end were removed")
    assert judgement.findings == (expected,)


async def test_the_gates_see_every_field_of_the_candidate(judge: Judge) -> None:
    candidate = Candidate(
        "#echo",
        "Hallo \x00 \u200f 🙂",
        "zh-Hant",
        source_lang="en",
        strict=True,
        protected=("ACME",),
        terms=(Term("job", ("Auftrag", "Aufgabe"), case_sensitive=True, note="n."),),
        max_chars=40,
        joined=True,
    )
    judgement = await judge.judge(candidate)
    assert judgement is not None
    assert judgement.text == repr(candidate)


async def test_a_gate_that_raises_leaves_the_answer_unjudged(judge: Judge) -> None:
    assert await judge.judge(Candidate("#raise", "Hallo.", "de")) is None
    assert await judge.judge(Candidate("Hello.", "Hallo.", "de")) is not None


async def test_gates_can_detect_languages(judge: Judge) -> None:
    text = "Guten Tag, wie geht es Ihnen heute?"
    judgement = await judge.judge(Candidate("#language", text, "de"))
    assert judgement is not None
    assert judgement.text == "de"


async def test_the_largest_answers_are_judged(judge: Judge) -> None:
    answers = [chr(ord("a") + number) * LARGEST for number in range(8)]
    judged = await asyncio.gather(
        *(judge.judge(Candidate(answer, answer, "de")) for answer in answers)
    )
    assert [each.text if each else None for each in judged] == answers


async def test_many_answers_come_back_to_those_who_asked(judge: Judge) -> None:
    asked = [judge.judge(Candidate("Hello.", str(number), "de")) for number in range(1_000)]
    judged = await asyncio.gather(*asked)
    assert [each.text if each else None for each in judged] == list(map(str, range(1_000)))


async def test_languages_are_detected_per_text(judge: Judge) -> None:
    texts = ["Guten Tag, wie geht es Ihnen?", "", "123", "안녕하세요, 만나서 반갑습니다."]
    found = await judge.detect(texts, None)
    assert [each.language if each else None for each in found] == ["de", None, None, "ko"]


async def test_candidates_restrict_the_languages(judge: Judge) -> None:
    found = await judge.detect(["Bonjour !"], frozenset(("en", "fr")), "de")
    assert [each.language if each else None for each in found] == ["fr"]


async def test_a_job_of_512_texts_is_detected_at_once(judge: Judge) -> None:
    texts = ["The weather is nice today, and we will go to the park."] * 512
    found = await judge.detect(texts, None)
    assert {each.language if each else None for each in found} == {"en"}
    assert await judge.detect([], None) == []
