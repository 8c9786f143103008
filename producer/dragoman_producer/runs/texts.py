"""Endless streams of texts, and lists of texts, without documents."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dragoman_producer.handle import JobHandle
from dragoman_producer.runs.batching import JOB_BYTES, JOB_SEGMENTS
from dragoman_producer.runs.request import IN_FLIGHT, Translation
from dragoman_producer.window import in_order
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import MAX_TEXT_BYTES, TranslationJob
from dragoman_schemas.languages import normalise

LINGER_S: Final = 0.05
"""How long a job waits for further texts of a slow source."""


class Submitter(Protocol):
    """What a stream needs of a TranslationClient."""

    async def submit(self, job: TranslationJob) -> JobHandle: ...


@dataclass(frozen=True, slots=True)
class Translated:
    """One text of a stream."""

    id: str
    text: str | None
    """The translation; None if there is none."""
    error: str | None = None
    """An error code (docs/reference/error-codes.md) if there is no translation."""
    quality: str = "unchecked"


async def stream(
    client: Submitter,
    pairs: AsyncIterable[tuple[str, str]],
    *,
    to: str,
    translation: Translation | None = None,
    in_flight: int = IN_FLIGHT,
) -> AsyncIterator[Translated]:
    """Yield the translation of each (id, text) in their order; the source may be endless.

    At most about `in_flight` texts are held. A text that fails does not end the stream, nor does
    one that no job can hold (`invalid_job`). Raises ValueError for a language that does not exist,
    and the errors of the client.
    """
    settings = translation or Translation()
    fields = {"target_lang": normalise(to), **settings.fields()}
    if settings.glossary:
        fields["glossary"] = dict(settings.glossary)
    prefix = secrets.token_hex(8)
    number = 0

    async def work(pairs: list[tuple[str, str]]) -> list[Translated]:
        nonlocal number
        job_id, number = f"{prefix}.{number}", number + 1
        return await _translated(client, job_id, pairs, fields)

    jobs = max(1, in_flight // JOB_SEGMENTS)
    async for done in in_order(_grouped(pairs), work, in_flight=jobs):
        for each in done:
            yield each


async def _translated(
    client: Submitter, job_id: str, pairs: list[tuple[str, str]], fields: dict[str, Any]
) -> list[Translated]:
    fit = [pair for pair in pairs if _fits_a_job(pair[1])]
    found = iter(await _job_result(client, job_id, fit, fields) if fit else ())
    return [
        next(found) if _fits_a_job(text) else Translated(name, None, FailureCode.INVALID_JOB)
        for name, text in pairs
    ]


def _fits_a_job(text: str) -> bool:
    """Return whether a job may hold a text: half a surrogate has no UTF-8."""
    try:
        return len(text.encode()) <= MAX_TEXT_BYTES
    except UnicodeEncodeError:
        return False


async def _job_result(
    client: Submitter, job_id: str, pairs: list[tuple[str, str]], fields: dict[str, Any]
) -> list[Translated]:
    job = TranslationJob.model_validate(
        {"job_id": job_id, "text": [text for _, text in pairs], **fields}
    )
    result = await (await client.submit(job)).result()
    code = result.error.code if result.error else result.status
    found = list(result.translations)
    made: list[Translated] = []
    for index, (name, _) in enumerate(pairs):
        item = found[index] if index < len(found) else None
        if item is None or item.text is None or item.fallback == "source":
            why = item.error.code if item and item.error else "quality_failed" if item else code
            made.append(Translated(name, None, why))
        else:
            made.append(Translated(name, item.text, None, item.quality))
    return made


async def _grouped(
    pairs: AsyncIterable[tuple[str, str]],
) -> AsyncIterator[list[tuple[str, str]]]:
    """Yield texts for a job each: as many as fit, or those that arrived within LINGER_S."""
    arrived: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue(2 * JOB_SEGMENTS)

    async def feed() -> None:
        try:
            async for pair in pairs:
                await arrived.put(pair)
        except Exception:
            await arrived.put(None)
            raise
        await arrived.put(None)

    feeding = asyncio.create_task(feed(), name="dragoman-stream")
    try:
        following = await arrived.get()
        while following is not None:
            some, following = await _one_job(following, arrived)
            yield some
            following = following if following is not _LATE else await arrived.get()
        await feeding
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError):
            await feeding


_LATE: Final = ("", "late")


async def _one_job(
    first: tuple[str, str], arrived: asyncio.Queue[tuple[str, str] | None]
) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """Return the texts of a job and the next one: None at the end, _LATE if none came in time."""
    some, size = [first], _bytes(first[1])
    try:
        async with asyncio.timeout(LINGER_S):
            while len(some) < JOB_SEGMENTS:
                pair = await arrived.get()
                if pair is None:
                    return some, None
                size += _bytes(pair[1])
                if size > JOB_BYTES:
                    return some, pair
                some.append(pair)
    except TimeoutError:
        pass
    return some, _LATE


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def translate_texts(
    texts: Iterable[str], *, to: str, translation: Translation | None = None, client: Any = None
) -> list[str]:
    """Return the translation of each text; for scripts, not inside a running event loop.

    Settings come from the environment unless a client is given, which is closed afterwards. Raises
    ValueError naming the first text that has no translation, TypeError for one string in the place
    of a list, and the errors of the client.
    """
    if isinstance(texts, str):
        raise TypeError("texts: give a list of texts, not one of them")
    return asyncio.run(_texts(list(texts), to, translation, client))


async def _texts(
    texts: list[str], to: str, translation: Translation | None, client: Any
) -> list[str]:
    from dragoman_producer.client import TranslationClient  # noqa: PLC0415  loads Kafka

    async def pairs() -> AsyncIterator[tuple[str, str]]:
        for number, text in enumerate(texts):
            yield str(number), text

    async with client or TranslationClient() as opened:
        found = stream(opened, pairs(), to=to, translation=translation)
        return [_text(each) async for each in found]


def _text(each: Translated) -> str:
    if each.text is None:
        raise ValueError(f"text {each.id} has no translation: {each.error}")
    return each.text
