"""DeepL's endpoints of glossaries: v2 with one dictionary each, v3 with any number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from itertools import permutations
from typing import Any, Final, TypeVar

from aiohttp import web

from dragoman_gateway.calls import ApiCall, Endpoint, Handler, json_response
from dragoman_gateway.errors import ApiError
from dragoman_gateway.glossaries.entries import Pair, Terms, read_terms
from dragoman_gateway.glossaries.library import KeptDictionary, KeptGlossary, KeyGlossaries
from dragoman_gateway.languages import OfferedLanguages, base
from dragoman_gateway.parameters import Parameters

MOST_BODY_BYTES: Final = 16 * 1024 * 1024
"""100,000 terms of ordinary length, in a form with escapes too."""
_LONGEST_NAME: Final = 1024
_FORMS: Final = frozenset({"tsv", "csv"})
_KINDS: Final[Mapping[str, str]] = {
    "text/tab-separated-values": "tsv",
    "text/csv": "csv",
    "text/*": "tsv",
    "*/*": "tsv",
}
T = TypeVar("T")


class GlossaryEndpoints:
    """Answers requests about glossaries."""

    def __init__(
        self, glossaries: KeyGlossaries, languages: Callable[[], OfferedLanguages]
    ) -> None:
        self._glossaries = glossaries
        self._languages = languages

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the endpoints by path."""
        one, each = {"GET": self._get, "DELETE": self._delete}, "/v2/glossaries/{id}"
        many, every = {**one, "GET": self._get_v3, "PATCH": self._patch}, "/v3/glossaries/{id}"
        dictionaries = {"PUT": self._put, "DELETE": self._delete_pair}
        return {
            "/v2/glossary-language-pairs": _endpoint({"GET": self._pairs}),
            "/v2/glossaries": _endpoint({"GET": self._list, "POST": self._create}),
            each: _endpoint(one),
            f"{each}/entries": _endpoint({"GET": self._entries}),
            "/v3/glossaries": _endpoint({"GET": self._list_v3, "POST": self._create_v3}),
            every: _endpoint(many),
            f"{every}/entries": _endpoint({"GET": self._entries_v3}),
            f"{every}/dictionaries": _endpoint(dictionaries),
        }

    # --- both versions --------------------------------------------------------------------------

    async def _pairs(self, _: ApiCall) -> object:
        """List the pairs of languages: any two that are offered."""
        pairs = permutations(self._languages().bases, 2)
        return {"supported_languages": [{"source_lang": s, "target_lang": t} for s, t in pairs]}

    async def _delete(self, call: ApiCall) -> object:
        await _finished(self._glossaries.remove(call.key, call.place["id"]))
        return web.Response(status=204)

    # --- v2 -------------------------------------------------------------------------------------

    async def _list(self, call: ApiCall) -> object:
        """List the glossaries that have one dictionary: others are v3's."""
        found = await self._glossaries.all(call.key)
        return {"glossaries": [_of_v2(each) for each in found if len(each.dictionaries) == 1]}

    async def _create(self, call: ApiCall) -> object:
        name, pair = _name(call.parameters), self._pair(call.parameters)
        terms = await _terms(call.parameters, pair)
        made = await _finished(self._glossaries.create(call.key, name, {pair: terms}))
        return json_response(_of_v2(made), 201)

    async def _get(self, call: ApiCall) -> object:
        return _of_v2(await self._single(call))

    async def _entries(self, call: ApiCall) -> object:
        form = _accepted(call.request.headers.get("Accept", "*/*"))
        (only,) = (await self._single(call)).dictionaries
        text = await self._glossaries.entries(call.key, call.place["id"], only.pair, form)
        kind = "text/csv" if form == "csv" else "text/tab-separated-values"
        headers = {"Content-Type": f"{kind}; charset=utf-8"}
        return web.Response(body=text.encode(), headers=headers)

    async def _single(self, call: ApiCall) -> KeptGlossary:
        found = await self._glossaries.get(call.key, call.place["id"])
        if len(found.dictionaries) != 1:
            count = len(found.dictionaries)
            raise ApiError(400, f"The glossary has {count} dictionaries: use /v3/glossaries.")
        return found

    # --- v3 -------------------------------------------------------------------------------------

    async def _list_v3(self, call: ApiCall) -> object:
        found = await self._glossaries.all(call.key)
        return {"glossaries": [_of_v3(each) for each in found]}

    async def _create_v3(self, call: ApiCall) -> object:
        name = _name(call.parameters)
        dictionaries: dict[Pair, Terms] = {}
        for given in call.parameters.objects("dictionaries"):
            pair = self._pair(given)
            if pair in dictionaries:
                shown = f"{pair.source} and {pair.target}"
                raise ApiError(400, f"Two dictionaries have the languages {shown}.")
            dictionaries[pair] = await _terms(given, pair)
        made = await _finished(self._glossaries.create(call.key, name, dictionaries))
        return json_response(_of_v3(made), 201)

    async def _get_v3(self, call: ApiCall) -> object:
        return _of_v3(await self._glossaries.get(call.key, call.place["id"]))

    async def _patch(self, call: ApiCall) -> object:
        """Rename a glossary, merge terms into one dictionary, or both."""
        key, glossary_id, parameters = call.key, call.place["id"], call.parameters
        given = parameters.objects("dictionaries")
        if len(given) > 1:
            raise ApiError(400, "Change one dictionary at a time.")
        if not given and "name" not in parameters:
            raise ApiError(400, "Neither 'name' nor 'dictionaries' specified.")
        name = _name(parameters) if "name" in parameters else None
        for each in given:
            pair = self._pair(each)
            terms = await _terms(each, pair)
            await _finished(self._glossaries.put(key, glossary_id, pair, terms, merge=True))
        if name is not None:
            await _finished(self._glossaries.rename(key, glossary_id, name))
        return _of_v3(await self._glossaries.get(key, glossary_id))

    async def _put(self, call: ApiCall) -> object:
        pair = self._pair(call.parameters)
        terms = await _terms(call.parameters, pair)
        count = await _finished(self._glossaries.put(call.key, call.place["id"], pair, terms))
        return _dictionary(KeptDictionary(pair, count))

    async def _delete_pair(self, call: ApiCall) -> object:
        pair = self._pair(call.parameters)
        await _finished(self._glossaries.remove_pair(call.key, call.place["id"], pair))
        return web.Response(status=204)

    async def _entries_v3(self, call: ApiCall) -> object:
        pair = self._pair(call.parameters)
        text = await self._glossaries.entries(call.key, call.place["id"], pair, "tsv")
        languages = {"source_lang": pair.source, "target_lang": pair.target}
        return {"dictionaries": [{**languages, "entries": text, "entries_format": "tsv"}]}

    def _pair(self, parameters: Parameters) -> Pair:
        """Return the languages of a dictionary. Raises ApiError (400)."""
        languages, found = self._languages(), {}
        for name, look in (("source_lang", languages.source), ("target_lang", languages.target)):
            given = parameters.one(name)
            if given is None:
                raise ApiError(400, f"Parameter '{name}' not specified.")
            if (tag := look(given)) is None:
                raise ApiError(400, f"Value for '{name}' not supported.")
            found[name] = base(tag)
        pair = Pair(found["source_lang"], found["target_lang"])
        if pair.source == pair.target:
            raise ApiError(400, "Source and target language are equal.")
        return pair


