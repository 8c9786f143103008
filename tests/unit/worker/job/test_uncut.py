"""Stretches that no one can cut, as base64, are kept to the byte; the text around is not."""

from __future__ import annotations

import base64
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from dragoman_schemas.results import ItemResult
from dragoman_worker.job.assessments import NOT_JUDGED, QualityRules
from dragoman_worker.job.item_results import item_results
from dragoman_worker.ports import Generation, GenerationRequest, Prompt
from support.fakes.core import Core
from support.fakes.inline_judge import InlineJudge
from support.fakes.scripted_engine import Says, ScriptedEngine
from unit.worker.job.test_answering import run

BEFORE: Final = "The picture below shows the harbour of the old town in the early morning."
BEHIND: Final = "Please save the file before you close the window, or your changes are lost."
GERMAN: Final = {
    BEFORE: "Das Bild unten zeigt den Hafen der Altstadt am frühen Morgen.",
    BEHIND: "Bitte speichern Sie die Datei, bevor Sie das Fenster schließen, sonst gehen Ihre "
    "Änderungen verloren.",
}
BASE64: Final = base64.b64encode(random.Random(5).randbytes(3_000)).decode()
STRETCHES: Final = {
    "base64": BASE64,
    "base64 for links": BASE64.translate(str.maketrans("+/", "-_")),
    "a data URI": f"data:image/png;base64,{BASE64}",
    "percent-encoded": "".join(f"%{byte:02X}" for byte in random.Random(6).randbytes(1_000)),
    "emoji": "😀" * 500,
    "families of emoji": "👩‍👩‍👧‍👦❤️" * 100,
    "a rule": "═" * 500,
}


