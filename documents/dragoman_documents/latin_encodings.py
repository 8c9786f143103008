"""Encodings of one byte per Latin letter, recognised by the letters of languages.

Their bytes are the same ones for other letters, so that a statistic of bytes takes French in
Windows-1252 for Windows-1250 and reads `crème` as `crčme`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_ENOUGH: Final = 0.9
"""Share of the letters beyond ASCII that are of one language."""
_MOST: Final = 0.7
"""Share of letters beyond ASCII in a text in Latin letters, at most."""
_CAPITALS: Final = "".join(each for each in map(chr, range(0x80, 0x250)) if each.isupper())
_MISPLACED: Final = re.compile(
    rf"[^\W\d_][‚„†‡‰]|[^\W\d_\x00-\x7f](?=[0-9])|(?<=[a-z])[{_CAPITALS}]"
)
"""An opening quotation mark or the like behind a letter; a letter in front of a digit; a capital
behind a small letter."""
_ALONE: Final = re.compile(r"(?<![^\W\d_])[^\x00-\x7f](?![^\W\d_])")
"""A character between others than letters: a symbol, such as in `£5`, is in its place there."""
_RUSSIAN: Final = re.compile("[А-Яа-яЁё]")
_NEUTRAL: Final = frozenset("‘’‚“”„‹›«»–—…•·§°©®€™µ\xa0\xad")
_WESTERN: Final = {
    "en": "éèêëïîôöüñçàâä", "fr": "àâæçéèêëîïôœùûüÿ", "de": "äöüß", "es": "áéíóúüñ¿¡ªº",
    "pt": "áâãàçéêíóôõúüªº", "it": "àèéìíîòóùú", "nl": "éèêëïóöüáíúà", "sv": "åäöéü",
    "fi": "åäöšž", "da": "æøåéöä", "nb": "æøåéòôèóà", "nn": "æøåéòôèóà", "no": "æøåéòôèóà",
    "is": "áðéíóúýþæö", "fo": "áðíóúýæø", "ca": "àçéèíïóòúü·", "gl": "áéíóúñüï", "eu": "ñçü",
    "ga": "áéíóú", "cy": "âêîôûáéíóúàèìòùäëïöü", "lb": "äëéöüê", "af": "êëéèôöïîûáíóú",
    "id": "é", "ms": "é", "sw": "é",
}  # fmt: skip
_CENTRAL: Final = {
    "cs": "áčďéěíňóřšťúůýž", "sk": "áäčďéíĺľňóôŕšťúýž", "pl": "ąćęłńóśźż", "hu": "áéíóöőúüű",
    "hr": "čćđšž", "bs": "čćđšž", "sl": "čšžćđ", "sq": "ëç", "ro": "ăâîşţ",
}  # fmt: skip
_TURKISH: Final = {"tr": "çğıöşüâîûi̇", "az": "çğıöşü"}
_BALTIC: Final = {"lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž", "et": "äõöüšž"}
_LETTERS: Final[Mapping[str, Mapping[str, str]]] = {
    "cp1252": _WESTERN,
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
    "cp1254": _TURKISH,
    "cp1257": _BALTIC,
    "mac_roman": _WESTERN,
    "cp850": _WESTERN,
}
"""Letters beyond ASCII by encoding and language; of equal ones the first encoding counts."""
_LATIN: Final = frozenset(
    {
        *_LETTERS, "latin_1", "cp1258", "hp_roman8",
        *(f"iso8859_{number}" for number in (1, 3, 4, 9, 10, 13, 14, 15, 16)),
    }
)  # fmt: skip
"""What a statistic calls text in Latin letters."""


def latin(data: bytes, sample: bytes, lang: str | None, guess: str | None = None) -> str | None:
    """Return the encoding of a text in Latin letters; None if it is not one, or none is known.

    `lang` is the language of the text, if it is known, `guess` the encoding of a statistic: one for
    Latin letters has less evidence than the letters.
    """
    share, encoding = max(_shares(data, sample, lang), key=lambda each: each[0], default=(0.0, ""))
    if share >= _ENOUGH or guess in _LATIN:
        return encoding or None
    if lang is not None:
        return latin(data, sample, None, guess)
    return None


def cyrillic(sample: bytes, guess: str) -> str:
    """Return Windows-1251 for a guess of Mac Cyrillic that makes less Russian of a text.

    The two have the same small letters; a statistic reads the capital in `Привет` as `ѕ`.
    """
    if guess != "mac_cyrillic":
        return guess
    found = (guess, "cp1251")
    return max(found, key=lambda name: len(_RUSSIAN.findall(sample.decode(name, "ignore"))))


def _shares(data: bytes, sample: bytes, lang: str | None) -> Iterable[tuple[float, str]]:
    """Yield for each encoding the share of letters that are of one language."""
    base = lang.partition("-")[0] if lang else None
    for encoding, languages in _LETTERS.items():
        alphabets = [letters for name, letters in languages.items() if base is None or name == base]
        text = _text(data, sample, encoding) if alphabets else None
        if text is not None:
            yield _share(text, alphabets), encoding


def _text(data: bytes, sample: bytes, encoding: str) -> str | None:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return sample.decode(encoding)


def _share(text: str, alphabets: Iterable[str]) -> float:
    """Return how many of the characters beyond ASCII are where one of the languages has them."""
    counts = Counter(text.lower())
    others = {
        each: count for each, count in counts.items() if not each.isascii() and each not in _NEUTRAL
    }
    plain = sum(count for each, count in counts.items() if each.isascii() and each.isalpha())
    foreign = sum(count for each, count in others.items() if each.isalpha())
    misplaced = len(_MISPLACED.findall(text))
    total = sum(others.values()) + misplaced
    if not total:  # quotation marks, dashes and the like alone
        return float(sum(counts[each] for each in _NEUTRAL) <= plain)
    if foreign > _MOST * (foreign + plain):
        return 0.0
    symbols = sum(not each.isalpha() and each not in _NEUTRAL for each in _ALONE.findall(text))
    known = max(sum(others.get(each, 0) for each in set(letters)) for letters in alphabets)
    return (known + symbols - misplaced) / total
