"""Plural forms of languages, and the numbers that stand for the count while they are translated.

A message such as `%d files` is translated once per form of the target language, with a number of
that form in the text: `22 files`, `25 files`. Afterwards the placeholder takes the number's place.
The rules are those of Babel: CLDR for categories, gettext's traditional formulas for PO files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from gettext import c2py
from itertools import groupby
from typing import Final

from babel.core import Locale, UnknownLocaleError
from babel.messages.plurals import DEFAULT_PLURAL, PLURALS

from dragoman_documents.codec import Segment
from dragoman_documents.inline_codes import fits, plain

CATEGORIES: Final = ("zero", "one", "two", "few", "many", "other")
"""The categories of CLDR, in the order in which formats list them."""
_HIGHEST: Final = 200
"""Numbers that are tried: each form of each language that has small numbers has one below it."""
_PREFERRED: Final = 21
"""Numbers from here on are taken before smaller ones, because a translation keeps their digits.

The specification asks for the smallest number of a form. Measured with the demonstration model,
each of the six translations of "I saw 1 bird." and "I saw 2 birds." into German, French and Spanish
had the number as a word ("Ich sah zwei Vögel."), so that no placeholder could be put back.
"""
_CHOICES: Final = 8
"""Numbers kept per form, of those from 21 on and of smaller ones: a text with one gets the next."""
_RULE: Final = re.compile(r"\s*nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]{1,1000});?\s*")
_RUN: Final = re.compile(r"(?<![A-Za-z_%{$#\d])(?<!\d[.,])(\d{1,18})(?![\d$}]|[.,]\d)")
"""A number of its own: not of a tag, a placeholder, a decimal or a word."""


@dataclass(frozen=True, slots=True)
class Form:
    """One plural form: its CLDR category and numbers: those from 21 on, smaller ones, zero."""

    category: str
    numbers: tuple[int, ...]

    @property
    def is_one(self) -> bool:
        """Whether it is the form of 1 and no other number: only it may lack its number."""
        return self.numbers == (1,)

    @property
    def smallest(self) -> int:
        """Return the smallest number above zero; zero if there is none."""
        return min((each for each in self.numbers if each), default=0)

    def number_for(self, *texts: str) -> int | None:
        """Return the first number of the form that is in none of the texts, if there is one."""
        taken = {int(match[1]) for text in texts for match in _RUN.finditer(text)}
        return next((each for each in self.numbers if each not in taken), None)


@dataclass(frozen=True, slots=True)
class GettextRule:
    """The value of `Plural-Forms` in the header of a PO file."""

    count: int
    formula: str

    def __str__(self) -> str:
        return f"nplurals={self.count}; plural={self.formula};"


def forms(lang: str, *, ordinal: bool = False) -> tuple[Form, ...]:
    """Return the forms of a language for whole numbers, in the order of `CATEGORIES`.

    `ordinal`: those of "1st, 2nd" instead of "1 file, 2 files".

    Forms without a number up to 200 (Spanish `many`) are left out: `other` serves for them. A
    language that Babel does not know has `one` and `other`.
    """
    return _forms(lang, ordinal)


def message_forms(lang: str, *, ordinal: bool = False) -> tuple[Form, ...]:
    """Return the forms of a language with `other`, which messages must have, as for decimals."""
    found = forms(lang, ordinal=ordinal)
    return found if found[-1].category == "other" else (*found, Form("other", found[-1].numbers))


def category(lang: str | None, number: int, *, ordinal: bool = False) -> str:
    """Return the category of a number in a language; an unknown one has `one` and `other`."""
    return _category_of(lang or "en", ordinal)(number)


@lru_cache(maxsize=64)
def _forms(lang: str, ordinal: bool) -> tuple[Form, ...]:
    rule = _category_of(lang, ordinal)
    numbers: dict[str, list[int]] = {}
    for number in (*range(1, _HIGHEST + 1), 0):
        numbers.setdefault(rule(number), []).append(number)
    found = [Form(name, _chosen(numbers[name])) for name in CATEGORIES if name in numbers]
    return tuple(found) if len(found) > 1 else (_only(),)


def _chosen(numbers: Sequence[int]) -> tuple[int, ...]:
    preferred = [each for each in numbers if each >= _PREFERRED]
    small = [each for each in numbers if each < _PREFERRED]
    return (*preferred[:_CHOICES], *small[:_CHOICES])


def _only() -> Form:
    """Return the form of a language with a single one, whose source is the plural: from 2."""
    return Form("other", _chosen(range(2, _HIGHEST + 1)))


@lru_cache(maxsize=64)
def _category_of(lang: str, ordinal: bool = False) -> Callable[[int], str]:
    try:
        locale = Locale.parse(lang, sep="-")
    except (UnknownLocaleError, ValueError):
        return lambda number: "one" if number == 1 else "other"
    return locale.ordinal_form if ordinal else locale.plural_form


@lru_cache(maxsize=64)
def gettext_rule(lang: str) -> GettextRule:
    """Return the rule for the header of a PO file, as gettext's own tools write it.

    For a language without a traditional formula, a formula of another language with the same forms.
    """
    base, _, _ = lang.partition("-")
    for name in (lang.replace("-", "_"), base):
        if name in PLURALS:
            return GettextRule(*PLURALS[name])
    wanted = _partition(_category_of(lang))
    same = (GettextRule(*each) for each in PLURALS.values())
    return next(
        (rule for rule in same if _partition(c2py(rule.formula)) == wanted),
        GettextRule(*DEFAULT_PLURAL),
    )


def _partition(rule: Callable[[int], object]) -> list[int]:
    """Return for each number the smallest number of the same form."""
    first: dict[object, int] = {}
    return [first.setdefault(rule(number), number) for number in range(_HIGHEST + 1)]


def parsed_rule(value: str) -> GettextRule | None:
    """Return the rule that a header has; None if it is missing, a placeholder, or malformed."""
    found = _RULE.fullmatch(value)
    if found is None:
        return None
    rule = GettextRule(int(found[1]), found[2].strip())
    return rule if _indices(rule) is not None else None


def fits_language(rule: GettextRule, lang: str) -> bool:
    """Return whether a rule has as many forms as the language, by tradition or by CLDR."""
    rare = 1 if _has_rare_form(lang) else 0
    cldr = len(forms(lang))
    return rule.count in {gettext_rule(lang).count, cldr, cldr + rare}


def _has_rare_form(lang: str) -> bool:
    """Return whether whole millions have a form of their own, as in Spanish and French."""
    return _category_of(lang)(1_000_000) not in {each.category for each in forms(lang)}


@lru_cache(maxsize=64)
def gettext_forms(rule: GettextRule, lang: str) -> tuple[Form, ...]:
    """Return the form of each index of a valid rule.

    An index without a number up to 200 is translated as the general form. Raises ValueError for a
    rule that `parsed_rule` would refuse.
    """
    indices = _indices(rule)
    if indices is None:
        raise ValueError(f"the plural formula {rule.formula!r} cannot be computed")
    if rule.count == 1:
        return (_only(),)
    numbers: dict[int, list[int]] = {}
    for number in (*range(1, _HIGHEST + 1), 0):
        numbers.setdefault(indices[number], []).append(number)
    named = _category_of(lang)
    known = {index: Form(named(found[0]), _chosen(found)) for index, found in numbers.items()}
    general = known[max(known, key=lambda index: len(numbers[index]))]
    return tuple(known.get(index, general) for index in range(rule.count))


@lru_cache(maxsize=64)
def _indices(rule: GettextRule) -> tuple[int, ...] | None:
    try:
        formula = c2py(rule.formula)
        found = tuple(formula(number) for number in range(_HIGHEST + 1))
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return found if rule.count and all(0 <= each < rule.count for each in found) else None


def restored(text: str, number: int, placeholder: str, *, optional: bool = False) -> str | None:
    """Return a text with the placeholder for the number; None if it is not there exactly once.

    Digits of other scripts count: an Arabic translation may write its own. `optional`: a text
    without any digit stays as it is, for a form of 1 alone: "Ich sah einen Vogel."
    """
    found = [match for match in _RUN.finditer(text) if _is(match[1], number)]
    if len(found) != 1:
        return text if optional and _is_spelled_out(text) else None
    return text[: found[0].start()] + placeholder + text[found[0].end() :]


def _is_spelled_out(text: str) -> bool:
    """Return whether a text has words and no digit, its tags aside."""
    words = plain(text)
    return any(map(str.isalpha, words)) and not any(map(str.isdigit, words))


def _is(digits: str, number: int) -> bool:
    return len(digits) == len(str(number)) and int(digits) == number


def settled(
    segments: Sequence[Segment], texts: Sequence[str | None]
) -> tuple[list[str | None], list[int]]:
    """Return texts that can be spliced, and the indices of those that hold the general form.

    A form whose number did not come back exactly once, or that has no translation while others of
    its message have one, becomes the general form of its message with its own number: `other`, or
    in PO files of Slavic languages `many`. If that cannot be used either, the form has no
    translation. Texts beside plurals stay.
    """
    result, general = list(texts), []
    for group in _messages(segments):
        general += _settle(group, segments, result)
    return result, general


def _messages(segments: Sequence[Segment]) -> Iterator[list[int]]:
    """Yield the indices of the forms of each message: neighbours with the same place."""
    plural = (index for index, each in enumerate(segments) if each.plural is not None)
    for _, group in groupby(
        enumerate(plural), key=lambda each: (each[1] - each[0], segments[each[1]].place)
    ):
        yield [index for _, index in group]


def _settle(
    group: Sequence[int], segments: Sequence[Segment], texts: list[str | None]
) -> list[int]:
    if all(texts[index] is None for index in group):
        return []
    usable = {index: _usable(segments[index], texts[index]) for index in group}
    other = max(group, key=lambda index: CATEGORIES.index(segments[index].plural or "other"))
    general, changed = usable[other], []
    for index in group:
        texts[index] = usable[index]
        if usable[index] is None and segments[index].target is None and general is not None:
            texts[index] = _renumbered(general, segments[other], segments[index])
            changed += [] if texts[index] is None else [index]
    return changed


def _usable(segment: Segment, text: str | None) -> str | None:
    if text is None or segment.number is None:
        return text
    return restored(text, segment.number, str(segment.number), optional=segment.number_optional)


def _renumbered(text: str, general: Segment, segment: Segment) -> str | None:
    if not fits(text, segment.codes):
        return None
    if general.number is None:
        return text
    if segment.number is None:  # its number would stay in the text
        return None
    return restored(text, general.number, str(segment.number))
