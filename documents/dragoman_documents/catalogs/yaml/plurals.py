"""Plural messages of Rails and others in YAML: a mapping of `one` and `other` to texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.catalogs.yaml.scanning import PluralKey, Scalar, spelled
from dragoman_documents.codec import DocumentError, Options, Segment
from dragoman_documents.inline_codes import of_text, rendered
from dragoman_documents.plurals.messages import (
    PluralText,
    is_known,
    plural_texts,
    same_numbers,
)
from dragoman_documents.values import is_text, place_of

_COUNT: Final = re.compile(
    r"%\{(?:count|number)\}|%<count>d|__count__|\{\{\s{0,9}count\s{0,9}\}\}|\{count\}"
)
_COLON: Final = re.compile(r":[ \t]+")
_GAP: Final = re.compile(r"[ \t]*(?:(?:\r\n|\r|\n)[ \t\r\n]*|,[ \t]*)")
_LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")
_KEPT: Final = frozenset({"zero"})
"""Categories that Rails has for every language: `zero` is taken for 0 wherever it is."""


@dataclass(frozen=True, slots=True)
class PluralMap:
    """The members of a mapping that is one message, and the forms of the target language."""

    members: tuple[Scalar, ...]
    forms: tuple[PluralText, ...]
    quote: str
    """Around the keys."""
    colon: str
    gap: str
    """What stands between two members."""

    @property
    def start(self) -> int:
        """Return where the first key begins."""
        return _member(self.members[0]).start

    @property
    def end(self) -> int:
        """Return the end of the last value."""
        return self.members[-1].end

    @property
    def fixed(self) -> str:
        """Return what of the keys no translation changes."""
        return f"{self.quote}\0{self.colon.strip()}"

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return a segment per form of the target language."""
        place = place_of(self.members[0].path[:-1]) or f"line {self.members[0].line}"
        return tuple(_segment(form, place) for form in self.forms)

    def content(self, text: str, texts: Sequence[str | None]) -> str | None:
        """Return the members with translations; None if none is given.

        The keys that are there stay in place if they are those of the target language.
        """
        if all(each is None or not each.strip() for each in texts):
            return None
        sources = {_category(each): each for each in self.members}
        values = {
            form.category: _spelled(form, given, sources[form.source])
            for form, given in zip(self.forms, texts, strict=True)
        }
        if set(values) == set(sources):
            return self._in_place(text, values)
        return self.gap.join(
            f"{self.quote}{name}{self.quote}{self.colon}{value}" for name, value in values.items()
        )

    def _in_place(self, text: str, values: Mapping[str, str]) -> str:
        parts, end = list[str](), self.start
        for each in self.members:
            parts += (text[end : each.start], values[_category(each)])
            end = each.end
        return "".join(parts)

    def read_again(self, members: Sequence[Scalar]) -> PluralMap:
        """Return the message of an output with the numbers of this one.

        Raises DocumentError if these members are not those of its source or of its translation.
        """
        held = {_category(each): each.text for each in members}
        names = [form.category for form in self.forms]
        if [(_category(each), each.text) for each in self.members] == list(held.items()):
            forms = self.forms
        elif set(held) == set(names) and len(members) == len(names):
            forms = tuple(same_numbers(self.forms, held))
        else:
            where = place_of(self.members[0].path[:-1])
            raise DocumentError("corrupt", f"the output has other forms of {where!r}")
        return PluralMap(tuple(members), forms, self.quote, self.colon, self.gap)


def _member(scalar: Scalar) -> PluralKey:
    if scalar.member is None:
        raise DocumentError("corrupt", f"line {scalar.line} is not a form of a plural message")
    return scalar.member


def _category(scalar: Scalar) -> str:
    return scalar.path[-1]


def _segment(form: PluralText, place: str) -> Segment:
    text, codes = of_text(form.text)
    return Segment(
        text, place, "plural", codes, plural=form.category, number=form.number,
        number_optional=form.number_optional,
    )  # fmt: skip


def _spelled(form: PluralText, given: str | None, source: Scalar) -> str:
    """Return the value of a form; its source where it has no translation."""
    found = None if given is None or not given.strip() else form.put_back(given)
    if found is None:
        return spelled(source, source.text)
    value = rendered(found, of_text(form.text)[1], str)
    return spelled(source, _LINE_BREAK.sub("\n", value).strip())


def runs(found: Sequence[Scalar], plurals: Collection[int]) -> Iterator[tuple[int, list[Scalar]]]:
    """Yield the index and the members of each mapping of plurals, and other values one by one."""
    index = 0
    while index < len(found):
        members = run_at(found, index, plurals)
        yield index, members
        index += len(members)


def is_mapping(members: Sequence[Scalar], plurals: Collection[int]) -> bool:
    """Return whether a run is a mapping of plurals."""
    first = members[0].member
    return first is not None and first.mapping in plurals


def run_at(found: Sequence[Scalar], index: int, plurals: Collection[int]) -> list[Scalar]:
    """Return the members of the mapping of plurals at an index; one value if it has none."""
    first = found[index].member
    end = index + 1
    if first is None or first.mapping not in plurals:
        return [found[index]]
    while end < len(found) and (other := found[end].member) and other.mapping == first.mapping:
        end += 1
    return list(found[index:end])


def has_count(members: Sequence[Scalar]) -> bool:
    """Return whether the members of a mapping are texts that count, whatever their forms are."""
    return any(_COUNT.search(each.text) for each in members)


def plural_map(members: Sequence[Scalar], text: str, options: Options) -> PluralMap | None:
    """Return the message of a mapping; None if it is none, or not of the source.

    Names of things have no count: `one: User`, `other: Users`. `other` alone must have one.
    """
    held = {_category(each): each.text for each in members}
    if len(held) < len(members) or not is_known(list(held), options, kept=_KEPT):
        return None
    if not all(map(is_text, held.values())):
        return None
    if "one" not in held and not _COUNT.search(held["other"]):
        return None
    keys = [_member(each) for each in members]
    quotes = {
        _quote(text[key.start : key.end], each) for key, each in zip(keys, members, strict=True)
    }
    colons = {text[key.end : each.start] for key, each in zip(keys, members, strict=True)}
    quote, gap = quotes.pop(), _gap(members, keys, text)
    if quotes or quote is None or gap is None or not all(map(_COLON.fullmatch, colons)):
        return None
    forms = plural_texts(held, _COUNT, options, kept=_KEPT)
    return PluralMap(tuple(members), forms, quote, min(colons), gap)


def _quote(key: str, scalar: Scalar) -> str | None:
    """Return the quote around a key, perhaps none; None for a key that is spelled otherwise."""
    quote = key[0] if key[0] in "'\"" else ""
    return quote if key == f"{quote}{_category(scalar)}{quote}" else None


def _gap(members: Sequence[Scalar], keys: Sequence[PluralKey], text: str) -> str | None:
    """Return what stands between the members, or what would; None for comments and the like."""
    gaps = [text[before.end : key.start] for before, key in zip(members, keys[1:], strict=False)]
    if gaps:
        return gaps[0] if all(map(_GAP.fullmatch, gaps)) else None
    if keys[0].flow:
        return ", "
    line = text[max(text.rfind("\n", 0, keys[0].start), text.rfind("\r", 0, keys[0].start)) + 1 :]
    before = line[: len(line) - len(text) + keys[0].start]
    newline = "\r\n" if "\r\n" in text else "\n"
    return newline + " " * len(before) if not before.strip(" -") else None
