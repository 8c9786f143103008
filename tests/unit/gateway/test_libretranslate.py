"""LibreTranslate's and DeepLX's bodies, and the errors in their shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman_gateway.languages import OfferedLanguages
from support.fakes.played_gateway import PlayedGateway, write_keys


async def test_one_text_gives_one_and_a_list_gives_a_list() -> None:
    async with PlayedGateway() as gateway:
        given = {"source": "en", "target": "de"}
        _, one = await gateway.post("/translate", {"q": "Hello.", **given})
        _, many = await gateway.post("/translate", {"q": ["Hello."], **given})
        _, form = await gateway.get("/health")
        async with gateway.http.post(
            "/translate", data=[("q", "A b."), ("q", "C d."), *given.items()]
        ) as response:
            twice = await response.json()
    assert one == {"translatedText": "[de] Hello."}
    assert many == {"translatedText": ["[de] Hello."]}
    assert twice == {"translatedText": ["[de] A b.", "[de] C d."]}
    assert form == {"status": "ok"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", '{"q": "A line.", "source": "en", "target": "de"}'),
        ("application/json", '{"q":["A line."],"source":"auto","target":"de","format":"html"}'),
        ("application/json;charset=utf-8",
         '{"q":"A line.","source":"en","target":"de","alternatives":3,"api_key":""}'),
        ("application/x-www-form-urlencoded", "q=A+line.&source=en&target=de"),
        ("application/x-www-form-urlencoded", "q=A%20line.&source=auto&target=de&api_key="),
        ("text/plain", '{"text":"A line.","source_lang":"auto","target_lang":"DE"}'),
        ("application/json", '{"text":"A line.","source_lang":"EN","target_lang":"DE"}'),
    ],
    ids=["subtitle-edit", "mastodon", "web-page", "libretranslatepy", "discourse", "deeplx-page",
         "deeplx"],
)  # fmt: skip
async def test_the_requests_of_known_clients_are_understood(kind: str, body: str) -> None:
    async with PlayedGateway() as gateway:
        status, said = await gateway.post(
            "/translate", data=body.encode(), headers={"Content-Type": kind}
        )
    assert status == 200
    assert said.get("translatedText", said.get("data")) in ("[de] A line.", ["[de] A line."])


async def test_the_broken_json_of_subtitle_edit_with_a_key_is_refused_with_its_place() -> None:
    body = '{"q": "A line.", "source": "en", "target": "de" "api_key": "k"}'
    async with PlayedGateway() as gateway:
        status, said = await gateway.post("/translate", data=body.encode())
    assert (status, said) == (
        400,
        {"error": "The request cannot be read: not valid JSON at character 49"},
    )


@pytest.mark.parametrize("path", ["/languages", "/health", "/frontend/settings"])
async def test_what_is_only_read_takes_no_post(path: str) -> None:
    async with PlayedGateway() as gateway:
        status, said = await gateway.post(path)
    assert (status, said) == (405, {"error": "Use GET here."})


async def test_each_text_has_its_own_language() -> None:
    texts = [
        "Ciao, mi chiamo Carlo e ho 18 anni, oggi parlo",
        "From:",
        "Je m'appelle Jessica, je suis francaise",
        "",
        "12345",
    ]
    async with PlayedGateway() as gateway:
        status, body = await gateway.post(
            "/translate", {"q": texts, "source": "auto", "target": "de", "alternatives": 3}
        )
    assert status == 200
    found = body["detectedLanguage"]
    assert [each["language"] for each in found] == ["it", "en", "fr", "en", "en"]
    assert all(type(each["confidence"]) is int for each in found)
    assert all(0 <= each["confidence"] <= 100 for each in found)
    assert body["alternatives"] == [[], [], [], [], []]
    assert body["translatedText"][3:] == ["", "[de] 12345"]


async def test_detect_answers_whole_percents() -> None:
    async with PlayedGateway() as gateway:
        _, found = await gateway.post("/detect", {"q": "Bonjour tout le monde, comment ça va ?"})
        _, nothing = await gateway.post("/detect", {"q": "123"})
    assert found[0]["language"] == "fr"
    assert type(found[0]["confidence"]) is int
    assert nothing == [{"language": "en", "confidence": 0}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "en", "target": "zz"}, "zz is not supported"),
        ({"q": "a", "source": "zz", "target": "de"}, "zz is not supported"),
        ({"q": "a", "target": "de", "format": "pdf"}, "Value for 'format' not supported."),
    ],
)
async def test_errors_have_libretranslates_shape(given: dict[str, str], message: str) -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/translate", given)
    assert (status, body) == (400, {"error": message})


@pytest.mark.parametrize("code", ["zh", "zt", "zh-Hant", "iw", "he", "no", "nb", "pb", "pt_BR"])
async def test_codes_of_other_times_are_known(code: str) -> None:
    languages = OfferedLanguages(("en", "he", "no", "pt", "zh"))
    async with PlayedGateway(languages=languages) as gateway:
        status, _ = await gateway.post("/translate", {"q": "a b", "source": "en", "target": code})
    assert status == 200


async def test_languages_are_listed_without_a_key_whatever_the_body(tmp_path: Path) -> None:
    languages, keys = OfferedLanguages(("de", "en")), write_keys(tmp_path, "s3cret")
    async with PlayedGateway(languages=languages, keys_file=keys) as gateway:
        status, body = await gateway.get("/languages", data=b"\xff not=a&form")
    assert status == 200
    assert [each["code"] for each in body] == ["de", "en", "en-GB", "en-US"]


async def test_deeplx_is_told_by_its_parameter() -> None:
    async with PlayedGateway() as gateway:
        _, body = await gateway.post(
            "/translate", {"text": "Hello.", "source_lang": "EN", "target_lang": "DE"}
        )
        status, error = await gateway.post("/translate", {"text": "a", "target_lang": "XX"})
    assert body == {
        "code": 200,
        "data": "[de] Hello.",
        "alternatives": [],
        "source_lang": "EN",
        "target_lang": "DE",
    }
    assert (status, error) == (400, {"code": 400, "message": "XX is not supported"})


async def test_the_key_comes_in_the_body_or_a_header(tmp_path: Path) -> None:
    keys = write_keys(tmp_path, "s3cret")
    given = {"q": "Hello.", "source": "en", "target": "de"}
    async with PlayedGateway(keys_file=keys) as gateway:
        missing = await gateway.post("/translate", given)
        body, _ = await gateway.post("/translate", {**given, "api_key": "s3cret"})
        header, _ = await gateway.post(
            "/translate", given, headers={"Authorization": "Bearer s3cret"}
        )
        query, _ = await gateway.post("/translate?api_key=s3cret", given)
        _, settings = await gateway.get("/frontend/settings")
    assert missing == (403, {"error": "Invalid API key"})
    assert (body, header, query) == (200, 200, 403)
    assert settings["keyRequired"] is True


async def test_pages_of_named_origins_may_ask() -> None:
    async with PlayedGateway(cors_origins=["https://a.example"]) as gateway:
        for origin, allowed in (("https://a.example", True), ("https://b.example", False)):
            async with gateway.http.options("/translate", headers={"Origin": origin}) as response:
                assert response.status == 204
                assert ("Access-Control-Allow-Origin" in response.headers) is allowed
        async with gateway.http.options(
            "/v2/translate", headers={"Origin": "https://a.example"}
        ) as response:
            assert "Access-Control-Allow-Origin" not in response.headers
