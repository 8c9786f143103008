"""Gate `placeholders`: protected literals and placeholders occur as often as in the source.

The source's own placeholders are counted in the answer. Searching both texts for placeholders and
comparing would disagree in 2 % of human translations of user interfaces: ``%s`` before a letter
is no placeholder by itself, but it is one if the source has it. Of an ICU message, each sentence
is compared with that of the same selector.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from dragoman_text import icu
from dragoman_text.gates.defect import Defect, listed
from dragoman_text.spans import count_words, find_spans, possible_placeholders
from dragoman_text.verdicts import Candidate

_KINDS: Final = frozenset({"printf", "qt", "mustache", "template", "brace", "colon"})
_MARKS: Final = ("%", "{", ":", "$t(", "[[")
_FORM: Final = " | "
"""What divides the forms of a plural in messages of Vue: `1 item | {n} items`."""
_POSITION: Final = re.compile(r"\A%(?P<position>[0-9]{1,2})\$")
_DATE: Final = re.compile("%[-_0^#]?[bBYyHIMmjUWwZklRTDFV]")
"""What strftime knows and printf does not: other languages have other orders of dates."""
_OF_QT: Final = "0123456789n"
"""What ends a placeholder of Qt, whose number is a part of it."""
_CATEGORIES: Final = frozenset({"zero", "one", "two", "few", "many", "other"})
_MOST_SENTENCES: Final = 16


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if a protected literal or a placeholder is missing, too frequent or moved."""
    message = icu.message(candidate.source)
    if message is None:
        changed = _changed(candidate.source, candidate.target)
    else:
        changed = _changed_message(message, candidate.target)
    return changed or _changed_literals(candidate)


def _changed(source: str, target: str) -> Defect | None:
    expected = _placeholders(source)
    if not expected:
        return None
    counted = _counts(target, expected)
    if missing := [each for each, times in expected.items() if counted[each] < times]:
        return Defect(f"The answer lacks {listed(missing)}.")
    more_forms = target.count(_FORM) > source.count(_FORM) > 0  # a plural has more in Polish
    repeated = [each for each, times in expected.items() if counted[each] > times]
    if repeated and not more_forms:
        return Defect(f"The answer repeats {listed(repeated)}.")
    moved = _arguments(source, expected) - _arguments(target, expected)
    if moved and not _DATE.search(source):
        values = [f"{spelled} of value {place}" for place, spelled in moved]
        return Defect(f"The answer lacks {listed(values)}.")
    return None


def _changed_literals(candidate: Candidate) -> Defect | None:
    """Return a defect of what the job protects: literals overlap, so each is counted by itself."""
    if not candidate.protected and not candidate.words:
        return None
    source, target = candidate.source, candidate.target
    apart = {"", *candidate.words}
    literals = [each for each in candidate.protected if each not in apart]
    expected = {each: source.count(each) for each in literals}
    words, found = (count_words(text, candidate.words) for text in (source, target))
    missing = [each for each, times in expected.items() if target.count(each) < times]
    # An ending may follow a word in the translation: Finnish has "Kafkan".
    missing += [each for each, times in words.items() if target.count(each) < times]
    if missing:
        return Defect(f"The answer lacks {listed(missing)}.")
    repeated = [each for each, times in expected.items() if target.count(each) > times]
    repeated += [each for each, times in words.items() if found[each] > times]
    return Defect(f"The answer repeats {listed(repeated)}.") if repeated else None


# --- placeholders ---------------------------------------------------------------------------------


def _placeholders(source: str) -> Counter[str]:
    """Return how often each placeholder occurs in the source, without positions (`%1$s`)."""
    if not any(mark in source for mark in _MARKS):
        return Counter()
    certain = {
        _without_position(source[span.start : span.end])
        for span in find_spans(source)
        if span.kind in _KINDS
    }
    return _counts(source, certain)


def _counts(text: str, wanted: Iterable[str]) -> Counter[str]:
    wanted = set(wanted)
    if not wanted:
        return Counter()
    found = map(_without_position, possible_placeholders(text))
    return Counter(each for each in found if each in wanted)


def _arguments(text: str, wanted: Iterable[str]) -> Counter[tuple[int, str]]:
    """Return which value each printf format takes: its position, or else its place."""
    wanted = {each for each in wanted if each[0] == "%" and each[1:2] not in ("%", "(")}
    found: Counter[tuple[int, str]] = Counter()
    if not wanted:
        return found
    next_place = 1
    for each in possible_placeholders(text):
        if (spelled := _without_position(each)) not in wanted or spelled[-1] in _OF_QT:
            continue
        if (numbered := _POSITION.match(each)) is not None:
            found[int(numbered["position"]), spelled] += 1
        else:
            found[next_place, spelled] += 1
            next_place += 1
    return found


def _without_position(placeholder: str) -> str:
    return _POSITION.sub("%", placeholder)


# --- ICU messages ---------------------------------------------------------------------------------


def _changed_message(source: Sequence[icu.Node], target: str) -> Defect | None:
    answer = icu.message(target)
    if answer is None:
        return Defect("The answer is no ICU message, as the source is.")
    expected, found = _selectors(source), _selectors(answer)
    if missing := [head for head in expected if head not in found]:
        return Defect(f"The answer lacks {listed(missing)}.")
    if added := [head for head in found if head not in expected]:
        return Defect(f"The answer has {listed(added)}, which the source has not.")
    for head, selectors in expected.items():
        if wrong := sorted(selectors ^ found[head]):
            return Defect(f"The answer and the source have other selectors: {listed(wrong)}.")
    chosen = {"other", *(each for several in expected.values() for each in several)}
    pairs = (
        _changed(icu.sentence(source, each), icu.sentence(answer, each))
        for each in islice(sorted(chosen), _MOST_SENTENCES)
    )
    return next(filter(None, pairs), None)


def _selectors(nodes: Sequence[icu.Node]) -> Mapping[str, frozenset[str]]:
    """Return the selectors by argument and kind; a plural's categories differ by language."""
    found: dict[str, frozenset[str]] = {}
    for choice in icu.choices(nodes):
        head = f"{choice.name}, {choice.kind}"
        known = _CATEGORIES if choice.kind != "select" else frozenset[str]()
        others = frozenset(each for each in choice.arms if each not in known)
        found[head] = found.get(head, frozenset()) | others
    return found
