"""Language detection with py3langid, from the first letters of a text."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any, Final, Protocol, cast

import langcodes

from dragoman_text.letters import (
    by_main_script,
    first_letters,
    han_languages,
    is_latin,
    kana_or_hangul,
)

_TAG_OF_LABEL: Final[Mapping[str, str]] = {
    "arz": "ar",
    "ary": "ar",
    "tl": "fil",
    "uzs": "uz",
    "wuu": "zh",
}
"""The tags that jobs use for the model's labels of dialects and deprecated codes."""

_NO_LANGUAGE: Final = "zxx"

_MAJOR: Final = (
    *("zh", "es", "ar", "fr", "de", "pt", "ru", "ja", "it", "ko", "tr", "nl", "pl"),
    *("vi", "id", "hi", "uk"),
)
_MISTAKEN_FOR_MAJOR: Final = ("ms", "jv", "bg", "mk", "sr", "fa", "ur", "ps")
"""Languages that a short text shares most words with Indonesian, Russian or Arabic in.

With a prior for only one language of such a family, Malay of up to 60 letters was detected in 5 %
of 400 strings, Bulgarian of up to 15 in 13 % (benchmarks/quality/source_detection.py).
"""
_PRIOR: Final[Mapping[str, float]] = {
    **dict.fromkeys((*_MAJOR, *_MISTAKEN_FOR_MAJOR), 3.0),
    "en": 4.0,
}
"""Prior weights: how much likelier jobs in these languages are than in the other 110.

They decide short texts. Measured on Tatoeba sentences of 8 to 14 letters in all languages, correct
for English 98 % (86 % without), French 89 % (71 %), Spanish 78 % (63 %). From 25 letters on they
change nothing.
"""

# A text of 40 letters is outside the candidates if together they have less than a tenth of the
# probability and one other language more than half: no error in 9,600 sentences of 48 languages.
_ENOUGH_LETTERS: Final = 40
_FEW_LETTERS: Final = 12
_OUTSIDE_BELOW: Final = 0.1
_CERTAIN_ABOVE: Final = 0.5


_POOL_LETTERS: Final = 600
"""Letters of a job's texts that are read together, evenly over all of them."""
_POOL_DECIDES: Final = 0.9
"""Share above which a language of all texts is that of each one with few letters."""
_OTHER_LANGUAGE: Final = 0.02
"""Share of every language that the pool does not show: a job may mix languages."""
_UNICODE_NAMES: Final[Mapping[str, str]] = {
    "Latn": "LATIN",
    "Cyrl": "CYRILLIC",
    "Arab": "ARABIC",
    "Deva": "DEVANAGARI",
    "Grek": "GREEK",
    "Hebr": "HEBREW",
}


_SURE: Final = 0.75
"""Of single strings of 2 to 30 letters in 57 languages 0.7 % are above it and wrong, at 0.5 3.5 %;
half of the right ones are above it (benchmarks/quality/source_detection.py)."""
_UNLIKELY: Final = 1e-4
"""Probability below which a label changes no result: all such together have at most 1 %."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A base language (BCP-47, ``zh`` for either script) and its probability, 0-1."""

    language: str
    confidence: float

    @property
    def doubtful(self) -> bool:
        """Whether it is a guess: it is not reported, and only named where a prompt must have it."""
        return self.confidence < _SURE


class _Identifier(Protocol):
    def rank(self, text: str) -> list[tuple[str, float]]: ...


