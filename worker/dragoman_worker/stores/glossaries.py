"""The stored glossaries in Redis: an index of terms per version and language, built once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from redis.exceptions import RedisError

from dragoman_connections.redis_access.calls import Call, Command, Servers
from dragoman_connections.settings import RedisSettings
from dragoman_schemas import names
from dragoman_schemas.glossaries import (
    MOST_TERM_BYTES,
    GlossaryMeta,
    UnreadableGlossary,
    decode_meta,
    decode_terms,
)
from dragoman_schemas.languages import lookup_tags, other_script_tag
from dragoman_text.terms import Term, TermIndex
from dragoman_worker.errors import Unavailable
from dragoman_worker.log import logger
from dragoman_worker.ports import StoredGlossary
from dragoman_worker.stores.refusals import Refusals, wrong_type

READERS: Final = 3
"""Glossaries that are read at the same time."""
MOST_NAMES: Final = 1_000
"""Names whose version is remembered, also of glossaries that do not exist."""
MOST_INDEXES: Final = 64
MOST_INDEXED_TERMS: Final = 400_000
"""Terms of all indexes together: four of the largest."""
_READS: Final = 5
"""Reads of a glossary that changes during each of them, before the caller waits and repeats."""
_PAUSE_EVERY: Final = 256
"""Terms built between two pauses: about 1 ms of Python."""
_PAUSE_S: Final = 0.000_5
_NO_TERMS: Final = TermIndex(())


@dataclass(frozen=True, slots=True)
class _Checked:
    """The field `meta` of one name, None without a usable one, and when it was read."""

    at: float
    meta: GlossaryMeta | None


@dataclass(frozen=True, slots=True)
class _Indexed:
    """An index and what it was built from."""

    digest: str
    terms: TermIndex


class RedisGlossaries:
    """The Glossaries port on Redis. Event loop only.

    Few read at a time: each has a connection of the replica's pool meanwhile, which replies of
    megabytes occupy for seconds, and the jobs' pipelines must never wait for one.
    """

    def __init__(
        self,
        settings: RedisSettings,
        servers: Servers,
        *,
        refresh_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`servers` are those of the settings; the caller closes them."""
        self._servers = servers
        self._readers = asyncio.Semaphore(READERS)
        self._refusals = Refusals(settings.address.shown)
        self._keys = names.Keys(settings.key_prefix)
        self._refresh_s = refresh_s
        self._clock = clock
        self._checked: OrderedDict[str, _Checked] = OrderedDict()
        self._indexes: OrderedDict[tuple[str, str], _Indexed] = OrderedDict()
        self._loads: dict[tuple[str, str], asyncio.Task[StoredGlossary | None]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="glossaries")

    async def find(self, name: str, target_lang: str) -> StoredGlossary | None:
        """See Glossaries. Concurrent calls for one name and language share one load."""
        key = (name, target_lang)
        load = self._loads.get(key)
        if load is None:
            checked = self._recently(name)
            if checked is not None and (known := self._known(name, target_lang, checked)):
                return known[0]
            load = asyncio.create_task(self._load(name, target_lang), name="glossary")
            self._loads[key] = load
            load.add_done_callback(partial(self._loaded, key))
        # Shielded: the cancellation of one job must not fail the others that wait for the load.
        return await asyncio.shield(load)

    async def close(self) -> None:
        """Cancel the loads in progress."""
        loads = list(self._loads.values())
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    # --- what is known ----------------------------------------------------------------------------

    def _recently(self, name: str) -> _Checked | None:
        """Return what was read of a glossary within the last `refresh_s` seconds."""
        checked = self._checked.get(name)
        fresh = checked is not None and self._clock() - checked.at < self._refresh_s
        return checked if fresh else None

    def _known(
        self, name: str, target_lang: str, checked: _Checked
    ) -> tuple[StoredGlossary | None] | None:
        """Return the answer that needs no terms from Redis, None if there is no such answer."""
        meta = checked.meta
        if meta is None:
            return (None,)
        tag = _tag_for(meta, target_lang)
        if tag is None:
            other = other_script_tag(target_lang, meta.counts)
            return (replace(_stored(name, meta, _NO_TERMS), other_script=other),)
        indexed = self._indexes.get((name, tag))
        if indexed is None or indexed.digest != meta.digest:
            return None
        self._indexes.move_to_end((name, tag))
        return (_stored(name, meta, indexed.terms),)

    def _note(self, name: str, meta: GlossaryMeta | None) -> _Checked:
        checked = self._checked[name] = _Checked(self._clock(), meta)
        self._checked.move_to_end(name)
        while len(self._checked) > MOST_NAMES:
            self._checked.popitem(last=False)
        return checked

    def _keep(self, key: tuple[str, str], indexed: _Indexed) -> None:
        """Add an index, and drop the least recently used ones beyond the limits."""
        self._indexes[key] = indexed
        self._indexes.move_to_end(key)
        terms = sum(len(held.terms) for held in self._indexes.values())
        while len(self._indexes) > MOST_INDEXES or (
            terms > MOST_INDEXED_TERMS and len(self._indexes) > 1
        ):
            terms -= len(self._indexes.popitem(last=False)[1].terms)

    # --- reads ------------------------------------------------------------------------------------

    def _loaded(self, key: tuple[str, str], load: asyncio.Task[StoredGlossary | None]) -> None:
        del self._loads[key]
        if not load.cancelled():
            load.exception()  # retrieved here, because every caller may have been cancelled

    async def _load(self, name: str, target_lang: str) -> StoredGlossary | None:
        try:
            for _ in range(_READS):
                checked = self._recently(name) or self._note(name, await self._meta(name))
                known = self._known(name, target_lang, checked)
                if known is None:
                    known = await self._read_terms(name, target_lang, checked)
                if known is not None:
                    return known[0]
        except UnreadableGlossary as error:
            self._note(name, None)
            logger().warning("glossary_unreadable", glossary=name[:128], reason=str(error))
            return None
        raise Unavailable("Redis: a glossary changes faster than it can be read")

    async def _meta(self, name: str) -> GlossaryMeta | None:
        (meta,) = await self._send(("HGET", self._keys.glossary(name), names.FIELD_META))
        return None if meta is None else decode_meta(meta)

    async def _read_terms(
        self, name: str, target_lang: str, checked: _Checked
    ) -> tuple[StoredGlossary] | None:
        """Read and index the terms; None if the glossary has changed since it was checked."""
        meta = checked.meta
        tag = None if meta is None else _tag_for(meta, target_lang)
        if meta is None or tag is None:
            return None
        key, field = self._keys.glossary(name), names.glossary_terms(tag)
        (size,) = await self._send(("HSTRLEN", key, field))
        if size > MOST_TERM_BYTES:
            raise UnreadableGlossary(f"a language has more than {MOST_TERM_BYTES:,} bytes")
        ((found, terms),) = await self._send(("HMGET", key, names.FIELD_META, field))
        if found is None or decode_meta(found) != meta:
            self._checked.pop(name, None)
            return None
        if terms is None:
            raise UnreadableGlossary("a language that its field meta counts is missing")
        loop = asyncio.get_running_loop()
        index = await loop.run_in_executor(self._thread, _index, terms)
        self._keep((name, tag), _Indexed(meta.digest, index))
        return (_stored(name, meta, index),)

    async def _send(self, *commands: Command) -> list[Any]:
        """Return the replies. Raises Unavailable, UnknownReply, Halt, and UnreadableGlossary."""
        try:
            async with self._readers:
                (answer,) = await self._servers.send([Call(commands)])
        except (RedisError, OSError) as error:
            raise self._refusals.judged(error, commands[0]) from None
        for command, reply in zip(commands, answer.replies, strict=True):
            if isinstance(reply, Exception):
                if wrong_type(reply):
                    raise UnreadableGlossary("its key is not a hash")
                raise self._refusals.judged(reply, command, answer.server) from None
            self._refusals.answered(command, answer.server)
        return answer.replies


def _tag_for(meta: GlossaryMeta, target_lang: str) -> str | None:
    return next((tag for tag in lookup_tags(target_lang) if meta.counts.get(tag)), None)


def _stored(name: str, meta: GlossaryMeta, terms: TermIndex) -> StoredGlossary:
    return StoredGlossary(name, f"{meta.version}-{meta.digest[:12]}", meta.source_lang, terms)


def _index(terms: bytes) -> TermIndex:
    """Build an index, in a thread. Raises UnreadableGlossary."""
    return TermIndex(_with_pauses(terms))


def _with_pauses(terms: bytes) -> Iterator[Term]:
    """Yield the terms, and release the GIL so that the event loop never waits for its 5 ms."""
    for number, (source, targets, case_sensitive, note) in enumerate(decode_terms(terms), 1):
        yield Term(source, targets, case_sensitive, note)
        if number % _PAUSE_EVERY == 0:
            time.sleep(_PAUSE_S)
