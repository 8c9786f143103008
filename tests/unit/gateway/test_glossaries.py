"""DeepL's endpoints of glossaries, v2 and v3: what is kept, for whom, and what is refused."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from dragoman_gateway.glossaries.usable import usable
from dragoman_producer.errors import StoreUnreachable
from support.fakes.glossaries_in_memory import GlossariesInMemory, HashesInMemory
from support.fakes.played_gateway import PlayedGateway, write_keys

UI = {"name": "UI", "source_lang": "EN", "target_lang": "DE", "entries": "gate\tTor\nfee\tGebühr"}
EN_DE = {"source_lang": "en", "target_lang": "de"}
MISSING = {"message": "No dictionary found for language pair"}
NO_GLOSSARY = {"message": "Glossary not found."}
NEEDS_SOURCE = "Use of a glossary requires the source_lang parameter."
UNKNOWN = "96ab91fd-e715-41a1-adeb-5d701f84a483"


def dictionary(source: str, target: str, entries: str = "a\tb") -> dict[str, str]:
    return {"source_lang": source, "target_lang": target, "entries": entries}


async def made(gateway: PlayedGateway, version: int = 2, **more: Any) -> str:
    """Keep a glossary, and return its id."""
    status, body = await gateway.post(f"/v{version}/glossaries", {**UI, **more})
    assert status == 201, body
    return str(body["glossary_id"])


async def request(
    gateway: PlayedGateway, method: str, path: str, **more: Any
) -> tuple[int, Any, str]:
    async with gateway.http.request(method, path, **more) as response:
        kind = response.content_type
        text = await response.text()
        return response.status, (await response.json() if "json" in kind else text), kind


# --- v2 -----------------------------------------------------------------------------------------


async def test_a_glossary_is_kept_as_deepl_describes_it() -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/v2/glossaries", UI)
        assert status == 201
        assert await gateway.get(f"/v2/glossaries/{body['glossary_id']}") == (200, body)
        assert await gateway.get("/v2/glossaries") == (200, {"glossaries": [body]})
    assert {**body, "glossary_id": "", "creation_time": ""} == {
        "glossary_id": "", "name": "UI", "ready": True, "source_lang": "en", "target_lang": "de",
        "creation_time": "", "entry_count": 2,
    }  # fmt: skip


async def test_every_pair_of_offered_languages_is_listed() -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.get("/v2/glossary-language-pairs")
    pairs = [(each["source_lang"], each["target_lang"]) for each in body["supported_languages"]]
    assert status == 200
    assert len(set(pairs)) == len(pairs) == 33 * 32
    assert ("en", "de") in pairs


@pytest.mark.parametrize(
    ("accept", "status", "kind", "text"),
    [
        (None, 200, "text/tab-separated-values", "gate\tTor\nfee\tGebühr"),
        ("text/tab-separated-values", 200, "text/tab-separated-values", "gate\tTor\nfee\tGebühr"),
        ("image/png, */*;q=0.1", 200, "text/tab-separated-values", "gate\tTor\nfee\tGebühr"),
        ("text/csv", 200, "text/csv", "gate,Tor\nfee,Gebühr\n"),
        ("application/json", 415, "application/json", ""),
    ],
)
async def test_entries_come_in_the_form_that_the_caller_accepts(
    accept: str | None, status: int, kind: str, text: str
) -> None:
    async with PlayedGateway() as gateway:
        path = f"/v2/glossaries/{await made(gateway)}/entries"
        headers = {} if accept is None else {"Accept": accept}
        found = await request(gateway, "GET", path, headers=headers)
    assert (found[0], found[2]) == (status, kind)
    assert status != 200 or found[1] == text


async def test_a_deleted_glossary_is_gone_with_its_terms() -> None:
    async with PlayedGateway() as gateway:
        path = f"/v2/glossaries/{await made(gateway)}"
        assert (await request(gateway, "DELETE", path))[:2] == (204, "")
        assert await gateway.get(path) == (404, NO_GLOSSARY)
        assert (await request(gateway, "DELETE", path))[:2] == (404, NO_GLOSSARY)
        assert gateway.glossaries.found == {}
        assert [fields for fields in gateway.records.hashes.values() if fields] == []


@pytest.mark.parametrize("glossary_id", [UNKNOWN, UNKNOWN.upper(), "invalid", "gw.x", "..", "*"])
@pytest.mark.parametrize("version", [2, 3])
async def test_an_unknown_id_is_404(glossary_id: str, version: int) -> None:
    async with PlayedGateway() as gateway:
        path = f"/v{version}/glossaries/{glossary_id}"
        for method in ("GET", "DELETE"):
            status, body, _ = await request(gateway, method, path)
            assert status == 404, body
            assert "message" in body


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": None}, "'name' not specified"),
        ({"name": " "}, "'name' not specified"),
        ({"name": "ü" * 513}, "'name' has more than 1024 bytes"),
        ({"source_lang": None}, "'source_lang' not specified"),
        ({"source_lang": "XX"}, "'source_lang' not supported"),
        ({"target_lang": "XX"}, "'target_lang' not supported"),
        ({"target_lang": "EN-GB"}, "Source and target language are equal."),
        ({"entries": None}, "'entries' not specified"),
        ({"entries": " \n\t\n"}, "no term was found"),
        ({"entries": {"gate": "Tor"}}, "'entries' must be a string"),
        ({"entries_format": "tmx"}, "'entries_format' not supported"),
        ({"entries": "a\tb\nc"}, "line 2: 1 columns instead of 2"),
        ({"entries": "a\tb\tc"}, "line 1: 3 columns instead of 2"),
        ({"entries": "a\tb\n\na\tc"}, "line 3: the term of line 1 again"),
        ({"entries": "a\t "}, "line 1: a term without a translation"),
        ({"entries": f"{'x' * 201}\ty"}, "line 1: a term of 201 characters"),
        ({"entries": "a\u0085\tb\u0000"}, "U+0000"),
        ({"entries": "a\u2028b\tc"}, "U+2028"),
        ({"entries": "a\rb\tc"}, "U+000D"),
        ({"entries": "a,b,c", "entries_format": "csv"}, "3 columns instead of 2 or 4"),
        ({"entries": "a,b,en,fr", "entries_format": "csv"}, "another pair of languages"),
        ({"entries": 'a,"b', "entries_format": "csv"}, "is a quote not closed?"),
        ({"entries": '"a\nb",c', "entries_format": "csv"}, "line 2: a term with the control"),
    ],
)
async def test_what_is_wrong_with_a_glossary_is_said(more: dict[str, Any], words: str) -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/v2/glossaries", {**UI, **more})
        assert (status, gateway.glossaries.found) == (400, {})
        assert (await gateway.get("/v2/glossaries"))[1] == {"glossaries": []}
    assert words in body["message"]


async def test_bytes_that_are_no_utf_8_are_400() -> None:
    async with PlayedGateway() as gateway:
        form = urlencode({**UI, "entries": ""}) + "%FF%09b"
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        found = await request(gateway, "POST", "/v2/glossaries", data=form, headers=headers)
    assert found[:2] == (400, {"message": "The request is not valid UTF-8."})


# --- v3 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_form", [False, True])
async def test_a_glossary_has_several_dictionaries_in_the_order_given(as_form: bool) -> None:
    given = [dictionary("de", "en"), dictionary("en", "de"), dictionary("en", "fr")]
    body: dict[str, Any] = {"json": {"name": "All", "dictionaries": given}}
    if as_form:  # as deepl-node sends it
        fields = {
            f"dictionaries[{n}].{k}": v for n, each in enumerate(given) for k, v in each.items()
        }
        body = {"data": {"name": "All", **fields}}
    async with PlayedGateway() as gateway:
        status, found, _ = await request(gateway, "POST", "/v3/glossaries", **body)
        assert status == 201
        assert await gateway.get(f"/v3/glossaries/{found['glossary_id']}") == (200, found)
        assert (await gateway.get("/v3/glossaries"))[1] == {"glossaries": [found]}
        assert (await gateway.get("/v2/glossaries"))[1] == {"glossaries": []}
        stored = sorted(gateway.glossaries.found)
    pairs = [(each["source_lang"], each["target_lang"]) for each in found["dictionaries"]]
    assert pairs == [("de", "en"), ("en", "de"), ("en", "fr")]
    assert stored == [f"gw.{found['glossary_id']}.{source}" for source in ("de", "en")]


@pytest.mark.parametrize("more", [{}, {"dictionaries": []}])
async def test_a_glossary_without_dictionaries_is_allowed(more: dict[str, Any]) -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/v3/glossaries", {"name": "Empty", **more})
        assert (status, body["dictionaries"]) == (201, [])
        one = await gateway.get(f"/v2/glossaries/{body['glossary_id']}")
    assert one == (400, {"message": "The glossary has 0 dictionaries: use /v3/glossaries."})


async def test_a_patch_merges_terms_and_renames() -> None:
    async with PlayedGateway() as gateway:
        path = f"/v3/glossaries/{await made(gateway)}"
        change = {
            "name": "New",
            "dictionaries": [dictionary("en", "de", "fee\tEntgelt\ntax\tSteuer")],
        }
        status, body, _ = await request(gateway, "PATCH", path, json=change)
        found = await gateway.get(f"{path}/entries", params=EN_DE)
        many = {"dictionaries": [dictionary("en", "de"), dictionary("en", "fr")]}
        assert (await request(gateway, "PATCH", path, json=many))[0] == 400
        assert (await request(gateway, "PATCH", path, json={}))[0] == 400
    assert (status, body["name"], body["dictionaries"][0]["entry_count"]) == (200, "New", 3)
    entries = found[1]["dictionaries"][0]
    assert entries == {
        **EN_DE, "entries": "gate\tTor\nfee\tEntgelt\ntax\tSteuer", "entries_format": "tsv"
    }  # fmt: skip


async def test_a_put_replaces_one_dictionary_or_adds_it() -> None:
    async with PlayedGateway() as gateway:
        path = f"/v3/glossaries/{await made(gateway)}"
        found = [
            await request(gateway, "PUT", f"{path}/dictionaries", json=dictionary("en", target))
            for target in ("de", "fr")
        ]
        _, kept = await gateway.get(path)
    counted = [{"source_lang": "en", "target_lang": tag, "entry_count": 1} for tag in ("de", "fr")]
    assert [each[:2] for each in found] == [(200, each) for each in counted]
    assert kept["dictionaries"] == counted


async def test_one_dictionary_is_deleted_and_may_come_back() -> None:
    async with PlayedGateway() as gateway:
        glossary_id = await made(gateway)
        path = f"/v3/glossaries/{glossary_id}"
        for status in (204, 404):
            found = await request(gateway, "DELETE", f"{path}/dictionaries", params=EN_DE)
            assert found[0] == status
        assert (await gateway.get(path))[1]["dictionaries"] == []
        assert await gateway.get(f"{path}/entries", params=EN_DE) == (404, MISSING)
        await request(gateway, "PUT", f"{path}/dictionaries", json=dictionary("en", "de"))
        (stored,) = gateway.glossaries.found.values()
        assert stored[0].meta.version == 3  # it does not begin again: workers know an older one
        await request(gateway, "DELETE", f"{path}/dictionaries", params=EN_DE)
        await request(gateway, "DELETE", path)
        assert gateway.glossaries.found == {}


async def test_two_dictionaries_for_one_pair_are_refused() -> None:
    async with PlayedGateway() as gateway:
        given = [dictionary("en", "pt-BR"), dictionary("EN", "pt-PT")]
        status, body = await gateway.post("/v3/glossaries", {"name": "x", "dictionaries": given})
    assert (status, body["message"]) == (400, "Two dictionaries have the languages en and pt.")


async def test_other_methods_are_405() -> None:
    async with PlayedGateway() as gateway:
        for method, path in (("PUT", "/v2/glossaries"), ("PATCH", "/v2/glossaries/x")):
            assert (await request(gateway, method, path))[0] == 405


# --- use ----------------------------------------------------------------------------------------


async def translated(gateway: PlayedGateway, glossary_id: str, **more: Any) -> tuple[int, Any]:
    given = {"text": "The gate.", "source_lang": "EN", "target_lang": "DE", **more}
    return await gateway.post("/v2/translate", {**given, "glossary_id": glossary_id})


async def test_a_text_uses_a_glossary_of_the_key() -> None:
    async with PlayedGateway() as gateway:
        glossary_id = await made(gateway)
        more = {"formality": "more", "source_lang": "en-US"}
        assert (await translated(gateway, glossary_id, **more))[0] == 200
        (job,) = gateway.client.submitted
    assert (job.glossary_id, job.formality) == (f"gw.{glossary_id}.en", "more")


@pytest.mark.parametrize(
    ("kept", "asked"),
    [("EN", "EN-US"), ("EN", "EN"), ("EN-GB", "EN-US"), ("PT-BR", "PT-PT"), ("ZH", "ZH-HANT"),
     ("ZH-HANT", "zh"), ("NO", "nb"), ("ZH", "zt")],
)  # fmt: skip
async def test_a_dictionary_serves_every_variant_of_its_language(kept: str, asked: str) -> None:
    async with PlayedGateway() as gateway:
        glossary_id = await made(gateway, source_lang="de", target_lang=kept)
        found = await translated(gateway, glossary_id, source_lang="DE", target_lang=asked)
    assert found[0] == 200


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ({"target_lang": "FR"}, (404, MISSING)),
        ({"source_lang": "DE", "target_lang": "EN"}, (404, MISSING)),
        ({"source_lang": None}, (400, {"message": NEEDS_SOURCE})),
    ],
)  # fmt: skip
async def test_a_glossary_without_the_pair_is_no_translation(
    more: dict[str, Any], answer: Any
) -> None:
    async with PlayedGateway() as gateway:
        assert await translated(gateway, await made(gateway), **more) == answer
        assert await translated(gateway, UNKNOWN) == (404, NO_GLOSSARY)
        assert gateway.client.submitted == []


async def test_a_glossary_of_the_command_serves_keys_that_list_it(tmp_path: Path) -> None:
    glossaries = GlossariesInMemory()
    glossaries.add("ui", "en", {"de": {"gate": "Tor"}})
    keys = write_keys(tmp_path, 'one\nglossaries = ["ui", "none"]', "two")
    async with PlayedGateway(
        keys_file=keys, glossaries=glossaries, glossary_refresh_s=0
    ) as gateway:
        found = {}
        for secret, name, target in (
            ("one", "ui", "DE"), ("one", "ui", "FR"), ("one", "none", "DE"), ("two", "ui", "DE"),
        ):  # fmt: skip
            given = {"text": "a", "source_lang": "EN", "target_lang": target, "glossary_id": name}
            headers = {"Authorization": f"DeepL-Auth-Key {secret}"}
            found[secret, name, target] = (
                await gateway.post("/v2/translate", given, headers=headers)
            )[0]
    assert list(found.values()) == [200, 404, 404, 404]


async def test_changed_terms_make_another_job_and_equal_ones_the_same() -> None:
    async with PlayedGateway(glossary_refresh_s=0, hold_s=10) as gateway:
        glossary_id = await made(gateway)
        path = f"/v3/glossaries/{glossary_id}/dictionaries"
        await translated(gateway, glossary_id)
        await translated(gateway, glossary_id)
        await request(gateway, "PUT", path, json=dictionary("en", "de", "gate\tSchranke"))
        await translated(gateway, glossary_id)
        ids = [job.job_id for job in gateway.client.submitted]
    assert len(ids) == len(set(ids)) == 2


async def test_a_job_waits_until_no_worker_may_hold_the_terms_before_a_change() -> None:
    store = GlossariesInMemory()
    store.add("gw.x.en", "en", {"de": {"gate": "Tor"}})
    store.add("ui", "en", {"de": {"gate": "Tor"}})
    waits = {}
    for name in ("gw.x.en", "ui"):
        for change in ("new", "changed"):
            stored = store.found[name][0]
            waits[name, change] = usable(stored, 5.0).wait_s
            store.add(name, "en", {"de": {"gate": "Schranke"}})
    assert waits.pop(("gw.x.en", "new")) == 0  # nobody can have known its name
    assert all(5.5 < wait <= 6.0 for wait in waits.values())
    old = stored.meta.model_copy(update={"updated_at": "2020-01-01T00:00:00.000Z", "version": 7})
    assert usable(type(stored)("ui", b"", old), 5.0).wait_s == 0
    odd = stored.meta.model_copy(update={"updated_at": "some time ago"})
    assert usable(type(stored)("ui", b"", odd), 5.0).wait_s == 6.0


# --- keys, limits and trouble -------------------------------------------------------------------


async def test_another_key_sees_nothing_of_it(tmp_path: Path) -> None:
    async with PlayedGateway(keys_file=write_keys(tmp_path, "one", "two")) as gateway:
        one, two = ({"Authorization": f"DeepL-Auth-Key {each}"} for each in ("one", "two"))
        _, body = await gateway.post("/v2/glossaries", UI, headers=one)
        path = f"glossaries/{body['glossary_id']}"
        for version in (2, 3):
            listed = await gateway.get(f"/v{version}/glossaries", headers=two)
            assert listed == (200, {"glossaries": []})
        for method, rest in (
            ("GET", f"/v2/{path}"), ("GET", f"/v2/{path}/entries"), ("DELETE", f"/v2/{path}"),
            ("GET", f"/v3/{path}"), ("DELETE", f"/v3/{path}"),
            ("GET", f"/v3/{path}/entries?source_lang=en&target_lang=de"),
            ("DELETE", f"/v3/{path}/dictionaries?source_lang=en&target_lang=de"),
        ):  # fmt: skip
            found = await request(gateway, method, rest, headers=two)
            assert found[:2] == (404, NO_GLOSSARY), rest
        for method, rest in (("PATCH", f"/v3/{path}"), ("PUT", f"/v3/{path}/dictionaries")):
            given = {
                "name": "x",
                "dictionaries": [dictionary("en", "de")],
                **dictionary("en", "de"),
            }
            found = await request(gateway, method, rest, headers=two, json=given)
            assert found[:2] == (404, NO_GLOSSARY), rest
        given = {"text": "a", **EN_DE, "glossary_id": body["glossary_id"]}
        assert await gateway.post("/v2/translate", given, headers=two) == (404, NO_GLOSSARY)
        given["glossary_id"] = f"gw.{body['glossary_id']}.en"
        assert await gateway.post("/v2/translate", given, headers=two) == (404, NO_GLOSSARY)
        assert await gateway.get(f"/v2/{path}", headers=one) == (200, body)
        assert (await request(gateway, "GET", f"/v2/{path}"))[0] == 403


async def test_a_key_keeps_as_many_as_it_may(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, "one\nglossaries_max = 2")
    headers = {"Authorization": "DeepL-Auth-Key one"}
    async with PlayedGateway(keys_file=keys) as gateway:
        found = [await gateway.post("/v2/glossaries", UI, headers=headers) for _ in range(3)]
        assert [each[0] for each in found] == [201, 201, 456]
        path = f"/v2/glossaries/{found[0][1]['glossary_id']}"
        await request(gateway, "DELETE", path, headers=headers)
        assert (await gateway.post("/v2/glossaries", UI, headers=headers))[0] == 201
    assert "may keep 2 glossaries" in found[2][1]["message"]


async def test_a_hundred_thousand_terms_are_kept_and_one_more_is_refused() -> None:
    lines = [f"Source-{n}\tTarget-{n}" for n in range(100_000)]
    async with PlayedGateway() as gateway:
        _, kept = await sent(gateway, {**UI, "entries": "\n".join(lines)})
        glossary_id = kept["glossary_id"]
        found = await request(gateway, "GET", f"/v2/glossaries/{glossary_id}/entries")
        status, body = await sent(gateway, {**UI, "entries": "\n".join([*lines, "a\tb"])})
        change = {"dictionaries": [dictionary("en", "de")]}
        patched = await request(gateway, "PATCH", f"/v3/glossaries/{glossary_id}", json=change)
    assert found[1] == "\n".join(lines)
    assert (status, patched[0]) == (400, 400)
    assert "line 100,001: more than 100,000 terms" in body["message"]
    assert "100,001 terms" in patched[1]["message"]


async def test_a_large_body_needs_its_key_in_the_header(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, "one")
    headers = {"Authorization": "DeepL-Auth-Key one"}
    large = {**UI, "entries": "\n".join(f"{n} {'x' * 90}\ty" for n in range(15_000))}
    huge = {**UI, "entries": "x" * (17 * 1024 * 1024)}
    async with PlayedGateway(keys_file=keys) as gateway:
        found = [
            await sent(gateway, large, headers),
            await sent(gateway, {**large, "auth_key": "one"}),
            await sent(gateway, large, {"Authorization": "DeepL-Auth-Key wrong"}),
            await sent(gateway, huge, headers),
        ]
    assert [status for status, _ in found] == [201, 413, 403, 413]


async def sent(
    gateway: PlayedGateway, body: dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Send a large body of JSON; return status and answer."""
    content = io.BytesIO(json.dumps(body).encode())
    given = {"Content-Type": "application/json", **(headers or {})}
    async with gateway.http.post("/v2/glossaries", data=content, headers=given) as response:
        return response.status, await response.json()


