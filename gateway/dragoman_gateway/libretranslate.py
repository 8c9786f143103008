"""LibreTranslate's API, and DeepLX's, which has the same path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman_gateway.calls import ApiCall, Endpoint
from dragoman_gateway.errors import ApiError
from dragoman_gateway.languages import OfferedLanguages, base
from dragoman_gateway.markup import HTML
from dragoman_gateway.translating import TextRequest, TextTranslator, TranslatedText

_MOST_TEXTS: Final = 512
_POST: Final = frozenset({"POST"})


class LibreTranslate:
    """The endpoints of LibreTranslate that are served."""

    def __init__(
        self,
        translator: TextTranslator,
        languages: Callable[[], OfferedLanguages],
        *,
        keys: bool,
        limit: int,
    ) -> None:
        self._translator = translator
        self._languages = languages
        self._keys = keys
        self._limit = limit

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the endpoints by path."""

        def open_to_all(handler: Callable[[ApiCall], Any]) -> Endpoint:
            return Endpoint("libretranslate", handler, frozenset({"GET"}), needs_key=False)

        return {
            "/translate": Endpoint("libretranslate", self.translate, _POST),
            "/detect": Endpoint("libretranslate", self.detect, _POST),
            "/languages": open_to_all(self.languages),
            "/frontend/settings": open_to_all(self.settings),
            "/health": open_to_all(_health),
            "/translate_file": Endpoint("libretranslate", _not_served, _POST),
        }

    async def translate(self, call: ApiCall) -> object:
        """Translate `q`, or DeepLX's `text`."""
        parameters = call.parameters
        if "q" not in parameters and "text" in parameters:
            return await self._deeplx(call)
        texts = parameters.all("q")
        if not texts:
            raise ApiError(400, "Invalid request: missing q parameter")
        source, target = self._tags(call, "source", "target")
        kind = parameters.chosen("format", frozenset({"text", "html"}))
        answers = await self._answers(call, texts, target, source, html=kind == "html")
        many = parameters.is_list("q")
        body: dict[str, Any] = {"translatedText": _shaped([each.text for each in answers], many)}
        if source is None:
            body["detectedLanguage"] = _shaped([_detected(each) for each in answers], many)
        if (parameters.one("alternatives") or "0") != "0":
            body["alternatives"] = _shaped([[] for _ in answers], many)
        return body

    async def detect(self, call: ApiCall) -> object:
        """Name the language of a text."""
        text = call.parameters.one("q")
        if text is None:
            raise ApiError(400, "Invalid request: missing q parameter")
        found = self._translator.detect(text)
        if found is None:
            return [{"language": "en", "confidence": 0}]
        return [{"language": found.language, "confidence": round(100 * found.confidence)}]

    async def languages(self, _: ApiCall) -> object:
        """List the languages, whatever the request holds."""
        return self._languages().of_libretranslate()

    async def settings(self, _: ApiCall) -> object:
        """Tell a page of LibreTranslate's what this server offers."""
        return {
            "apiKeys": self._keys,
            "charLimit": self._limit,
            "filesTranslation": False,
            "frontendTimeout": 500,
            "keyRequired": self._keys,
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": {"code": "en", "name": "English"},
            },
            "suggestions": False,
            "supportedFilesFormat": [],
        }

    async def _deeplx(self, call: ApiCall) -> object:
        texts = call.parameters.all("text")
        source, target = self._tags(call, "source_lang", "target_lang")
        text = "\n".join(texts)
        (answer,) = await self._answers(call, [text], target, source, html=False)
        return {
            "code": 200,
            "data": answer.text,
            "alternatives": [],
            "source_lang": base(answer.source).upper(),
            "target_lang": target.upper(),
        }

    async def _answers(
        self, call: ApiCall, texts: Sequence[str], target: str, source: str | None, *, html: bool
    ) -> list[TranslatedText]:
        if len(texts) > _MOST_TEXTS:
            raise ApiError(400, f"Too many texts: {len(texts)}; the limit is {_MOST_TEXTS}.")
        call.texts, call.characters = len(texts), sum(map(len, texts))
        request = TextRequest(texts, target, source, HTML if html else None)
        answers = await self._translator.translate(request, call.caller)
        call.note(answers)
        return answers

    def _tags(self, call: ApiCall, source: str, target: str) -> tuple[str | None, str]:
        """Return the tags of source, None to detect it, and target. Raises ApiError."""
        languages = self._languages()
        wanted = call.parameters.one(target)
        if wanted is None:
            raise ApiError(400, f"Invalid request: missing {target} parameter")
        to = languages.target(wanted)
        given = call.parameters.one(source) or "auto"
        tag = None if given.lower() == "auto" else languages.source(given)
        if to is None:
            raise ApiError(400, f"{wanted[:40]} is not supported")
        if tag is None and given.lower() != "auto":
            raise ApiError(400, f"{given[:40]} is not supported")
        return tag, to


async def _health(_: ApiCall) -> object:
    return {"status": "ok"}


async def _not_served(_: ApiCall) -> object:
    raise ApiError(404, "This server translates texts; files are not served.")


def _shaped(found: list[Any], many: bool) -> Any:
    return found if many else found[0]


def _detected(answer: TranslatedText) -> dict[str, object]:
    return {"confidence": round(100 * answer.confidence), "language": base(answer.source)}
