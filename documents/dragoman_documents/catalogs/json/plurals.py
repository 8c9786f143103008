"""Plural keys of i18next: `file_one`, `file_other`, in the forms of the target language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.catalogs.json.scanning import Path, String, respelled
from dragoman_documents.codec import DocumentError, InlineCode, Options, Segment
from dragoman_documents.inline_codes import of_text, rendered
from dragoman_documents.plurals.messages import (
    PluralText,
    is_known,
    plural_texts,
    same_numbers,
)
from dragoman_documents.plurals.rules import CATEGORIES
from dragoman_documents.values import is_text, place_of

_SUFFIXES: Final = tuple(f"_{each}" for each in CATEGORIES)
_ORDINAL: Final = "_ordinal"
_COUNT: Final = re.compile(r"\{\{-?\s*count\s*(?:,[^{}]{0,100})?\}\}")
_KEY: Final = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*+:')
_BETWEEN: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_BLANKS: Final = " \t\r\n"
_MOST_BLANKS: Final = 1_000
"""Characters of indentation that are looked at."""
_KEPT: Final = frozenset({"zero"})
"""Categories that i18next has for every language: `file_zero` is taken for 0 wherever it is."""


@dataclass(frozen=True, slots=True)
class PluralKeys:
    """Neighbouring keys of one message, and the forms of the target language."""

    members: tuple[String, ...]
    forms: tuple[PluralText, ...]
    spelled_key: str
    """The first key in its quotes, without its category."""
    colon: str
    gap: str
    """What stands between two members."""

    @property
    def start(self) -> int:
        """Return where the first key begins."""
        return self.members[0].key_start

    @property
    def end(self) -> int:
        """Return the end of the last value."""
        return self.members[-1].end

    @property
    def fixed(self) -> str:
        """Return what of the keys no translation changes."""
        return f"{self.spelled_key}\0{self.colon.strip()}"

    @property
    def base(self) -> str:
        """Return the name of the message."""
        return _base(self.members[0])

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return a segment per form of the target language."""
        place = place_of((*self.members[0].path[:-1], self.base))
        return tuple(_segment(form, place) for form in self.forms)

    def content(self, text: str, texts: Sequence[str | None], *, escaped: bool) -> str | None:
        """Return the members with translations; None if none is given.

        The keys that are there stay in place if they are those of the target language.
        """
        if all(each is None or not each.strip() for each in texts):
            return None
        sources = {_category(each): each for each in self.members}
        values = {
            form.category: respelled(
                _value(form, given, sources[form.source].value),
                text[sources[form.source].start : sources[form.source].end],
                escaped=escaped,
            )
            for form, given in zip(self.forms, texts, strict=True)
        }
        if set(values) == set(sources):
            return self._in_place(text, values)
        return self.gap.join(
            f'{self.spelled_key}{name}"{self.colon}{value}' for name, value in values.items()
        )

    def _in_place(self, text: str, values: dict[str, str]) -> str:
        parts, end = list[str](), self.start
        for each in self.members:
            parts += (text[end : each.start], values[_category(each)])
            end = each.end
        return "".join(parts)

    def read_again(self, members: Sequence[String]) -> PluralKeys:
        """Return the message of an output with the numbers of this one.

        Raises DocumentError if these members are not those of its source or of its translation.
        """
        held = {_category(each): each.value for each in members}
        names = [form.category for form in self.forms]
        if [(_category(each), each.value) for each in self.members] == list(held.items()):
            forms = self.forms
        elif set(held) == set(names) and len(members) == len(names):
            forms = tuple(same_numbers(self.forms, held))
        else:
            raise DocumentError("corrupt", f"the output has other forms of {self.base!r}")
        return PluralKeys(tuple(members), forms, self.spelled_key, self.colon, self.gap)


def _segment(form: PluralText, place: str) -> Segment:
    text, codes = _tagged(form)
    return Segment(
        text, place, "plural", codes, plural=form.category, number=form.number,
        number_optional=form.number_optional,
    )  # fmt: skip


def _tagged(form: PluralText) -> tuple[str, tuple[InlineCode, ...]]:
    return of_text(form.text.strip())