async def test_a_failed_write_leaves_nothing() -> None:
    store = GlossariesInMemory()
    store.fails = StoreUnreachable("away")
    async with PlayedGateway(glossaries=store) as gateway:
        assert (await gateway.post("/v2/glossaries", UI))[0] == 503
        assert (await gateway.get("/v3/glossaries"))[1] == {"glossaries": []}


async def test_what_a_death_left_is_listed_and_can_be_deleted() -> None:
    records, store = HashesInMemory(), GlossariesInMemory()
    async with PlayedGateway(glossaries=store, records=records) as gateway:
        glossary_id = await made(gateway)
        store.found.clear()  # the record is written, the terms are not
        _, body = await gateway.get("/v2/glossaries")
        assert (body["glossaries"][0]["ready"], body["glossaries"][0]["entry_count"]) == (False, 0)
        assert await translated(gateway, glossary_id) == (404, MISSING)
        assert (await request(gateway, "DELETE", f"/v2/glossaries/{glossary_id}"))[0] == 204
        assert not any(records.hashes.values())


async def test_a_dictionary_added_while_its_glossary_is_deleted_does_not_stay() -> None:
    records, store = HashesInMemory(), GlossariesInMemory()
    async with PlayedGateway(glossaries=store, records=records) as gateway:
        glossary_id = await made(gateway)
        path = f"/v3/glossaries/{glossary_id}"
        read, paused, going = store.read, asyncio.Event(), asyncio.Event()

        async def slow(name: str) -> Any:
            paused.set()
            await going.wait()
            return await read(name)

        store.read = slow  # type: ignore[method-assign]
        adding = asyncio.ensure_future(
            request(gateway, "PUT", f"{path}/dictionaries", json=dictionary("fr", "de"))
        )
        await paused.wait()
        assert (await request(gateway, "DELETE", path))[0] == 204
        going.set()
        assert (await adding)[:2] == (404, NO_GLOSSARY)
        assert store.found == {}
        assert not any(records.hashes.values())


