"""The letters of texts that decide their language, and the scripts of letters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from dragoman_text.spans import has_letters

_LETTERS_READ: Final = 300
"""More letters do not improve the detection; this also bounds its cost."""

_CHARACTERS_SCANNED: Final = 4 * _LETTERS_READ
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

_SCRIPT_LETTERS: Final = 40


def first_letters(text: str) -> str:
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
    return _NOT_LETTERS.sub(" ", chosen).strip()[:_LETTERS_READ]


def kana_or_hangul(letters: str) -> str | None:
    """Return Japanese or Korean by kana or Hangul, unless another script prevails."""
    kana, hangul = len(_KANA.findall(letters)), len(_HANGUL.findall(letters))
    if not kana and not hangul:
        return None
    most = len(letters.replace(" ", "")) / 2
    if kana + len(_HAN.findall(letters)) > most and kana > hangul:
        return "ja"
    return "ko" if hangul > most else None


def han_languages(letters: str) -> tuple[str, ...]:
    """Return the languages in which a few Han characters without kana are a word, none if unclear.

    Japanese has characters that neither Chinese standard has (検, 込), Chinese has some that
    Japanese has not. What both have, as 設定, may be either.
    """
    characters = letters.replace(" ", "")
    if not characters or _HAN.sub("", characters) or not _encodes(characters, "shift_jis"):
        return ()
    for character in characters:
        if not (_encodes(character, "gb2312") or _encodes(character, "big5")):
            return ("ja",)
    return ("zh", "ja")


def _encodes(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def is_latin(letters: str) -> bool:
    """Return whether most letters are Latin."""
    return len(_LATIN.findall(letters)) > len(letters) / 2


def by_main_script(letters: Sequence[str]) -> Mapping[str, list[str]]:
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