def _value(form: PluralText, given: str | None, source: str) -> str:
    """Return the value of a form; its source where it has no translation."""
    found = None if given is None or not given.strip() else form.put_back(given)
    if found is None:
        return source
    lead, _, trail = form.text.partition(form.text.strip())
    return lead + rendered(found, _tagged(form)[1], str).strip() + trail


def _category(string: String) -> str:
    return str(string.path[-1]).rpartition("_")[2]


def _base(string: String) -> str:
    return str(string.path[-1]).rpartition("_")[0]


def _is_form(string: String) -> bool:
    """Return whether a string has a key that ends like a plural form."""
    return string.key_start >= 0 and str(string.path[-1]).endswith(_SUFFIXES)


def _message(string: String) -> tuple[Path, str]:
    """Return the object and the name of the message that a form belongs to."""
    return string.path[:-1], _base(string)


def sizes(found: Sequence[String], text: str) -> Mapping[tuple[Path, str], int]:
    """Return how many forms each message has, neighbours or not; more if one is no string."""
    forms = [each for each in found if _is_form(each)]
    count = Counter(map(_message, forms))
    if not forms:
        return count
    strings = Counter(_stem(text[each.key_start : each.key_end]) for each in forms)
    keys = Counter(_stem(key) for key in _KEY.findall(text) if key[:-1].endswith(_SUFFIXES))
    for each in forms:
        stem = _stem(text[each.key_start : each.key_end])
        count[_message(each)] += keys[stem] - strings[stem]
    return count


def _stem(spelled_key: str) -> str:
    """Return a key as it is spelled, without its category."""
    return spelled_key.rpartition("_")[0]


def run_at(found: Sequence[String], index: int, text: str) -> list[String]:
    """Return the neighbouring forms of one message from an index on; empty if it has none."""
    if index >= len(found) or not _is_form(found[index]):
        return []
    run = [found[index]]
    for place in range(index + 1, len(found)):
        each = found[place]
        if not _is_form(each) or _message(each) != _message(run[0]):
            break
        if not _BETWEEN.fullmatch(text, run[-1].end, each.key_start):
            break
        run.append(each)
    return run


def old_plurals(found: Sequence[String]) -> Iterator[String]:
    """Yield the plural forms of messages with two: `item` and `item_plural`."""
    keys = {each.path for each in found}
    for each in found:
        name = str(each.path[-1]) if each.path else ""
        base = name.removesuffix("_plural")
        if base != name and (*each.path[:-1], base) in keys and is_text(each.value):
            yield each


def has_count(run: Sequence[String]) -> bool:
    """Return whether a member has the count, as messages of i18next do."""
    return any(_COUNT.search(each.value) for each in run)


def plural_keys(
    run: Sequence[String],
    text: str,
    options: Options,
    known: Mapping[tuple[Path, str], int],
) -> PluralKeys | None:
    """Return the message of neighbouring members; None if it is none, or not of the source.

    None too if it has more forms elsewhere in its object by `known`, the result of `sizes`.

    The general form must have the count, or any two keys with such endings would be a message.
    """
    held = {_category(each): each.value for each in run}
    ordinal = _base(run[0]).endswith(_ORDINAL)
    if known[_message(run[0])] > len(run):
        return None
    if "other" not in held or not _COUNT.search(held["other"]):
        return None
    if not is_known([_category(each) for each in run], options, ordinal=ordinal, kept=_KEPT):
        return None
    if not all(map(is_text, held.values())):
        return None
    keys = {text[each.key_start : each.key_end].removesuffix(f'{_category(each)}"') for each in run}
    colons = {text[each.key_end : each.start] for each in run}
    spelled_key = keys.pop()
    if keys or not spelled_key.endswith("_") or any(each.strip() != ":" for each in colons):
        return None
    forms = plural_texts(held, _COUNT, options, ordinal=ordinal, kept=_KEPT)
    return PluralKeys(tuple(run), forms, spelled_key, min(colons), _gap(run, text))


def _gap(run: Sequence[String], text: str) -> str:
    """Return what stands between the first two members, or what would."""
    if len(run) > 1:
        return text[run[0].end : run[1].key_start]
    start = run[0].key_start
    before = text[max(0, start - _MOST_BLANKS) : start]
    return "," + before[len(before.rstrip(_BLANKS)) :]
