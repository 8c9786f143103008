"""Columns of a table: which hold sources, and which their translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman_documents.codec import DocumentError, Options
from dragoman_documents.tables.languages import header, is_near, is_same, named_like
from dragoman_documents.tables.scanning import Row, by_column
from dragoman_documents.values import is_text

_LETTER: Final = re.compile(r"[^\W\d_]")
_WORDS: Final = re.compile(r"[^\W\d_]\s+[^\W\d_]")
LONGEST_NAME: Final = 64
_USUAL: Final = "en"
"""The source language of a table if none is given."""


class Column(NamedTuple):
    """A column to translate, and the one for its translations: behind the table if it is new."""

    source: int
    name: str
    target: int
    header: str
    """Of a new column."""


@dataclass(slots=True)
class _Group:
    """Columns that hold the same in several languages."""

    base: str
    members: dict[int, str]
    """The language of each column."""
    plain: int | None = None
    """A column without a language that holds it, too: `title` beside `title_de`."""
    source: int | None = None
    target: int | None = None


def has_header(found: Sequence[Row], options: Options) -> bool:
    """Return whether the first row is a header: names of their own, and rows follow it."""
    if not found:
        return False
    known = names_of(found)
    ids = (name for name in options.ids if not name.isdecimal())  # a number is no name as a rule
    if any(name in known for name in (*options.columns, *ids)):
        return True
    named = known[1:] if _is_corner(found, known, options) else known
    words = all(name and len(name) <= LONGEST_NAME and is_named(name) for name in named)
    return len(found) > 1 and words and len(set(named)) == len(named)


def _is_corner(found: Sequence[Row], names: Sequence[str], options: Options) -> bool:
    """Return whether the first cell is the empty corner above numbers or keys."""
    is_empty = len(names) > 1 and not names[0]
    below = found[1].values[0].strip() if len(found) > 1 else ""
    return is_empty and (bool(_groups(names, options)) or (below != "" and not is_text(below)))


def is_named(name: str) -> bool:
    """Return whether a cell can be the name of a column: it has a letter, and is no sentence."""
    return any(map(str.isalpha, name)) and name[-1] not in ".!?"


def names_of(found: Sequence[Row]) -> list[str]:
    """Return the cells of the first row, each in one line."""
    return [" ".join(value.split()) for value in found[0].values] if found else []


def columns(
    found: Sequence[Row], width: int, options: Options, *, headed: bool
) -> Iterator[Column]:
    """Yield the columns to translate. Raises DocumentError for one that does not exist."""
    names = names_of(found) if headed else []
    return columns_of(names, _values(found[1:] if headed else found, width), width, options)


def columns_of(
    names: Sequence[str],
    values: Callable[[], list[list[str]]],
    width: int,
    options: Options,
    chosen: Sequence[int] | None = None,
) -> Iterator[Column]:
    """Yield the columns to translate: those `chosen`, or those that the options name.

    `values` returns the cells of each column. Raises DocumentError for a column that does not
    exist.
    """
    groups = _settled(_groups(names, options), values, options)
    sources = _sources(names, width, options, groups, values) if chosen is None else chosen
    behind = width
    for source in sources:
        name = names[source] if source < len(names) else str(source + 1)
        group = next((each for each in groups if _owner(each, sources) == source), None)
        target = source if options.in_place else _target(names, source, group, options)
        is_new = target is None or (target in sources and not options.in_place)
        yield Column(
            source,
            name,
            behind if is_new or target is None else target,
            _new_name(names, source, group, options),
        )
        behind += is_new


def _values(body: Sequence[Row], width: int) -> Callable[[], list[list[str]]]:
    """Return what gives the cells of each column; they are gathered once, if they are needed."""
    held: list[list[list[str]]] = []

    def values() -> list[list[str]]:
        if not held:
            held.append(by_column(body, width))
        return held[0]

    return values


def _groups(names: Sequence[str], options: Options) -> list[_Group]:
    """Return the groups of columns whose names tell languages, if these are no other words."""
    found: dict[str, _Group] = {}
    for index, name in enumerate(names):
        if (held := header(name)) is not None and not _is_key(name, index, options):
            found.setdefault(held.base, _Group(held.base, {})).members[index] = held.tag
    places = {name: index for index, name in reversed(list(enumerate(names)))}
    for group in found.values():
        group.plain = places.get(group.base) if group.base else None
    return [each for each in found.values() if _is_group(each, options)]


def _is_key(name: str, index: int, options: Options) -> bool:
    """Return whether a name such as `id` is no language here."""
    if name.casefold() != "id":
        return False
    return index == 0 or not any(
        is_same("id", each) for each in (options.target_lang, options.source_lang) if each
    )


def _is_group(group: _Group, options: Options) -> bool:
    if group.plain is not None:
        return True
    wanted = (options.target_lang, options.source_lang or _USUAL)
    is_known = any(is_same(tag, each) for tag in group.members.values() for each in wanted)
    return is_known and (not group.base or len(group.members) > 1)


def _settled(
    groups: Sequence[_Group], values: Callable[[], list[list[str]]], options: Options
) -> list[_Group]:
    """Return the groups with their columns of source and target; columns of numbers are none."""
    for group in groups:
        cells = values()
        filled = {index: any(cells[index]) for index in group.members}
        texts = {index for index in group.members if _has_text(cells[index])}
        for index in [each for each in group.members if filled[each] and each not in texts]:
            del group.members[index]
        group.target = _of_language(group, options.target_lang, is_same)
        group.source = _source_of(group, texts, cells, options)
    return [each for each in groups if each.members]


def _of_language(group: _Group, tag: str, fits: Callable[[str, str], bool]) -> int | None:
    """Return the column of a language: the one spelled like its tag, or the first that fits."""
    members = [(index, each) for index, each in group.members.items() if fits(each, tag)]
    exact = [index for index, each in members if each.replace("_", "-") == tag]
    return next(iter([*exact, *(index for index, _ in members)]), None)


def _source_of(
    group: _Group, texts: Collection[int], cells: Sequence[Sequence[str]], options: Options
) -> int | None:
    """Return the column that is translated, None if the group has none.

    Raises DocumentError if its texts are in other languages than the source's.
    """
    wanted = options.source_lang or _USUAL
    for fits in (is_same, is_near):
        found = _of_language(group, wanted, fits)
        if found in texts and found != group.target:
            return found
    plain = group.plain
    if not group.base and 0 not in group.members and any(map(has_words, cells[0])):
        plain = 0  # the texts are the keys
    others = [index for index in texts if index != group.target]
    if plain is not None or not others:
        return plain
    if options.source_lang and not options.columns:
        known = ", ".join(sorted(group.members[index] for index in others))
        detail = f"its columns are of the languages {known}, none of {wanted}; name one by --column"
        raise DocumentError("wrong_type", detail)
    return min(others)


def has_words(value: str) -> bool:
    """Return whether a cell has words with a blank between them, so that it may be no mere key."""
    return _WORDS.search(value) is not None


def _sources(
    names: Sequence[str],
    width: int,
    options: Options,
    groups: Sequence[_Group],
    values: Callable[[], list[list[str]]],
) -> list[int]:
    if options.columns:
        named = (source_of(each, names, width) for each in options.columns)
        return list(dict.fromkeys(each for each in named if each is not None))
    filled = [index for index, cells in enumerate(values()) if _has_text(cells)]
    if any(not group.base and group.source is not None for group in groups):
        plain = set[int]()  # keys and notes
    else:
        plain = set(filled) - {index for group in groups for index in group.members}
        plain -= {group.plain for group in groups}
    chosen = plain | {group.source for group in groups}
    return [index for index in filled if index in chosen]


def _has_text(values: Sequence[str]) -> bool:
    """Return whether a column has text in a cell. One search rules out most columns of numbers."""
    return _LETTER.search(" ".join(values)) is not None and any(map(is_text, values))


def source_of(column: str, names: Sequence[str], width: int) -> int | None:
    """Return a column by its name, or by its number from 1; None if there is none.

    Raises DocumentError for a name that several columns have.
    """
    if (count := names.count(column)) > 1:
        what = f"{count} of its columns are named {column}; rename one of them"
        raise DocumentError("wrong_type", what)
    if count:
        return names.index(column)
    return int(column) - 1 if column.isdecimal() and 0 < int(column) <= width else None


def _owner(group: _Group, sources: Sequence[int]) -> int | None:
    """Return the column whose translations are in a group; None if it is none, or in doubt."""
    members = [each for each in sources if each in group.members]
    if members:
        return members[0] if len(members) == 1 else None
    alone = not group.base and group.source is None and len(sources) == 1
    return sources[0] if alone else group.source


def _target(
    names: Sequence[str], source: int, group: _Group | None, options: Options
) -> int | None:
    """Return the column that the table has for translations of another one."""
    own = f"{names[source]}.{options.target_lang}" if source < len(names) else ""
    if own in names:
        return names.index(own)
    return group.target if group else None


def _new_name(names: Sequence[str], source: int, group: _Group | None, options: Options) -> str:
    """Return the name of a new column: `title.de`, or in the manner of others `de`, `title_de`."""
    name = names[source] if source < len(names) else ""
    if group is not None:
        like = source if source in group.members else min(group.members)
        found = named_like(names[like], options.target_lang)
        if found not in names:
            return found
    return f"{name}.{options.target_lang}"
