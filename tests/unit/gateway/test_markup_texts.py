"""`tag_handling` and `format=html`: markup stays where it is, whatever is translated."""

from __future__ import annotations

import pytest

from dragoman_producer.testing import InMemoryClient
from dragoman_schemas.jobs import Item, TranslationJob
from support.fakes.played_gateway import PlayedGateway

EN = {"source_lang": "EN", "target_lang": "DE"}


def same(item: Item, _: TranslationJob) -> str:
    return item.text


async def translated(text: str, **more: object) -> str:
    async with PlayedGateway(InMemoryClient(same)) as gateway:
        status, body = await gateway.post("/v2/translate", {"text": text, **EN, **more})
    assert status == 200
    return str(body["translations"][0]["text"])


@pytest.mark.parametrize(
    "text",
    [
        'Hello <x id="7"></x>, <x id="8"></x> &lt;b&gt; &amp; done',
        "Liste:\n* <c>one</c>\n* two",
        "One\r\nsentence <b>over</b>\r\nlines",
        "<a>London</a>, <a>Paris</a> and a tail",
        "He said \"yes\" & left 'now'.",
        "&lt;script&gt;alert(1)&lt;/script&gt; is text",
        "malformed <b>never closed & <i>x",
        "",
    ],
)
@pytest.mark.parametrize("handling", ["xml", "html"])
async def test_an_engine_that_changes_nothing_changes_no_byte(text: str, handling: str) -> None:
    assert await translated(text, tag_handling=handling) == text


async def test_weblates_placeholders_are_one_code_each() -> None:
    async with PlayedGateway() as gateway:
        _, body = await gateway.post(
            "/v2/translate",
            {
                "text": ['Hello <x id="5"></x>, you have <x id="18"></x>.'],
                **EN,
                "tag_handling": "xml",
                "ignore_tags": ["x"],
            },
        )
        (job,) = gateway.client.submitted
    assert job.text == "Hello <x1/>, you have <x2/>."
    assert body["translations"][0]["text"] == (
        '[de] Hello <x id="5"></x>, you have <x id="18"></x>.'
    )


async def test_mastodons_post_keeps_its_markup() -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post(
            "/translate",
            {
                "q": ['<p>Hello <a href="https://x.org">world</a><br>and you</p>', "A title"],
                "source": "auto",
                "target": "de",
                "format": "html",
            },
        )
    assert status == 200
    assert body["translatedText"] == [
        '<p>[de] Hello <a href="https://x.org">world</a><br>and you</p>',
        "[de] A title",
    ]
    assert [each["language"] for each in body["detectedLanguage"]] == ["en", "en"]


async def test_a_translation_that_lost_markup_leaves_its_source_and_is_named() -> None:
    def loses(item: Item, _: TranslationJob) -> str:
        return item.text.replace("<x1/>", "")

    async with PlayedGateway(InMemoryClient(loses)) as gateway:
        given = {"text": ["One.", 'See <x id="1"/>.'], **EN, "tag_handling": "xml"}
        async with gateway.http.post("/v2/translate", json=given) as response:
            assert response.headers["X-Dragoman-Warnings"] == "1:quality_failed"
            body = await response.json()
    assert [each["text"] for each in body["translations"]] == ["One.", 'See <x id="1"/>.']


async def test_names_of_elements_come_as_a_list_or_with_commas() -> None:
    text = "<doc><t>One two</t><raw>stay here</raw><code>x y</code></doc>"
    for names in (["raw", "code"], "raw,code", " raw , CODE "):
        async with PlayedGateway() as gateway:
            await gateway.post(
                "/v2/translate",
                {"text": text, **EN, "tag_handling": "xml", "ignore_tags": names,
                 "splitting_tags": "t", "outline_detection": "0"},
            )  # fmt: skip
            (job,) = gateway.client.submitted
        assert job.text == "One two"


async def test_large_markup_does_not_stop_other_requests() -> None:
    text = "<p>Some words are <b>here</b>.</p>\n" * 3_000
    async with PlayedGateway(InMemoryClient(same)) as gateway:
        status, body = await gateway.post(
            "/v2/translate", {"text": text, **EN, "tag_handling": "html"}
        )
    assert (status, body["translations"][0]["text"] == text) == (200, True)


async def test_markup_without_a_place_to_cut_is_refused_with_the_limit() -> None:
    text = f"<b>{'word ' * 40_000}</b>"
    async with PlayedGateway() as gateway:
        status, body = await gateway.post(
            "/v2/translate", {"text": text, **EN, "tag_handling": "xml"}
        )
    assert status == 413
    assert "131072" in body["message"]
