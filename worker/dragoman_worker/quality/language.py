"""Language detection with py3langid, from the first letters of a text."""

from __future__ import annotations

import io
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any, Final, Protocol, cast

import langcodes
from py3langid import modelio
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dragoman_text.spans import has_letters
from dragoman_worker.ports import Detection

LETTERS_READ: Final = 300
"""More letters do not improve the detection; this also bounds its cost."""

_CHARACTERS_SCANNED: Final = 4 * LETTERS_READ
# An address begins at the start of a word or after other code. Possessive quantifiers avoid
# backtracking: a word of 1,200 @ signs is read once, not once per position.
_ADDRESS: Final = r"(?<![^\s>`}])\S[^\s@]*+@\S[^\s.]*+\.\S++"
_NOT_PROSE: Final = re.compile(
    rf"(?:https?://|www\.)\S+|{_ADDRESS}|</?[A-Za-z][^<>]{{0,200}}>|`[^`]{{1,200}}`"
    r"|\{[^{}]{0,60}\}"
)
# Not [^\W\d_]: Python counts the vowel signs of Indic scripts, which are marks, as non-words.
_NOT_LETTERS: Final = re.compile(
    r"[\d_\s!-/:-@\[-`{-~\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u2000-\u206f\u3000-\u3004\u3007-\u3030\u3036-\u303a\u303d-\u303f]+"
)
_KANA: Final = re.compile("[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]")
_HANGUL: Final = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

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
_SCRIPT_LETTERS: Final = 40
_UNICODE_NAMES: Final[Mapping[str, str]] = {
    "Latn": "LATIN",
    "Cyrl": "CYRILLIC",
    "Arab": "ARABIC",
    "Deva": "DEVANAGARI",
    "Grek": "GREEK",
    "Hebr": "HEBREW",
}


_UNLIKELY: Final = 1e-4
"""Probability below which a label changes no result: all such together have at most 1 %."""


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
        letters = _letters(text)
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
        letters = [_letters(text) for text in texts]
        found: dict[str, Detection | None] = {}
        for script, group in _by_main_script(letters).items():
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
        if written := _by_script(letters):
            return {written: 1.0}
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
    latin = len(_LATIN.findall(letters)) > len(letters) / 2
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


def _by_main_script(letters: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the different texts by their main script, without those that have no letters."""
    groups: dict[str, list[str]] = {}
    for text in dict.fromkeys(letters):
        if text:
            scripts = Counter(map(_script, text[:_SCRIPT_LETTERS].replace(" ", "")))
            groups.setdefault(scripts.most_common(1)[0][0], []).append(text)
    return groups


@lru_cache(maxsize=8192)
def _script(letter: str) -> str:
    """Return the script as the Unicode name of the letter begins; one for all of Japanese."""
    word = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if word in {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"} else word


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
    latin = len(_LATIN.findall(letters)) > len(letters) / 2
    if outside and (not latin or (certain and len(letters) >= _ENOUGH_LETTERS)):
        return weights
    return {tag: weight for tag, weight in chosen.items() if tag is not None}


def _listed(tag: str, candidates: Collection[str]) -> str | None:
    """Return the candidate that means `tag`; the model's Norwegian is Bokmal."""
    if tag in candidates:
        return tag
    return "nb" if tag == "no" and "nb" in candidates else None


def _letters(text: str) -> str:
    """Return the first letters of the prose in `text`, or of all if there is only code.

    Everything that is no letter becomes a single space.
    """
    # Not a pattern of word characters: in Python these include superscripts and fractions.
    first = next((at for at, character in enumerate(text) if character.isalpha()), None)
    if first is None:
        return ""
    start = text[first : first + _CHARACTERS_SCANNED]
    prose = _NOT_PROSE.sub(" ", start)
    chosen = prose if has_letters(prose) else start
    return _NOT_LETTERS.sub(" ", chosen).strip()[:LETTERS_READ]


def _by_script(letters: str) -> str | None:
    """Return Japanese or Korean by kana or Hangul, unless another script prevails."""
    kana, hangul = len(_KANA.findall(letters)), len(_HANGUL.findall(letters))
    if not kana and not hangul:
        return None
    most = len(letters.replace(" ", "")) / 2
    if kana + len(_HAN.findall(letters)) > most and kana > hangul:
        return "ja"
    return "ko" if hangul > most else None