def _endpoint(handlers: Mapping[str, Handler]) -> Endpoint:
    """Return an endpoint that answers each method by its handler."""

    async def handle(call: ApiCall) -> object:
        method = "GET" if call.request.method == "HEAD" else call.request.method
        return await handlers[method](call)

    return Endpoint("deepl", handle, frozenset(handlers), max_body_bytes=MOST_BODY_BYTES)


async def _finished(change: Coroutine[Any, Any, T]) -> T:
    """Await a change that goes on to its end if the caller leaves."""
    return await asyncio.shield(asyncio.ensure_future(change))


def _name(parameters: Parameters) -> str:
    name = (parameters.one("name") or "").strip()
    if not name:
        raise ApiError(400, "Parameter 'name' not specified.")
    if len(name.encode()) > _LONGEST_NAME:
        raise ApiError(400, f"Parameter 'name' has more than {_LONGEST_NAME} bytes.")
    return name


async def _terms(parameters: Parameters, pair: Pair) -> Terms:
    """Return the terms of `entries`. Raises ApiError (400)."""
    text = parameters.one("entries")
    if text is None:
        raise ApiError(400, "Parameter 'entries' not specified.")
    form = parameters.chosen("entries_format", _FORMS) or "tsv"
    return await asyncio.to_thread(read_terms, text, form, pair)


def _accepted(header: str) -> str:
    """Return the form that a caller accepts. Raises ApiError (415)."""
    for each in header.split(","):
        form = _KINDS.get(each.partition(";")[0].strip().lower())
        if form is not None:
            return form
    raise ApiError(415, "The entries are text/tab-separated-values or text/csv.")


def _dictionary(dictionary: KeptDictionary) -> dict[str, object]:
    pair = dictionary.pair
    return {
        "source_lang": pair.source,
        "target_lang": pair.target,
        "entry_count": dictionary.terms or 0,
    }


def _of_v2(glossary: KeptGlossary) -> dict[str, object]:
    (only,) = glossary.dictionaries
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": only.terms is not None,
        "creation_time": glossary.created,
        **_dictionary(only),
    }


def _of_v3(glossary: KeptGlossary) -> dict[str, object]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "creation_time": glossary.created,
        "dictionaries": [_dictionary(each) for each in glossary.dictionaries],
    }
