"""Tests of streams and lists of texts, with a client in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from itertools import count, islice

import pytest

from dragoman_producer import documents
from dragoman_producer.runs.request import Translation
from dragoman_producer.runs.texts import Translated
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.jobs import Item, TranslationJob


async def numbered(most: int | None = None) -> AsyncIterator[tuple[str, str]]:
    for number in islice(count(), most):
        yield f"id-{number}", f"Text {number}."


async def test_texts_come_back_in_order_with_their_ids_in_jobs_of_64() -> None:
    client = InMemoryClient()
    found = [each async for each in documents.stream(client, numbered(200), to="de")]
    assert found == [Translated(f"id-{n}", f"[de] Text {n}.") for n in range(200)]
    assert [len(job.items) for job in client.submitted] == [64, 64, 64, 8]


async def test_a_text_that_equals_the_mark_of_a_late_source_is_translated() -> None:
    async def pairs() -> AsyncIterator[tuple[str, str]]:
        yield "a", "x" * 16 * 1024
        yield ("", "late")

    found = [each.id async for each in documents.stream(InMemoryClient(), pairs(), to="de")]
    assert found == ["a", ""]


async def test_an_endless_source_is_read_as_far_as_its_results_are_taken() -> None:
    client = InMemoryClient()
    found = documents.stream(client, numbered(), to="de", in_flight=128)
    first = [each async for each in _taken(found, 300)]
    assert first[-1] == Translated("id-299", "[de] Text 299.")
    assert sum(len(job.items) for job in client.submitted) <= 300 + 5 * 64


async def _taken(found: AsyncIterator[Translated], most: int) -> AsyncIterator[Translated]:
    for _ in range(most):
        yield await anext(found)
    assert isinstance(found, AsyncGenerator)
    await found.aclose()


async def test_a_slow_source_does_not_hold_back_what_has_arrived() -> None:
    more = asyncio.Event()

    async def slow() -> AsyncIterator[tuple[str, str]]:
        yield "a", "One."
        await more.wait()
        yield "b", "Two."

    found = documents.stream(InMemoryClient(), slow(), to="de")
    assert await anext(found) == Translated("a", "[de] One.")
    more.set()
    assert await anext(found) == Translated("b", "[de] Two.")
    with pytest.raises(StopAsyncIteration):
        await anext(found)


async def test_a_text_that_fails_does_not_end_the_stream() -> None:
    def translate(item: Item, job: TranslationJob) -> str:
        if item.text == "Text 1.":
            raise ItemFailed
        return item.text

    client = InMemoryClient(translate)
    found = [each async for each in documents.stream(client, numbered(3), to="de")]
    assert [each.error for each in found] == [None, "engine_failed", None]


@pytest.mark.parametrize("text", ["x" * (128 * 1024 + 1), "half a \ud800 pair"])
async def test_a_text_that_no_job_can_hold_does_not_end_the_stream(text: str) -> None:
    async def pairs() -> AsyncIterator[tuple[str, str]]:
        yield "a", "One."
        yield "b", text
        yield "c", "Three."

    found = [each async for each in documents.stream(InMemoryClient(), pairs(), to="de")]
    assert found == [
        Translated("a", "[de] One."),
        Translated("b", None, "invalid_job"),
        Translated("c", "[de] Three."),
    ]


async def test_an_error_of_the_source_is_raised_after_the_texts_before_it() -> None:
    async def broken() -> AsyncIterator[tuple[str, str]]:
        yield "a", "One."
        raise LookupError

    found = documents.stream(InMemoryClient(), broken(), to="de")
    assert await anext(found) == Translated("a", "[de] One.")
    with pytest.raises(LookupError):
        await anext(found)


def test_a_list_of_texts_is_translated_without_an_event_loop() -> None:
    translation = Translation(source_lang="en", glossary={"one": "eins"})
    client = InMemoryClient()
    texts = documents.translate_texts(
        ["One.", "Two."], to="zh_cn", translation=translation, client=client
    )
    assert texts == ["[zh-CN] One.", "[zh-CN] Two."]
    assert client.submitted[0].glossary == {"one": "eins"}


def test_a_list_with_a_text_that_fails_raises_and_names_it() -> None:
    def fail(item: Item, job: TranslationJob) -> str:
        raise ItemFailed

    with pytest.raises(ValueError, match="text 0 has no translation: engine_failed"):
        documents.translate_texts(["One."], to="de", client=InMemoryClient(fail))


def test_a_language_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="not a language"):
        documents.translate_texts(["One."], to="no-such", client=InMemoryClient())


def test_one_string_is_not_taken_for_a_list_of_texts() -> None:
    with pytest.raises(TypeError, match="texts: give a list"):
        documents.translate_texts("One.", to="de", client=InMemoryClient())
