"""DeepL's API: texts, languages, usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman_gateway.calls import ApiCall, Endpoint
from dragoman_gateway.errors import ApiError
from dragoman_gateway.glossaries.usable import FindUsable, UsableGlossary
from dragoman_gateway.keys import Key
from dragoman_gateway.languages import OfferedLanguages, base
from dragoman_gateway.markup import markup_of
from dragoman_gateway.parameters import Parameters
from dragoman_gateway.translating import TextRequest, TextTranslator, TranslatedText
from dragoman_gateway.usage import KeyUsage

_MOST_TEXTS: Final = 512
_MOST_INSTRUCTIONS: Final = 10
_NO_LIMIT: Final = 1_000_000_000_000
_FORMALITY: Final = frozenset({"default", "more", "less", "prefer_more", "prefer_less"})
_MODELS: Final[Mapping[str, str]] = {
    "quality_optimized": "quality_optimized",
    "prefer_quality_optimized": "quality_optimized",
    "latency_optimized": "latency_optimized",
}


class DeepL:
    """The endpoints of DeepL's API that are served."""

    def __init__(
        self,
        translator: TextTranslator,
        languages: Callable[[], OfferedLanguages],
        usage: KeyUsage,
        usable_glossary: FindUsable,
    ) -> None:
        self._translator = translator
        self._languages = languages
        self._usage = usage
        self._usable_glossary = usable_glossary

    def endpoints(self) -> dict[str, Endpoint]:
        """Return the endpoints by path."""
        return {
            "/v2/translate": Endpoint("deepl", self.translate),
            "/v2/languages": Endpoint("deepl", self.languages),
            "/v2/usage": Endpoint("deepl", self.usage),
        }

    async def translate(self, call: ApiCall) -> object:
        """Translate texts."""
        parameters, languages = call.parameters, self._languages()
        texts = _texts(parameters)
        target, source = languages_of(parameters, languages)
        formality = formality_of(parameters, languages, target)
        instructions = _instructions(parameters)
        glossary = await glossary_of(
            self._usable_glossary, call.key, parameters.one("glossary_id"), source, target
        )
        model = parameters.chosen("model_type", frozenset(_MODELS))
        parameters.flag("show_billed_characters", default=True)
        request = TextRequest(
            texts,
            target,
            source,
            markup_of(parameters),
            {
                "context": parameters.one("context"),
                "formality": formality,
                "instructions": instructions or None,
            },
            glossary,
        )
        call.texts, call.characters = len(texts), sum(map(len, texts))
        answers = await self._translator.translate(request, call.caller)
        call.note(answers)
        used = {} if model is None else {"model_type_used": _MODELS[model]}
        pairs = zip(texts, answers, strict=True)
        return {"translations": [_translation(*each) | used for each in pairs]}

    async def languages(self, call: ApiCall) -> object:
        """List the languages of texts or of translations."""
        kind = call.parameters.chosen("type", frozenset({"source", "target"}))
        return self._languages().of_deepl(targets=kind == "target")

    async def usage(self, call: ApiCall) -> object:
        """Tell the characters of this month, and the key's limit."""
        limit = call.key.characters_per_month
        count = await self._usage.of(call.key)
        return {"character_count": count, "character_limit": _NO_LIMIT if limit is None else limit}


def _translation(given: str, answer: TranslatedText) -> dict[str, Any]:
    return {
        "detected_source_language": base(answer.source).upper(),
        "text": answer.text,
        "billed_characters": len(given),
    }


def _texts(parameters: Parameters) -> list[str]:
    texts = parameters.all("text")
    if not texts:
        raise ApiError(400, "Parameter 'text' not specified.")
    if len(texts) > _MOST_TEXTS:
        raise ApiError(400, f"Too many texts: {len(texts)}; the limit is {_MOST_TEXTS}.")
    return texts


async def glossary_of(
    find: FindUsable, key: Key, glossary_id: str | None, source: str | None, target: str
) -> UsableGlossary | None:
    """Return the stored glossary that a caller names. Raises ApiError."""
    if glossary_id is None:
        return None
    if source is None:
        raise ApiError(400, "Use of a glossary requires the source_lang parameter.")
    return await find(key, glossary_id, source, target)


def languages_of(parameters: Parameters, languages: OfferedLanguages) -> tuple[str, str | None]:
    """Return the tags of target and source. Raises ApiError."""
    given = parameters.one("target_lang")
    if given is None:
        raise ApiError(400, "Parameter 'target_lang' not specified.")
    target = languages.target(given)
    if target is None:
        raise ApiError(400, "Value for 'target_lang' not supported.")
    wanted = parameters.one("source_lang")
    source = None if wanted is None else languages.source(wanted)
    if wanted is not None and source is None:
        raise ApiError(400, "Value for 'source_lang' not supported.")
    return target, source


def formality_of(parameters: Parameters, languages: OfferedLanguages, target: str) -> str | None:
    """Return the register; one that is only preferred is dropped where there is none."""
    found = parameters.chosen("formality", _FORMALITY)
    if found in {None, "default"} or languages.takes_formality(target):
        return None if found == "default" else found
    if found in {"more", "less"}:
        raise ApiError(400, "Target language does not support the parameter 'formality'.")
    return None


def _instructions(parameters: Parameters) -> list[str]:
    found = [each for each in parameters.all("custom_instructions") if each.strip()]
    if len(found) > _MOST_INSTRUCTIONS or any(len(each) > 300 for each in found):
        raise ApiError(400, "'custom_instructions': at most 10 of at most 300 characters.")
    return found