class LanguageDetector:
    """Detector of languages. One per process; its model (4.5 MB) is loaded once."""

    def __init__(self) -> None:
        self._identifier: _Identifier | None = None

    def load(self) -> None:
        """Load the model; takes most of a second, not for the event loop. Idempotent."""
        self._loaded()

    def detect(self, text: str, candidates: Collection[str] | None = None) -> Detection | None:
        """Return the most likely language; with `candidates` (base tags), the most likely of them.

        A language outside the candidates is returned if it is certain: by at least 40 letters or
        by its own script. None if the text has no letters. Never raises. A few letters give little
        more than a guess, with a low confidence.
        """
        letters = first_letters(text)
        if not letters:
            return None
        return _likeliest(self._shares(letters, candidates))

    def detect_job(
        self,
        texts: Sequence[str],
        candidates: Collection[str] | None = None,
        target_lang: str | None = None,
    ) -> list[Detection | None]:
        """Return the language of each text of one job; None for a text without letters.

        A text of 40 letters whose language is certain stands by itself. The others are judged by
        all texts of the job in their script, too: five strings of up to 30 letters together are
        detected as well as one of 60. The target language is never the language of a short text,
        unless all together have 40 letters and are certainly in it.
        """
        letters = [first_letters(text) for text in texts]
        found: dict[str, Detection | None] = {}
        for script, group in by_main_script(letters).items():
            found |= self._detect_script(group, candidates, _excluded(target_lang, script))
        return [found.get(text) for text in letters]

    def _detect_script(
        self, texts: Sequence[str], candidates: Collection[str] | None, target: str | None
    ) -> Mapping[str, Detection | None]:
        """Return the languages of different texts of letters in one script."""
        found = self._certain(texts, candidates)
        doubtful = [text for text in texts if text not in found]
        enough = sum(map(len, doubtful)) >= _ENOUGH_LETTERS
        pooled = self._pooled(doubtful if enough else texts, candidates, target)
        if len(texts) == 1:
            return {text: _likeliest(pooled) for text in doubtful} | found
        if target in pooled:  # many texts together are certainly in it
            target = None
        for text in doubtful:
            found[text] = self._in_pool(text, candidates, pooled, target)
        return found

    def _certain(
        self, texts: Sequence[str], candidates: Collection[str] | None
    ) -> dict[str, Detection | None]:
        """Return the languages of the texts that are long enough for a certain one."""
        found = {
            text: _likeliest(self._shares(text, candidates))
            for text in texts
            if len(text) >= _ENOUGH_LETTERS
        }
        return {text: one for text, one in found.items() if one and one.confidence > _CERTAIN_ABOVE}

    def _pooled(
        self, letters: Sequence[str], candidates: Collection[str] | None, target: str | None
    ) -> Mapping[str, float]:
        """Return the shares of the languages in several texts, read together."""
        every = -(-sum(map(len, letters)) // _POOL_LETTERS) or 1
        text = " ".join(letters[::every])[: 2 * _POOL_LETTERS]
        return _without(target, self._shares(text, candidates), text)

    def _in_pool(
        self,
        letters: str,
        candidates: Collection[str] | None,
        pooled: Mapping[str, float],
        target: str | None,
    ) -> Detection | None:
        """Return the language of a text beside others that have the shares `pooled`."""
        common = _likeliest(pooled)
        if common and common.confidence > _POOL_DECIDES and len(letters) < _FEW_LETTERS:
            return common
        shares = _without(target, self._shares(letters, candidates), letters)
        likely = {
            tag: share * (pooled.get(tag, 0.0) + _OTHER_LANGUAGE) for tag, share in shares.items()
        }
        return _likeliest(_shared(likely)) or common

    def _shares(self, letters: str, candidates: Collection[str] | None) -> Mapping[str, float]:
        """Return the probability of each language; they add up to 1."""
        if written := kana_or_hangul(letters):
            return {written: 1.0}
        if len(letters) < _FEW_LETTERS and (either := han_languages(letters)):
            weights = dict.fromkeys(either, 1.0)
            return _shared(weights if candidates is None else _within(weights, candidates, letters))
        ranked = self._loaded().rank(letters)
        if candidates is None:
            return _shared(_weights(ranked, letters, _UNLIKELY))
        return _shared(_within(_weights(ranked, letters), candidates, letters))

    def _loaded(self) -> _Identifier:
        identifier = self._identifier
        if identifier is None:
            identifier = self._identifier = _read_model()
        return identifier


def _read_model() -> _Identifier:
    """Load py3langid's model, unpacked in memory (68 MB for 3 s) instead of a temporary file.

    A container's temporary directory is often smaller than that.
    """
    from py3langid import modelio  # noqa: PLC0415  the extra `gates`
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415

    unpacking = getattr(modelio, "tempfile", None)
    modelio.tempfile = SimpleNamespace(TemporaryFile=lambda **_: io.BytesIO())
    try:
        made: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    finally:
        modelio.tempfile = unpacking
    return cast("_Identifier", made)


def _weights(
    ranked: list[tuple[str, float]], letters: str, unlikely: float = -1.0
) -> dict[str, float]:
    """Return unnormalised probabilities by tag; Latin text excludes languages of other scripts.

    Labels below the probability `unlikely` are left out, which most are.
    """
    latin = is_latin(letters)
    weights: dict[str, float] = {}
    for label, probability in ranked:
        if probability < unlikely and weights:
            break
        tag = _TAG_OF_LABEL.get(label, label)
        if label != _NO_LANGUAGE and (not latin or _in_latin_letters(tag)):
            weights[tag] = weights.get(tag, 0.0) + probability * _PRIOR.get(tag, 1.0)
    if len(letters) < _FEW_LETTERS and "en" in weights:
        weights["en"] *= 2  # "Hello.", "OK", "Save": most single words are labels of programs
    return weights


def _shared(weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights as shares of their sum."""
    total = sum(weights.values())
    return {tag: weight / total for tag, weight in weights.items()} if total > 0.0 else {}


def _likeliest(shares: Mapping[str, float]) -> Detection | None:
    if not shares:
        return None
    best = max(shares, key=lambda tag: shares[tag])
    return Detection(best, min(1.0, shares[best]))


@lru_cache(maxsize=1024)
def _excluded(target_lang: str | None, script: str) -> str | None:
    """Return the target's language if a text in this script is hardly in it, else None.

    Han characters may be Chinese to be written with the other ones, and Serbian may change its
    script.
    """
    if target_lang is None or script == "CJK":
        return None
    target = langcodes.Language.get(target_lang)
    written = _UNICODE_NAMES.get(target.maximize().script or "", script)
    return target.language if written == script else None


def _without(target: str | None, shares: Mapping[str, float], letters: str) -> Mapping[str, float]:
    """Return the shares without the target's, unless the letters are certainly in the target."""
    if target is None or target not in shares:
        return shares
    if len(letters) >= _ENOUGH_LETTERS and shares[target] > _CERTAIN_ABOVE:
        return shares
    return {tag: share for tag, share in shares.items() if tag != target}


@cache
def _in_latin_letters(tag: str) -> bool:
    return langcodes.Language.get(tag).maximize().script == "Latn"


def _within(
    weights: Mapping[str, float], candidates: Collection[str], letters: str
) -> Mapping[str, float]:
    """Return the candidates' weights, or all weights if the text is certainly in no candidate."""
    chosen = {_listed(tag, candidates): weight for tag, weight in weights.items()}
    chosen.pop(None, None)
    total = sum(weights.values())
    outside = sum(chosen.values()) < _OUTSIDE_BELOW * total
    certain = max(weights.values()) > _CERTAIN_ABOVE * total
    latin = is_latin(letters)
    if outside and (not latin or (certain and len(letters) >= _ENOUGH_LETTERS)):
        return weights
    return {tag: weight for tag, weight in chosen.items() if tag is not None}


def _listed(tag: str, candidates: Collection[str]) -> str | None:
    """Return the candidate that means `tag`; the model's Norwegian is Bokmal."""
    if tag in candidates:
        return tag
    return "nb" if tag == "no" and "nb" in candidates else None