async def test_a_dictionary_left_by_a_death_in_between_goes_with_the_next_glossary() -> None:
    records, store = HashesInMemory(), GlossariesInMemory()
    store.add(f"gw.{UNKNOWN}.fr", "fr", {"de": {"a": "b"}})
    fields = {f"{UNKNOWN}:fr:de".encode(): b"0"}
    records.hashes["dragoman:gateway:glossaries:local"] = fields
    async with PlayedGateway(glossaries=store, records=records) as gateway:
        assert (await gateway.get("/v3/glossaries"))[1] == {"glossaries": []}
        glossary_id = await made(gateway)
    assert sorted(store.found) == [f"gw.{glossary_id}.en"]


async def test_a_change_goes_on_when_its_caller_leaves() -> None:
    store = GlossariesInMemory()
    read, paused, going = store.read, asyncio.Event(), asyncio.Event()

    async def slow(name: str) -> Any:
        paused.set()
        await going.wait()
        return await read(name)

    replace, written = store.replace_encoded, asyncio.Event()

    async def replaced(*given: Any) -> Any:
        done = await replace(*given)
        written.set()
        return done

    store.read = slow  # type: ignore[method-assign]
    store.replace_encoded = replaced  # type: ignore[method-assign,assignment]
    async with PlayedGateway(glossaries=store) as gateway:
        left = asyncio.ensure_future(gateway.post("/v2/glossaries", UI))
        await paused.wait()
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        going.set()
        async with asyncio.timeout(20):
            await written.wait()
        _, body = await gateway.get("/v2/glossaries")
    assert [each["ready"] for each in body["glossaries"]] == [True]


async def test_two_changes_at_once_are_both_kept() -> None:
    async with PlayedGateway() as gateway:
        path = f"/v3/glossaries/{await made(gateway)}"
        changes = [
            request(gateway, "PATCH", path, json={"dictionaries": [dictionary("en", t, f"{t}\tx")]})
            for t in ("de", "fr", "it", "es")
        ]
        assert {found[0] for found in await asyncio.gather(*changes)} == {200}
        _, body = await gateway.get(path)
    counts = {each["target_lang"]: each["entry_count"] for each in body["dictionaries"]}
    assert counts == {"de": 3, "fr": 1, "it": 1, "es": 1}
