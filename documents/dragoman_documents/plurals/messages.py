"""Plural messages with one text per category: the forms of the target language, with numbers.

Android's `plurals` and the keys of i18next hold a text per category of CLDR. Each form that the
target language has is translated from the text that the source language uses for its number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dragoman_documents.codec import Options
from dragoman_documents.plurals.rules import CATEGORIES, Form, category, message_forms, restored

_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PluralText:
    """A form of the target language and its source, with a number in place of the count."""

    category: str
    source: str
    """Category of the text that it is translated from."""
    text: str
    number: int | None = None
    placeholder: str | None = None
    number_optional: bool = False

    def put_back(self, text: str) -> str | None:
        """Return a translation with the placeholder; None if the number is not there once."""
        if self.number is None or self.placeholder is None:
            return text
        return restored(text, self.number, self.placeholder, optional=self.number_optional)

    def numbered(self, text: str) -> str:
        """Return a translation that a document holds, with the number in place of the count."""
        if self.number is None or self.placeholder is None:
            return text
        found = text.replace(self.placeholder, str(self.number))
        return found if self.put_back(found) == text else text


MORE_FORMS: Final = "its plural forms are the source's; add the language's other forms"
_MANY: Final = frozenset({"one", "other"})


def needs_more_forms(options: Options) -> bool:
    """Return whether the target language has other forms than for one and for many."""
    return not _target(options, ordinal=False) <= _MANY


def is_known(
    categories: Collection[str],
    options: Options,
    *,
    ordinal: bool = False,
    kept: frozenset[str] = _NONE,
) -> bool:
    """Return whether these can be the forms of a message of the source or the target language.

    `kept`: categories that a format has for every language.
    """
    found = set(categories)
    if "other" not in found or len(found) < len(categories) or not found <= set(CATEGORIES):
        return False
    source = {each.category for each in message_forms(options.source_lang or "en", ordinal=ordinal)}
    return found <= source | kept or found - kept == _target(options, ordinal) - kept


def plural_texts(
    sources: Mapping[str, str],
    placeholder: re.Pattern[str],
    options: Options,
    *,
    ordinal: bool = False,
    kept: frozenset[str] = _NONE,
) -> tuple[PluralText, ...]:
    """Return the forms of the target language, in the order of `CATEGORIES`.

    `sources` are texts by category, `other` among them, which `is_known` accepts. `placeholder`
    matches what may hold the count. If one form has no room for a number, none gets one.
    """
    own = _forms(sources, options, ordinal=ordinal, kept=kept)
    mark = _mark(sources, placeholder)
    picked = [(form, _picked(form, sources, options, own, ordinal, mark)) for form in own]
    found = [_numbered(form, name, sources[name], mark) for form, name in picked]
    if all(each is not None for each in found):
        return tuple(each for each in found if each is not None)
    return tuple(PluralText(form.category, name, sources[name]) for form, name in picked)


def _target(options: Options, ordinal: bool) -> set[str]:
    return {each.category for each in message_forms(options.target_lang, ordinal=ordinal)}


def _forms(
    sources: Mapping[str, str], options: Options, *, ordinal: bool, kept: frozenset[str]
) -> Sequence[Form]:
    own = message_forms(options.target_lang, ordinal=ordinal)
    named = {each.category for each in own}
    more = [Form(name, (0,)) for name in kept & set(sources) - named]
    return sorted((*own, *more), key=lambda form: CATEGORIES.index(form.category))


def _mark(sources: Mapping[str, str], placeholder: re.Pattern[str]) -> str | None:
    """Return the count as it is spelled; None if it is in doubt or not in the general form."""
    found = {match[0] for text in sources.values() for match in placeholder.finditer(text)}
    mark = found.pop() if len(found) == 1 else None
    once = mark is not None and all(text.count(mark) <= 1 for text in sources.values())
    return mark if once and mark is not None and mark in sources["other"] else None


def _picked(  # noqa: PLR0917
    form: Form,
    sources: Mapping[str, str],
    options: Options,
    own: Sequence[Form],
    ordinal: bool,
    mark: str | None,
) -> str:
    """Return the category of the text that a form is translated from.

    In a file that has the forms of the target language each has its own. A text without the count
    serves for a form of one number alone.
    """
    if set(sources) == {each.category for each in own} or form.numbers == (0,):
        name = form.category
    else:
        number = form.numbers[0] if mark is not None else form.smallest
        name = category(options.source_lang, number, ordinal=ordinal)
    text = sources.get(name)
    lacks = text is not None and mark is not None and mark not in text
    return "other" if text is None or (lacks and len(form.numbers) > 1) else name


def _numbered(form: Form, name: str, text: str, mark: str | None) -> PluralText | None:
    if mark is None or mark not in text:
        return PluralText(form.category, name, text)
    number = form.number_for(text.replace(mark, " "))
    if number is None:
        return None
    found = text.replace(mark, str(number))
    if restored(found, number, mark) != text:
        return None
    return PluralText(form.category, name, found, number, mark, form.is_one)


def same_numbers(forms: Sequence[PluralText], held: Mapping[str, str]) -> Iterator[PluralText]:
    """Yield forms with the texts of an output, and with the numbers that they had in its source."""
    for form in forms:
        text = form.numbered(held[form.category])
        yield replace(form, source=form.category, text=text)
