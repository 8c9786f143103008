"""Gate `language`: the answer is in another language than was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dragoman_text.gates import languages, relatives
from dragoman_text.gates.defect import Defect
from dragoman_text.gates.detect import Detect
from dragoman_text.gates.prose import plain, weighed_letters
from dragoman_text.verdicts import Candidate

_SURE_LETTERS: Final = 40
_FEW_LETTERS: Final = 20
_CERTAIN: Final = 0.9
_LIKELY: Final = 0.5
"""From 40 letters on no false alarm in 9,600 sentences, 94 % detected; at 20 letters 0.06 % and
78 %, hence slight."""

_RELATIVE_LETTERS: Final = 60
_OWN_LETTERS: Final = 12
_PROSE_IN_ROW: Final = 3
_WINDOW: Final = 600
_LATIN: Final = re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]+")


def find(candidate: Candidate, detect: Detect) -> Defect | None:
    """Return a defect if a part of the answer is certainly in another language.

    Rests where the source is in the target language already.
    """
    given = candidate.source_lang
    if given is not None and languages.same_language(given, candidate.target_lang):
        return None
    text = plain(candidate.target)
    if not languages.is_detected(candidate.target_lang):
        return None  # it would be taken for another language, always
    if languages.script(candidate.target_lang) != "Latn":
        text = _native(text)
    worst = [
        found
        for window in _windows(text)
        if (found := _wrong(window, candidate.target_lang, detect)) is not None
        and not _keeps_names(window, candidate, found[0], detect)
    ]
    if not worst:
        return None
    tag, slight = min(worst, key=lambda each: each[1])
    detail = f'The answer is in the language "{tag}", not in "{candidate.target_lang}".'
    return Defect(detail, slight=slight)


def _keeps_names(text: str, candidate: Candidate, found: str, detect: Detect) -> bool:
    """Return whether the words that the source does not have are certainly in the right language.

    Sentences full of names and terms look like English, or like a language of neither text. Three
    words of the source in a row, all lower case and without a mark, are no names.
    """
    if found in languages.family(candidate.target_lang):
        return False
    known = {*candidate.source.split()}
    own, row = [], 0
    for word in text.split():
        kept = word in known
        row = row + 1 if kept and word.isalpha() and word.islower() else 0
        if row == _PROSE_IN_ROW:
            return False
        if not kept:
            own.append(word)
    rest = " ".join(own)
    if weighed_letters(rest) < _OWN_LETTERS:
        return False
    detection = detect(rest, (found, languages.base(candidate.target_lang)))
    return (
        detection is not None
        and languages.base(detection.language) in languages.family(candidate.target_lang)
        and detection.confidence >= _CERTAIN
    )


def _native(text: str) -> str:
    """Return the text without Latin letters, if a quarter is left: names touch Chinese ones."""
    native = " ".join(_LATIN.sub(" ", text).split())
    return native if 4 * weighed_letters(native) >= weighed_letters(text) else text


def _windows(text: str) -> Iterator[str]:
    """Yield the beginning, and of a long text its middle and its end: answers give up halfway."""
    yield text[:_WINDOW]
    if len(text) > 2 * _WINDOW:
        middle = len(text) // 2
        yield text[middle - _WINDOW // 2 : middle + _WINDOW // 2]
    if len(text) > _WINDOW:
        yield text[-_WINDOW:]


def _wrong(text: str, asked: str, detect: Detect) -> tuple[str, bool] | None:
    """Return the language of the text and whether that is slight, None if it is as expected."""
    weight = weighed_letters(text)
    if weight < _FEW_LETTERS:
        return None
    few = weight < _SURE_LETTERS
    detection = detect(text)
    if detection is None or detection.confidence < (_CERTAIN if few else _LIKELY):
        return None
    found, expected = languages.base(detection.language), languages.family(asked)
    if found in expected:
        relative = None if few else _relative(text, found, asked, detect)
        return (relative, False) if relative else None
    if detection.confidence < _CERTAIN:
        # The detector returns a language outside the candidates if they have less than 10 %.
        certain = detect(text, expected)
        if certain is None or languages.base(certain.language) in expected:
            return None
    return found, few


def _relative(text: str, found: str, asked: str, detect: Detect) -> str | None:
    """Return the relative of the asked language in which the text certainly is."""
    if weighed_letters(text) >= _RELATIVE_LETTERS and _is_relative(text, found, asked, detect):
        return found
    return relatives.by_words(text, asked)


def _is_relative(text: str, found: str, asked: str, detect: Detect) -> bool:
    """Return whether the text is certainly in the language `found` and not in its relative."""
    if not languages.are_separated(asked, found):
        return False
    certain = detect(text, (found, languages.base(asked)))
    return (
        certain is not None
        and languages.base(certain.language) == found
        and certain.confidence >= _CERTAIN
    )
