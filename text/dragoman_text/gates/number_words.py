"""Numbers in words, as translators write them out, and words that multiply: million, 万."""

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


_CHINESE: Final = "〇一二三四五六七八九"
_UNITS: Final = ("", "十", "百", "千")
_ROMAN: Final = (("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1))
_LATEST_CENTURY: Final = 30

_ZEROS: Final = {
    2: "hundred hundert cent cien ciento cento сто सौ শত trăm ratus yüz ร้อย 百 백",
    3: "thousand tausend mille mil mila duizend tusen tusind tuhat tuhatta tisíc tys тыс тис "
    "ezer mii bin ألف آلاف الف هزار אלף हज़ार हजार হাজার ஆயிரம் nghìn ngàn ribu พัน 千 천 k",
    4: "万 萬 만 หมื่น",
    5: "lakh लाख লাখ লক্ষ لاکھ แสน",
    6: "mio mln млн εκατ مليون ملايين ميلیون میلیون מיליון मिलियन মিলিয়ন triệu juta ล้าน "
    "百万 百萬 백만 mn m",
    7: "crore करोड़ কোটি کروڑ 千万 千萬 천만",
    8: "億 亿 억",
    9: "mrd mld млрд δισ مليار مليارات میلیارد מיליארד बिलियन বিলিয়ন tỷ tỉ พันล้าน "
    "十億 十亿 십억 bn b",
    11: "千億 千亿 천억",
    12: "трлн تريليون تریلیون טריליון ट्रिलियन ট্রিলিয়ন ล้านล้าน 兆 조 万亿 萬億",
}
_STEMS: Final = (
    # million, millón, milhão, miljoen, milijon, milyon, милиона; thousands of one language only
    (re.compile(r"m[iи](?:ll?i?|lh|li?j|ly|лл?[іиь]?)[aoóõöãоóй]|εκατομμ"), (6,)),
    (re.compile(r"m[iи](?:l+i?|li?j|ly|л+[іиь]?)[aàááа](?:r|р)|δισεκατομμ"), (9,)),
    (re.compile(r"b[iи](?:ll?i?|lh|li?j|л+[іиь]?)[oóõöãо]"), (9, 12)),
    (re.compile(r"tr[iи](?:ll?i?|lh|li?j|ly)[oóõöã]|тр[иі]л"), (12, 18)),
    (
        re.compile(r"t(?:housand|ausend|uhan|ysi|isíc|ūkst)|тысяч|тисяч|хиляд|χιλιάδ|hiljad|тисућ"),
        (3,),
    ),
)
"""Beginnings of words that many languages share; what a billion is differs."""
_VOWEL_SIGNS: Final = (
    "\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0b82\u0bbe-\u0bcd\u0e31-\u0e4e"
)
"""Of Hindi, Bengali, Tamil and Thai, which are no letters of words to Python."""
_BEHIND: Final = re.compile(f"[ \u00a0\u2009\u202f-]?((?:[^\\W\\d_]|[{_VOWEL_SIGNS}]){{1,16}})")


_UNIT_WORDS: Final = "万亿|千[万萬]|百[万萬]|十[億亿]|천만|백만|[万萬億亿兆千百만억조천백]"
_UNIT: Final = re.compile(_UNIT_WORDS)
_AMOUNT: Final = r"[0-9][0-9,]{0,11}(?:\.[0-9]{1,6})?[ ]?"
_REST: Final = r"(?:[ ]?[0-9],[0-9]{3}|[0-9]{1,4})(?![0-9])"
_WITH_UNIT: Final = re.compile(rf"([0-9][0-9,]*(?:\.[0-9]+)?)[ ]?({_UNIT_WORDS})?")
_SEVERAL: Final = re.compile(
    rf"(?:{_AMOUNT}(?:{_UNIT_WORDS})[ ]?){{2,4}}(?:{_REST})?|{_AMOUNT}(?:{_UNIT_WORDS}){_REST}"
)


@lru_cache(maxsize=1)
def _zeros() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for zeros, words in _ZEROS.items():
        for word in {word.casefold() for word in words.split()}:
            found[word] = (*found.get(word, ()), zeros)
    return found


def factors(text: str, place: int) -> tuple[int, ...]:
    """Return the zeros of the word behind a number, several where languages differ: billion."""
    behind = _BEHIND.match(text, place)
    if behind is None:
        return ()
    word, known = behind[1].casefold(), _zeros()
    if (whole := known.get(word)) is not None:
        return whole
    if word[0] < "\u0e00":
        return next((zeros for stem, zeros in _STEMS if stem.match(word)), ())
    beginnings = (known.get(word[:length]) for length in (4, 3, 2, 1))
    return next(filter(None, beginnings), ())


def summed(text: str) -> str:
    """Return the text with numbers of several units written as one: 3億5000万 is 350000000."""
    return _SEVERAL.sub(_sum, text) if _UNIT.search(text) else text


def _sum(match: re.Match[str]) -> str:
    total = 0.0
    for part in _WITH_UNIT.finditer(match[0]):
        total += float(part[1].replace(",", "")) * 10 ** _zeros().get(part[2] or "", (0,))[0]
    return str(round(total))


def is_written_out(number: str, text: str, tag: str) -> bool:
    """Return whether the text, in the language of the tag, has the number as a word."""
    language = languages.base(tag)
    if number == "30" and (half := _HALF.get(language)) is not None and half.search(text):
        return True
    if language in ("zh", "ja", "yue") and any(each in text for each in _chinese(number)):
        return True
    if len(number) < 3 and (roman := _roman(number)) and re.search(rf"\b{roman}\b", text):
        return True
    word = _by_number(language).get(number)
    return word is not None and re.search(rf"\b{word}\b", text, re.IGNORECASE) is not None


@lru_cache(maxsize=1024)
def _chinese(number: str) -> tuple[str, ...]:
    """Return a number of up to four digits digit by digit, and in words: 二〇 and 二十."""
    if len(number) > 4 or not number.isdigit():
        return ()
    digits = "".join(_CHINESE[int(each)] for each in number)
    places = zip(number, _UNITS[len(number) - 1 :: -1], strict=True)
    words = "".join(_CHINESE[int(each)] + unit if each != "0" else "〇" for each, unit in places)
    words = re.sub("〇+", "〇", words).rstrip("〇").replace("〇", "零")
    spellings = {digits, words, words.removeprefix("一") if words.startswith("一十") else words}
    return tuple(each for each in spellings if each)


@lru_cache(maxsize=128)
def _roman(number: str) -> str:
    """Return the Roman numeral of a century; empty above 30."""
    rest = int(number) if number.isdigit() else 0
    if not 2 <= rest <= _LATEST_CENTURY:
        return ""
    numeral = ""
    for letters, value in _ROMAN:
        numeral += letters * (rest // value)
        rest %= value
    return numeral


@lru_cache(maxsize=64)
def _by_number(language: str) -> dict[str, str]:
    words = _WORDS.get(language, "").split()
    return dict(zip(map(str, _VALUES), words, strict=True)) if words else {}