@lru_cache(maxsize=1)
def byte_level() -> Tokenizer:
    """Return byte-level BPE as the models of today have it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*GERMAN, *GERMAN.values()] * 4, trainer)
    return tokenizer


class German(ScriptedEngine):
    """Translates the two sentences, copies all else, and counts as a real tokenizer does."""

    def encode(self, prompt: Prompt) -> Sequence[int]:
        return byte_level().encode(prompt.completion).ids

    def count_tokens(self, text: str) -> int:
        return len(byte_level().encode(text).ids)

    async def _follow(self, request: GenerationRequest) -> Generation:
        text = request.source
        for sentence, german in GERMAN.items():
            text = text.replace(sentence, german)
        return self._generation(request, Says(text))


judge = lru_cache(maxsize=1)(InlineJudge)


def core(*, judged: bool = True, engine: ScriptedEngine | None = None) -> Core:
    return Core(
        engine=engine or German(max_model_len=300),
        judge=judge(),
        rules=QualityRules(level="basic", max_attempts=2) if judged else NOT_JUDGED,
    )


async def result(parts: Core, text: Any, **fields: Any) -> ItemResult:
    plan = await run(parts, text, source_lang="en", target_lang="de", **fields)
    return item_results(plan)[0]


def asked(parts: Core) -> list[str]:
    return [request.source for request in parts.engine.requests]


@pytest.mark.parametrize("name", STRETCHES)
@pytest.mark.parametrize("between", [" ", "\n\n"])
async def test_the_text_around_is_translated_and_the_stretch_comes_back_to_the_byte(
    name: str, between: str
) -> None:
    stretch, parts = STRETCHES[name], core()
    found = await result(parts, between.join((BEFORE, stretch, BEHIND)))
    assert found.text == between.join((GERMAN[BEFORE], stretch, GERMAN[BEHIND]))
    assert (found.error, found.quality) == (None, "warn")
    assert [warning.split(":")[0] for warning in found.warnings] == ["uncut"]
    assert not any(stretch[:50] in source for source in asked(parts))


@pytest.mark.parametrize("name", STRETCHES)
async def test_a_stretch_is_cut_off_the_words_that_touch_it(name: str) -> None:
    stretch = STRETCHES[name]
    found = await result(core(), f"{BEFORE}({stretch}){BEHIND}")
    assert found.text is not None
    assert found.text.count(stretch) == 1
    assert GERMAN[BEHIND] in found.text


async def test_an_item_that_is_only_a_stretch_comes_back_with_the_warning() -> None:
    parts = core()
    found = await result(parts, BASE64)
    assert (found.text, found.error, found.quality) == (BASE64, None, "warn")
    assert [warning.split(":")[0] for warning in found.warnings] == ["uncut"]
    assert asked(parts) == []


async def test_many_stretches_come_back_in_order_with_one_warning() -> None:
    stretches = [BASE64[n * 600 :][:600] for n in range(6)]
    found = await result(core(), "\n".join(f"{BEFORE}\n{each}" for each in stretches))
    assert found.text == "\n".join(f"{GERMAN[BEFORE]}\n{each}" for each in stretches)
    assert len(found.warnings) == 1
    assert "3,600" in found.warnings[0]


@pytest.mark.parametrize(("length", "warnings"), [(1_800, 0), (4_000, 1)])
async def test_a_stretch_inside_a_tag_comes_back_to_the_byte(length: int, warnings: int) -> None:
    """A tag of up to 2,000 characters is kept in any case."""
    tag = f'<img src="data:image/png;base64,{BASE64[:length]}" alt="x">'
    found = await result(core(), f"{BEFORE}{tag}{BEHIND}")
    assert found.text == f"{GERMAN[BEFORE]}{tag}{GERMAN[BEHIND]}"
    assert len(found.warnings) == warnings


async def test_a_stretch_between_tags_comes_back_to_the_byte() -> None:
    found = await result(core(), f"<p>{BEFORE}</p><code>{BASE64}</code><p>{BEHIND}</p>")
    assert found.text == f"<p>{GERMAN[BEFORE]}</p><code>{BASE64}</code><p>{GERMAN[BEHIND]}</p>"


async def test_a_protected_literal_inside_of_a_stretch_does_not_cut_it() -> None:
    literal = BASE64[2_000:2_010]
    item = {"text": f"{BEFORE} {BASE64} {BEHIND}", "protect": [literal]}
    found = await result(core(), [item])
    assert found.text == f"{GERMAN[BEFORE]} {BASE64} {GERMAN[BEHIND]}"
    assert found.quality == "warn"


async def test_a_stretch_that_is_protected_is_kept_without_a_warning() -> None:
    item = {"text": f"{BEFORE} {BASE64} {BEHIND}", "protect": [BASE64]}
    found = await result(core(), [item])
    assert found.text == f"{GERMAN[BEFORE]} {BASE64} {GERMAN[BEHIND]}"
    assert found.warnings == []


async def test_without_gates_the_item_stays_unchecked_and_says_what_is_uncut() -> None:
    found = await result(core(judged=False), f"{BEFORE} {BASE64} {BEHIND}")
    assert found.text == f"{GERMAN[BEFORE]} {BASE64} {GERMAN[BEHIND]}"
    assert found.quality == "unchecked"
    assert [warning.split(":")[0] for warning in found.warnings] == ["uncut"]


class CutsOff(German):
    """Never comes to the end of data."""

    async def _follow(self, request: GenerationRequest) -> Generation:
        if BASE64[:50] in request.source:
            return self._generation(request, Says(request.source[:80], "length"))
        return await super()._follow(request)


async def test_a_stretch_whose_answer_never_ends_stays_as_it_is() -> None:
    stretch = BASE64[:250]
    found = await result(core(engine=CutsOff()), f"{BEFORE} {stretch} {BEHIND}")
    assert found.text == f"{GERMAN[BEFORE]} {stretch} {GERMAN[BEHIND]}"
    assert [warning.split(":")[0] for warning in found.warnings] == ["uncut"]


async def test_a_word_for_which_the_context_has_no_room_still_fails() -> None:
    found = await result(core(engine=German(max_model_len=1)), BEFORE)
    assert found.error is not None
    assert (found.text, found.error.code) == (None, "too_long")


async def test_a_limit_of_characters_counts_what_is_uncut() -> None:
    text = f"{BEFORE} {BASE64} {BEHIND}"
    found = await result(core(), [{"text": text, "max_chars": 100}])
    assert found.checks["max_chars"]["verdict"] == "warn"
    assert str(len(found.text or "")) in found.checks["max_chars"]["detail"]
