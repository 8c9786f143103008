"""Translation of the texts of one request: into jobs by their language, and back in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from dragoman_gateway.errors import ApiError, for_code
from dragoman_gateway.glossaries.usable import UsableGlossary
from dragoman_gateway.jobs import Asked, ContentJobs
from dragoman_gateway.keys import Key
from dragoman_gateway.languages import OfferedLanguages, base
from dragoman_gateway.markup import MarkedText, Markup, Text, read_texts, size
from dragoman_gateway.usage import KeyUsage
from dragoman_schemas.jobs import MAX_ITEMS, MAX_TEXT_BYTES
from dragoman_schemas.results import ItemResult, TranslationResult
from dragoman_text.detection import Detection
from dragoman_text.letters import first_letters

T = TypeVar("T")
_ENOUGH_LETTERS: Final = 40
"""Texts with fewer letters are judged with the others of their job by the worker."""
_IN_A_THREAD: Final = 16 * 1024
"""Texts of more bytes than that are read in a thread: they would stop all other requests."""
_THREADS: Final = 2
"""Each takes its share of one interpreter from the requests of all keys."""


class Detector(Protocol):
    """What is needed of a LanguageDetector."""

    def detect(self, text: str, candidates: Sequence[str] | None = None) -> Detection | None: ...


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What a caller asks for; languages are canonical tags."""

    texts: Sequence[str]
    target: str
    source: str | None = None
    markup: Markup | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the job."""
    glossary: UsableGlossary | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, by which API, and the trace of the request."""

    key: Key
    api: str
    traceparent: str | None = None


class TranslatedText(NamedTuple):
    """A translated text."""

    text: str
    source: str
    """The language that it was in: given, reported, or guessed."""
    confidence: float
    warning: str | None = None
    """Why a part of it is not as asked, such as `quality_failed`."""


class _Item(NamedTuple):
    """An item, and the number of its text."""

    text: int
    content: str


class _Read(NamedTuple):
    """A text that was read, and the language that it seems to be in."""

    text: Text
    guess: Detection | None


class TextTranslator:
    """Translates requests."""

    def __init__(
        self,
        *,
        jobs: ContentJobs,
        usage: KeyUsage,
        detector: Detector,
        languages: Callable[[], OfferedLanguages],
        default_source: str,
    ) -> None:
        self._jobs = jobs
        self._usage = usage
        self._detector = detector
        self._languages = languages
        self._default_source = default_source
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="texts")
        self._turns: dict[str, asyncio.Lock] = {}

    async def translate(self, request: TextRequest, caller: Caller) -> list[TranslatedText]:
        """Return the translations in the order asked. Raises ApiError and DragomanError."""
        await self._usage.check(caller.key, sum(map(len, request.texts)))
        weight = sum(map(size, request.texts))
        read = await self._aside(caller.key, weight, lambda: self._read(request))
        found = await self._items(request, caller, read)
        return await self._aside(
            caller.key,
            weight,
            lambda: [
                self._answer(request, given, each, items)
                for given, each, items in zip(request.texts, read, found, strict=True)
            ],
        )

    def detect(self, text: str) -> Detection | None:
        """Return the likeliest of the languages that are offered; None without letters."""
        return self._detector.detect(text, self._languages().bases)

    async def _aside(self, key: Key, weight: int, work: Callable[[], T]) -> T:
        """Return what work returns; in a thread if texts have many bytes, once a time for a key."""
        if weight <= _IN_A_THREAD:
            return work()
        async with self._turns.setdefault(key.id, asyncio.Lock()):
            running = asyncio.get_running_loop().run_in_executor(self._threads, work)
            try:
                return await asyncio.shield(running)
            finally:
                await asyncio.wait([running])  # a caller that left keeps its key's turn

    def _read(self, request: TextRequest) -> list[_Read]:
        """Return the texts as items, with their languages unless the caller says it."""
        detect = request.source is None
        texts = read_texts(request.texts, request.markup)
        return [_Read(each, self.detect(each.prose) if detect else None) for each in texts]

    async def _items(
        self,
        request: TextRequest,
        caller: Caller,
        read: Sequence[_Read],
    ) -> list[list[ItemResult]]:
        """Return the results of the items of each text."""
        found: list[list[ItemResult]] = [[] for _ in read]
        batches = list(_batches(read))
        results = await _all(self._jobs.result(_asked(request, caller, each)) for each in batches)
        for batch, result in zip(batches, results, strict=True):
            for item, translated in zip(batch, _translations(result, len(batch)), strict=True):
                found[item.text].append(translated)
        return found

    def _answer(
        self,
        request: TextRequest,
        given: str,
        read: _Read,
        items: Sequence[ItemResult],
    ) -> TranslatedText:
        text, guess = read
        found = (each.detected_source_lang for each in items)
        reported = next((tag for tag in found if tag is not None), None)
        source = request.source or reported or (guess.language if guess else self._default_source)
        sure = guess.confidence if guess and base(source) == guess.language else 1.0
        if not items:
            return TranslatedText(given, source, sure if guess else 0.0)
        written = text.written([each.text or "" for each in items])
        kept = any(each.fallback == "source" for each in items)
        kept = kept or (isinstance(text, MarkedText) and text.unfitting > 0)
        return TranslatedText(written, source, sure, "quality_failed" if kept else None)


def _batches(read: Sequence[_Read]) -> Iterator[Sequence[_Item]]:
    """Yield the items of each job: short texts with those of their own language."""
    groups: dict[str | None, list[_Item]] = {}
    for number, (text, guess) in enumerate(read):
        short = guess is not None and len(first_letters(text.prose)) < _ENOUGH_LETTERS
        group = groups.setdefault(guess.language if short and guess else None, [])
        group += (_Item(number, content) for content in text.items)
    for group in groups.values():
        yield from _packed(group)


def _packed(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    some: list[_Item] = []
    weight = 0
    for item in items:
        own = size(item.content)
        if some and (len(some) == MAX_ITEMS or weight + own > MAX_TEXT_BYTES):
            yield some
            some, weight = [], 0
        some.append(item)
        weight += own
    if some:
        yield some


def _asked(request: TextRequest, caller: Caller, items: Sequence[_Item]) -> Asked:
    """Return the job of some items. What the caller's key says counts for all its jobs."""
    key = caller.key
    quality = key.quality.model_dump(exclude_none=True) if key.quality else {}
    contents = [item.content for item in items]
    fields: dict[str, Any] = {
        "text": contents[0] if len(contents) == 1 else contents,
        "target_lang": request.target,
        "source_lang": request.source,
        **request.fields,
        "glossary_id": request.glossary.name if request.glossary else None,
        "quality": {"on_fail": "best_effort", **quality},
        "memory": key.memory,
        "profile": key.profile,
    }
    return Asked(
        {name: value for name, value in fields.items() if value is not None},
        sum(map(len, contents)),
        key,
        caller.api,
        caller.traceparent,
        request.glossary,
    )


async def _all(work: Iterator[Any] | Any) -> list[TranslationResult]:
    """Return the results of all jobs; the first failure ends the others' waits."""
    awaited = list(work)
    if len(awaited) == 1:
        return [await awaited[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in awaited]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _translations(result: TranslationResult, count: int) -> Sequence[ItemResult]:
    """Return the items of a result that has all of them. Raises ApiError."""
    failed = next((each for each in result.translations if each.text is None), None)
    if result.status == "completed" and failed is None and len(result.translations) == count:
        return result.translations
    why = (failed.error if failed else None) or result.error
    if why is None:
        raise ApiError(503, f"The translation is {result.status}. Ask again.", 1)
    raise for_code(why.code, why.message)
