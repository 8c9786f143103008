"""DeepL's /v2/translate: what is answered, and which jobs are made."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from dragoman_gateway.languages import OfferedLanguages
from dragoman_producer.testing import InMemoryClient, ItemFailed
from dragoman_schemas.failures import FailureCode
from dragoman_schemas.jobs import Item, TranslationJob
from support.fakes.played_gateway import PlayedGateway

EN = {"source_lang": "EN", "target_lang": "DE"}


async def test_texts_come_back_in_the_order_asked() -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/v2/translate", {"text": ["One.", "Two."], **EN})
    assert status == 200
    assert body == {
        "translations": [
            {"detected_source_language": "EN", "text": "[de] One.", "billed_characters": 4},
            {"detected_source_language": "EN", "text": "[de] Two.", "billed_characters": 4},
        ]
    }


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("", urlencode([("text", "A b."), ("text", "C d."), *EN.items()]), "form"),
        ("", urlencode([("text[]", "A b."), ("text[]", "C d."), *EN.items()]), "form"),
        (f"?{urlencode(EN)}", urlencode([("text", "A b."), ("text", "C d.")]), "form"),
        ("", '{"text": ["A b.", "C d."], "source_lang": "en", "target_lang": "de"}', "json"),
        ("", '\n {"text": ["A b.", "C d."], "source_lang": "en", "target_lang": "de"}', "none"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_json_forms_and_queries_say_the_same(
    path: str, content: str, kind: str, method: str
) -> None:
    kinds = {"form": "application/x-www-form-urlencoded", "json": "application/json"}
    headers = {"Content-Type": kinds[kind]} if kind in kinds else {}
    async with (
        PlayedGateway() as gateway,
        gateway.http.request(
            method, f"/v2/translate{path}", data=content.encode(), headers=headers
        ) as response,
    ):
        body = await response.json()
    assert [each["text"] for each in body["translations"]] == ["[de] A b.", "[de] C d."]


async def test_a_multipart_form_is_read() -> None:
    body = (
        b'--xx\r\nContent-Disposition: form-data; name="text"\r\n\r\nGr\xc3\xbc\xc3\x9fe.\r\n'
        b'--xx\r\nContent-Disposition: form-data; name="target_lang"\r\n\r\nEN\r\n--xx--\r\n'
    )
    async with (
        PlayedGateway() as gateway,
        gateway.http.post(
            "/v2/translate", data=body, headers={"Content-Type": "multipart/form-data; boundary=xx"}
        ) as response,
    ):
        found = await response.json()
    assert [each["text"] for each in found["translations"]] == ["[en] Grüße."]


async def test_equal_requests_are_one_job_whatever_their_form() -> None:
    async with PlayedGateway() as gateway:
        await gateway.post("/v2/translate", {"text": ["Hello."], **EN})
        await gateway.post("/v2/translate", {"text": "Hello.", **EN, "formality": "default"})
        await gateway.get("/v2/translate", params={"text": "Hello.", **EN, "unknown": "1"})
        (job,) = gateway.client.submitted
    assert job.job_id.startswith("gw.")
    assert (job.ttl_s, job.metadata) == (600, {"api": "deepl", "key": "local"})


async def test_short_texts_of_different_languages_are_not_judged_together() -> None:
    async with PlayedGateway() as gateway:
        _, body = await gateway.post(
            "/v2/translate", {"text": ["faisceau de protons", "proton beam"], "target_lang": "DE"}
        )
        jobs = gateway.client.submitted
    assert [each["detected_source_language"] for each in body["translations"]] == ["FR", "EN"]
    assert sorted(job.items[0].text for job in jobs) == ["faisceau de protons", "proton beam"]


async def test_texts_without_letters_are_answered_without_a_job() -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/v2/translate", {"text": ["", " \n"], **EN})
        assert gateway.client.submitted == []
    assert status == 200
    assert [each["text"] for each in body["translations"]] == ["", " \n"]


async def test_a_text_keeps_the_blanks_at_its_edges() -> None:
    async with PlayedGateway() as gateway:
        _, body = await gateway.post("/v2/translate", {"text": " \tHello.\r\n", **EN})
    assert body["translations"][0]["text"] == " \t[de] Hello.\r\n"


async def test_a_text_too_long_for_a_job_is_cut_and_comes_back_whole() -> None:
    text = "This sentence is here many times.\n" * 9_000

    def same(item: Item, _: TranslationJob) -> str:
        return item.text

    async with PlayedGateway(InMemoryClient(same)) as gateway:
        _, body = await gateway.post("/v2/translate", {"text": text, **EN})
        assert len(gateway.client.submitted) > 1
    assert body["translations"][0]["text"] == text


async def test_two_thousand_texts_are_too_many() -> None:
    async with PlayedGateway() as gateway:
        status, body = await gateway.post("/v2/translate", {"text": ["a"] * 513, **EN})
    assert (status, body) == (400, {"message": "Too many texts: 513; the limit is 512."})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"target_lang": "XX"}, "'target_lang' not supported"),
        ({"target_lang": None}, "'target_lang' not specified"),
        ({"source_lang": "XX"}, "'source_lang' not supported"),
        ({"text": None}, "'text' not specified"),
        ({"text": [["nested"]]}, "'text' must be a string"),
        ({"text": [None]}, "'text' must be a string"),
        ({"formality": "rude"}, "'formality' not supported"),
        ({"formality": "more", "target_lang": "TR"}, "Target language does not support"),
        ({"split_sentences": "never"}, "'split_sentences' not supported"),
        ({"tag_handling": "tex"}, "'tag_handling' not supported"),
        ({"preserve_formatting": "maybe"}, "'preserve_formatting' not supported"),
        ({"model_type": "best"}, "'model_type' not supported"),
        ({"custom_instructions": ["x" * 301]}, "at most 10 of at most 300"),
        ({"context": "x" * 9_000}, "context"),
    ],
)
async def test_a_wrong_parameter_is_named(more: dict[str, object], words: str) -> None:
    async with PlayedGateway() as gateway:
        given = {"text": "Hello.", **EN, **more}
        status, body = await gateway.post("/v2/translate", given)
    assert status == 400
    assert words in body["message"]


async def test_options_reach_the_job() -> None:
    async with PlayedGateway() as gateway:
        await gateway.post(
            "/v2/translate",
            {
                "text": "Hello.",
                **EN,
                "context": "A letter.",
                "formality": "prefer_less",
                "custom_instructions": ["Be brief."],
            },
        )
        (job,) = gateway.client.submitted
    assert (job.context, job.formality, job.instructions) == (
        "A letter.",
        "prefer_less",
        ["Be brief."],
    )
    assert job.quality is not None
    assert job.quality.on_fail == "best_effort"


async def test_a_register_that_is_only_preferred_is_dropped_where_there_is_none() -> None:
    async with PlayedGateway() as gateway:
        status, _ = await gateway.post(
            "/v2/translate",
            {
                "text": "Hello.",
                "source_lang": "EN",
                "target_lang": "TR",
                "formality": "prefer_more",
            },
        )
        (job,) = gateway.client.submitted
    assert (status, job.formality) == (200, None)


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("quality_optimized", "quality_optimized"),
        ("prefer_quality_optimized", "quality_optimized"),
        ("latency_optimized", "latency_optimized"),
    ],
)
async def test_a_model_type_is_answered_where_it_is_asked(asked: str, used: str) -> None:
    async with PlayedGateway() as gateway:
        _, body = await gateway.post("/v2/translate", {"text": "A b.", **EN, "model_type": asked})
    assert body["translations"][0]["model_type_used"] == used


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (FailureCode.UNSUPPORTED_LANGUAGE, 400),
        (FailureCode.TOO_LONG, 400),
        (FailureCode.ENGINE_FAILED, 503),
        (FailureCode.CONFLICT, 500),
    ],
)
async def test_an_item_without_a_text_fails_the_request(code: FailureCode, status: int) -> None:
    def fail(item: Item, _: TranslationJob) -> str:
        if item.text == "bad":
            raise ItemFailed(code)
        return item.text

    async with PlayedGateway(InMemoryClient(fail)) as gateway:
        found, body = await gateway.post("/v2/translate", {"text": ["good", "bad"], **EN})
    assert found == status
    assert body["message"].startswith(code)


async def test_a_job_that_failed_is_run_again_by_the_next_request() -> None:
    answers = iter([True, False])

    def first_fails(item: Item, _: TranslationJob) -> str:
        if next(answers):
            raise ItemFailed
        return item.text.upper()

    async with PlayedGateway(InMemoryClient(first_fails)) as gateway:
        first, _ = await gateway.post("/v2/translate", {"text": "Hello.", **EN})
        second, body = await gateway.post("/v2/translate", {"text": "Hello.", **EN})
    assert (first, second, body["translations"][0]["text"]) == (503, 200, "HELLO.")


async def test_languages_are_listed_as_deepl_lists_them() -> None:
    languages = OfferedLanguages(("de", "en", "pt", "zh"), frozenset({"de"}))
    async with PlayedGateway(languages=languages) as gateway:
        _, sources = await gateway.get("/v2/languages")
        # deepl-python sends the type in the body of a GET.
        _, targets = await gateway.get("/v2/languages", data={"type": "target"})
    assert [each["language"] for each in sources] == ["DE", "EN", "PT", "ZH"]
    assert sources[0] == {"language": "DE", "name": "German"}
    assert [each["language"] for each in targets] == [
        "DE", "EN-GB", "EN-US", "PT-BR", "PT-PT", "ZH", "ZH-HANS", "ZH-HANT",
    ]  # fmt: skip
    assert [each["supports_formality"] for each in targets] == [True] + [False] * 7


@pytest.mark.parametrize("code", ["EN", "en", "EN-US", "en_gb", "PT", "pt-br", "ZH-HANT", "zt"])
async def test_targets_are_known_in_any_spelling(code: str) -> None:
    languages = OfferedLanguages(("en", "pt", "zh"))
    async with PlayedGateway(languages=languages) as gateway:
        status, _ = await gateway.post("/v2/translate", {"text": "Hallo.", "target_lang": code})
    assert status == 200


async def test_usage_counts_what_was_submitted() -> None:
    async with PlayedGateway() as gateway:
        for _ in range(2):
            await gateway.post("/v2/translate", {"text": "Hello.", **EN})
        await gateway.usage.flush()
        _, body = await gateway.get("/v2/usage")
        assert list(gateway.counts.counts.values()) == [6]
    assert body == {"character_count": 6, "character_limit": 1_000_000_000_000}
