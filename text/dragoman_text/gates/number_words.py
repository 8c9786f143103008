"""Words of the numbers that translators write out most: 10 to 20, the tens, and 100."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dragoman_text.gates import languages

_VALUES: Final = (*range(10, 21), *range(30, 101, 10))
_WORDS: Final = {
    "en": "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty "
    "thirty forty fifty sixty seventy eighty ninety hundred",
    "de": "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig "
    "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    "fr": "dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf vingt "
    "trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix cent",
    "es": "diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte "
    "treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "it": "dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove "
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta cento",
    "pt": "dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove vinte "
    "trinta quarenta cinquenta sessenta setenta oitenta noventa cem",
    "nl": "tien elf twaalf dertien veertien vijftien zestien zeventien achttien negentien twintig "
    "dertig veertig vijftig zestig zeventig tachtig negentig honderd",
}


_HALF: Final = {
    "en": re.compile(r"\bhalf\b", re.IGNORECASE),
    "de": re.compile(r"\bhalb(?:e[nrs]?)?\b", re.IGNORECASE),
    "fr": re.compile(r"\bdemie?\b", re.IGNORECASE),
    "es": re.compile(r"\bmedi[ao]\b", re.IGNORECASE),
    "it": re.compile(r"\bmezz[ao]\b", re.IGNORECASE),
    "pt": re.compile(r"\bmeia\b", re.IGNORECASE),
    "nl": re.compile(r"\b(?:half|halve)\b", re.IGNORECASE),
    "zh": re.compile("半"),
    "ja": re.compile("半"),
}
"""The 30 of 2:30 and of 30 minutes, by language: English "media" is no number."""


def is_written_out(number: str, text: str, tag: str) -> bool:
    """Return whether the text, in the language of the tag, has the number as a word."""
    language = languages.base(tag)
    if number == "30" and (half := _HALF.get(language)) is not None and half.search(text):
        return True
    word = _by_number(language).get(number)
    return word is not None and re.search(rf"\b{word}\b", text, re.IGNORECASE) is not None


@lru_cache(maxsize=64)
def _by_number(language: str) -> dict[str, str]:
    words = _WORDS.get(language, "").split()
    return dict(zip(map(str, _VALUES), words, strict=True)) if words else {}
