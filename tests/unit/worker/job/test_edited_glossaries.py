"""An edited glossary asks new questions of the memory, and only about the texts with its terms."""

from __future__ import annotations

import json

from dragoman_schemas.jobs import TranslationJob
from dragoman_text.terms import Term
from dragoman_worker.job.planner import Planner
from dragoman_worker.memory.key import Question, memory_key
from dragoman_worker.prompts.plain import PLAIN
from support.fakes.core import record
from support.fakes.local_glossaries import LocalGlossaries
from support.fakes.scripted_engine import ScriptedEngine

TEXTS = ["The gate is closed.", "The sun shines."]
BEFORE = Term("gate", ("Tor",))


async def keys(glossaries: LocalGlossaries) -> list[bytes]:
    """Return the memory's key of each text, for a job that names the glossary."""
    fields = json.loads(record(text=TEXTS, source_lang="en", glossary_id="ui"))
    job = TranslationJob.model_validate(fields)
    planner = Planner(
        engine=ScriptedEngine(),
        choose_profile=lambda _: PLAIN,
        max_tokens=4_096,
    )
    plan = planner.open(job, glossary=await glossaries.find("ui", job.target_lang))
    while not plan.complete:
        planner.step(plan)
    return [
        memory_key(
            Question(
                engine="e",
                profile=plan.profile.name,
                prompt_ids=unit.prompt_ids,
                decoding=unit.decoding,
                source=unit.source,
                target_lang=job.target_lang,
                source_lang=job.source_lang,
                level="basic",
                token_style="tags",  # noqa: S106  no secret
                terms=unit.terms,
            )
        )
        for unit in plan.units
    ]


async def test_no_answer_made_with_other_terms_is_used_after_an_edit() -> None:
    glossaries = LocalGlossaries()
    glossaries.put("ui", {"de": [BEFORE]}, "en")
    before = await keys(glossaries)
    for edited in (
        [Term("gate", ("Flugsteig",))],
        [Term("gate", ("Tor", "Flugsteig"))],
        [Term("gate", ("Tor",), case_sensitive=True)],
        [Term("house", ("Haus",))],
    ):
        glossaries.put("ui", {"de": edited}, "en")
        after = await keys(glossaries)
        assert after[0] != before[0]
        assert after[1] == before[1], "this text has none of the terms"


async def test_an_edit_elsewhere_in_the_glossary_costs_no_hit() -> None:
    glossaries = LocalGlossaries()
    glossaries.put("ui", {"de": [BEFORE]}, "en")
    before = await keys(glossaries)
    others = [Term(f"term {number}", ("x",)) for number in range(100)]
    glossaries.put("ui", {"de": [BEFORE, *others], "fr": others}, "en")
    assert await keys(glossaries) == before
