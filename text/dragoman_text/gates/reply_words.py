"""What assistants say around a translation or instead of it, as stems of many languages.

`reply_words.tsv` has a row per language and a column per meaning. Of a word its beginning is
enough: `translat` is also in "translation". `*x` stands anywhere in a word, `x.` is a whole word,
and `~x` counts in sources only: a source with "not" may be translated by "cannot". Scripts that
write prefixes or no blanks are searched without regard to words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

from dragoman_text.gates import languages

_SAME: Final = {"bs": "hr", "sh": "hr", "nn": "nb", "wuu": "zh", "lzh": "zh", "pcm": "en"}
_UNSPACED: Final = frozenset({"zh", "yue", "ja", "ko", "th", "lo", "km", "my"})
_SPACED_LETTER: Final = re.compile("[a-z\u00c0-\u058f\u10a0-\u10ff\u1e00-\u1fff]")


class _Stems(NamedTuple):
    """The stems of a language as one pattern, and the meanings of each text that it matches."""

    pattern: re.Pattern[str]
    meanings_of: Mapping[str, tuple[str, ...]]
    """Its own meaning, then those of shorter stems: `translator` has that of `translat` too."""


def normal(text: str) -> str:
    """Return the text as the stems are written."""
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'")


def said(text: str, tag: str) -> Counter[str]:
    """Return how many different stems of each meaning the normal text has.

    In the language of the tag and in English, in which models reply whatever they are asked for.
    """
    stems = _stems(row(tag), of_source=False)
    return Counter(meanings[0] for meanings in _found(stems, text))


@lru_cache(maxsize=8)
def said_by_source(text: str, tag: str | None, *, broadly: bool) -> Counter[str]:
    """Return the same of a source; in any language if its own is not known.

    `broadly`: also with the words that only sources have.
    """
    found, rows = normal(text), _table()
    read = (row(tag),) if tag is not None and row(tag) in rows else tuple(rows)
    return Counter(
        meaning
        for each in read
        for meanings in _found(_stems(each, of_source=broadly), found)
        for meaning in meanings
    )


def _found(stems: _Stems, text: str) -> Iterator[tuple[str, ...]]:
    """Yield the meanings of each different text that the stems match."""
    for each in set(stems.pattern.findall(text)):
        yield stems.meanings_of[_blanks(each)]


@lru_cache(maxsize=4096)
def row(tag: str) -> str:
    """Return the language whose stems serve for the tag."""
    language = languages.base(tag)
    return _SAME.get(language, language)


@cache
def _table() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    lines = files("dragoman_text.gates").joinpath("reply_words.tsv").read_text("utf-8").splitlines()
    _language, *columns = lines[0].split("\t")
    table: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in lines[1:]:
        language, *cells = line.split("\t")
        table[language] = {
            name: tuple(cell.split(", ")) for name, cell in zip(columns, cells, strict=True)
        }
    return table


@cache
def _stems(language: str, of_source: bool) -> _Stems:
    """Return the stems of a language and of English, as answers or as sources have them."""
    beginnings: set[str] = set()
    anywhere: set[str] = set()
    meaning_of: dict[str, str] = {}
    for meaning, stem in _written(language, of_source):
        written = stem.replace("~", "").removeprefix("*")
        free = "*" in stem or not _SPACED_LETTER.match(written)
        (anywhere if free else beginnings).add(_bounded(written))
        meaning_of.setdefault(_core(written), meaning)
    letter = "[a-z]" if language in _UNSPACED else r"\w"
    patterns = [f"(?<!{letter}){_alternatives(beginnings, letter)}"]
    if anywhere:
        patterns.append(_alternatives(anywhere, letter))
    shorter = beginnings | anywhere
    meanings = {each: _meanings(each, meaning_of, shorter) for each in meaning_of}
    return _Stems(re.compile("|".join(patterns)), meanings)


def _meanings(
    stem: str, meaning_of: Mapping[str, str], shorter: Collection[str]
) -> tuple[str, ...]:
    beginnings = (stem[:length] for length in range(len(stem) - 1, 0, -1))
    found = (meaning_of[each] for each in beginnings if each in shorter)
    return tuple(dict.fromkeys((meaning_of[stem], *found)))


def _written(language: str, of_source: bool) -> Iterator[tuple[str, str]]:
    for each in dict.fromkeys((language, "en")):
        for meaning, stems in _table().get(each, {}).items():
            for stem in stems:
                if of_source or "~" not in stem:
                    yield meaning, stem


_END: Final = "\0"
"""Stands for the end of a word."""


def _bounded(written: str) -> str:
    core = _core(written)
    return core if core == written else f"{core}{_END}"


def _core(written: str) -> str:
    return written.removesuffix(".") if len(written) > 1 else written


def _blanks(matched: str) -> str:
    return matched if matched.isalpha() else re.sub(r"\s", " ", matched)


def _alternatives(words: Iterable[str], letter: str) -> str:
    """Return a pattern of the words that branches by letter, so that most texts fail at once."""
    by_letter: dict[str, list[str]] = {}
    ends = False
    for word in words:
        if word:
            by_letter.setdefault(word[0], []).append(word[1:])
        else:
            ends = True
    branches = [
        f"(?!{letter})" if first == _END else f"{_letter(first)}{_alternatives(rest, letter)}"
        for first, rest in sorted(by_letter.items(), reverse=True)
    ]
    if not branches:
        return ""
    joined = branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
    return f"(?:{joined})?" if ends else joined


def _letter(letter: str) -> str:
    return r"\s" if letter == " " else re.escape(letter)
