"""Gate `script`: the answer, or a word in it, is in letters that its language does not use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dragoman_text import scripts
from dragoman_text.gates import copy, languages
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.gates.detect import Detect
from dragoman_text.gates.prose import letters, prose
from dragoman_text.verdicts import Candidate

_LEAST_LETTERS: Final = 20
_LEAST_SHARE: Final = 0.1
_LEAST_HAN: Final = 3
_CHARACTERS_READ: Final = 2_000
_FREE: Final = frozenset({"Latn", "Grek"})
"""Letters that are at home in every text: names, units, formulas."""
_HAN: Final = frozenset({"Hans", "Hant"})
_ALIKE: Final = frozenset({"Latn", "Cyrl"})
"""Scripts whose letters are mistaken for each other, by people too."""
_WORD: Final = re.compile(r"\w+")


def find(candidate: Candidate, detect: Detect) -> Defect | None:
    """Return a defect if the answer is in another script, or a word has letters of another.

    Rests where the source is in the target language and script already.
    """
    given, asked = candidate.source_lang, candidate.target_lang
    expected = languages.expected_script(asked)
    if expected is None or (given is not None and languages.same_language(given, asked)):
        return None
    text = prose(candidate.target)
    if expected in _HAN and (other := _other_han(text, expected)):
        return other
    own = scripts.of_writing(expected)
    allowed = _letters(own, languages.script(given) if given else None)
    if not own or not allowed.other.search(text):
        return None
    return _other_script(candidate, text, allowed, detect) or _stray(candidate, text, allowed)


# --- the whole answer -----------------------------------------------------------------------------


def _other_script(
    candidate: Candidate, text: str, allowed: _Letters, detect: Detect
) -> Defect | None:
    """Return a defect if less than a tenth of the letters are of the script.

    Rests where all other words stand in the source, as names and code do, and it is no copy.
    """
    text, native = text[:_CHARACTERS_READ], allowed.native
    number = sum(map(len, native.findall(text)))
    if number >= _LEAST_SHARE * len(text):
        return None
    total = letters(text)
    if total < _LEAST_LETTERS or number >= _LEAST_SHARE * total:
        return None
    others = _WORD.findall(native.sub(" ", text).lower())
    kept = set(_WORD.findall(candidate.source.lower())).issuperset(others)
    if kept and not copy.find(candidate, detect):
        return None
    expected = languages.script(candidate.target_lang)
    return Defect(f'{number} of {total} letters are in the script "{expected}".')


def _other_han(text: str, expected: str) -> Defect | None:
    """Return a defect if most characters that tell are those of the other Chinese script."""
    counts = Counter(kind for kind in map(_han_kind, text[:_CHARACTERS_READ]) if kind)
    other = "Hant" if expected == "Hans" else "Hans"
    if counts[other] < _LEAST_HAN or counts[other] <= 2 * counts[expected]:
        return None
    return Defect(f'The answer is in the script "{other}", not in "{expected}".')


@lru_cache(maxsize=16_384)
def _han_kind(character: str) -> str:
    """Return `Hans` for a character of GB 2312 alone, `Hant` for one of Big5 alone."""
    if not "\u4e00" <= character <= "\u9fff":
        return ""
    simplified, traditional = _encodes(character, "gb2312"), _encodes(character, "big5")
    if simplified == traditional:
        return ""
    return "Hans" if simplified else "Hant"


def _encodes(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


# --- single words ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Letters:
    """Patterns of the letters that the words of an answer may have, and may not."""

    native: re.Pattern[str]
    other: re.Pattern[str]
    """All that are not native."""
    given: re.Pattern[str]
    """Letters of the source's language, which may stand alone as names do."""
    foreign: re.Pattern[str]
    apart: re.Pattern[str]
    """Foreign letters that never touch native ones."""
    alike: re.Pattern[str]
    """One or two Latin letters in a Cyrillic word, or the reverse."""

    def strays_of(self, word: str, kept: Collection[str]) -> Iterator[str]:
        """Yield the runs of letters that are out of place; `kept` are the source's characters."""
        for run in self.foreign.finditer(word):
            found = run[0]
            around = word[max(0, run.start() - 1) : run.end() + 1]
            if self.alike.search(around):
                continue
            if self.given.fullmatch(found):  # a source in Japanese has all of kana
                if self.apart.fullmatch(found) and self.native.search(around):
                    yield found
            elif not _is_kept(found, around, kept):
                yield found


def _is_kept(found: str, around: str, kept: Collection[str]) -> bool:
    """Return whether the source has the letters, or they are a gloss of one Han character."""
    return all(each in kept for each in found if each.isalpha()) or (
        around == f"({found})" and "\u4e00" <= found <= "\u9fff"
    )


@lru_cache(maxsize=1024)
def _letters(own: frozenset[str], given: str | None) -> _Letters:
    """Return the patterns for answers in the scripts `own` to sources in the script `given`."""
    foreign = scripts.others(own | _FREE)
    # Names in an alphabet touch native letters where words have no blanks, or before particles.
    tight = scripts.UNSPACED | {"Hang"}
    apart = foreign if own.isdisjoint(tight) else foreign & tight
    return _Letters(
        native=scripts.runs(own),
        other=scripts.runs(scripts.others(own)),
        given=scripts.runs(scripts.of_writing(given)),
        foreign=scripts.runs(foreign),
        apart=scripts.runs(apart),
        alike=_alike(own),
    )


def _alike(own: frozenset[str]) -> re.Pattern[str]:
    if own.isdisjoint(_ALIKE):
        return re.compile("(?!)")
    native, other = (scripts.one(frozenset(each)) for each in (own, _ALIKE - own))
    return re.compile(
        f"(?<!{other}){other}{{1,2}}(?={native})|(?<={native}){other}{{1,2}}(?!{other})"
    )


def _stray(candidate: Candidate, text: str, allowed: _Letters) -> Defect | None:
    """Return a defect if a word has letters that neither language uses and the source lacks.

    A word that the source has too is as it should be. A letter that looks like the right one is
    slight: people type it.
    """
    if not (allowed.foreign.search(text) or allowed.alike.search(text)):
        return None
    kept, words, mixed = set(candidate.source), set(candidate.source.split()), None
    for word in text.split():
        if word in words:
            continue
        stray = next(allowed.strays_of(word, kept), None)
        if stray is not None:
            return Defect(f"Letters of another script: {listed([stray])}.")
        if mixed is None and allowed.alike.search(word):
            mixed = word
    return Defect(f"Letters of two scripts in {listed([mixed])}.", slight=True) if mixed else None
