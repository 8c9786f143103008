"""Languages in the headers of a table: `de`, `de_DE`, `German`, `German(de)`, `title_de`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import langcodes

_CODE: Final = r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}"
_MEMBER: Final = re.compile(
    rf"(?P<base>.+?)(?P<before>[._:-]|\s*[(\[])(?P<code>{_CODE})(?P<after>[)\]]?)"
)
_LONGEST: Final = 64


class LanguageColumn(NamedTuple):
    """The name of a column with texts of one language."""

    base: str
    """What the column holds, such as `title` of `title_de`; empty if the language is all of it."""
    tag: str
    """As the column spells it."""


@lru_cache(maxsize=1024)
def header(name: str) -> LanguageColumn | None:
    """Return what the name of a column says of its language, if it names one."""
    return None if len(name) > _LONGEST else _by_code(name) or _by_name(name) or _by_part(name)


def _by_code(name: str) -> LanguageColumn | None:
    """Read `de_DE`, and `German(de)`."""
    if _is_code(name):
        return LanguageColumn("", name)
    match = _member(name)
    named = match is not None and match["after"] and _has_name(match["base"], match["code"])
    return LanguageColumn("", match["code"]) if match and named else None


def _by_name(name: str) -> LanguageColumn | None:
    """Read the name of a language, in English or its own."""
    if "\0" in name:  # the library's trie reads past the end of its names
        return None
    try:
        tag = langcodes.find(name).to_tag()
    except LookupError:
        return None
    return LanguageColumn("", tag) if _is_code(tag) and _has_name(name, tag) else None


def _by_part(name: str) -> LanguageColumn | None:
    """Read `title_de` and `Title (de)`."""
    match = _member(name)
    return LanguageColumn(match["base"].strip(), match["code"]) if match else None


def _member(name: str) -> re.Match[str] | None:
    """Return the parts of a name that ends in a code, in brackets or behind a mark."""
    match = _MEMBER.fullmatch(name)
    return match if match and _is_code(match["code"]) and _closes(match) else None


def named_like(name: str, language: str) -> str:
    """Return the name of a new column for a language, in the manner of a column of another one."""
    if _is_code(name):
        return _spelled(language, name)
    match = _member(name)
    if match is None or ((found := header(name)) and found.tag != match["code"]):
        return _shown(language)
    base = match["base"] if found and found.base else _shown(language)
    return base + match["before"] + _spelled(language, match["code"]) + match["after"]


def _shown(language: str) -> str:
    """Return the name of a language. The table of all names takes 300 MB of memory."""
    return langcodes.get(language).display_name()


def is_same(one: str, other: str) -> bool:
    """Return whether two tags mean one language: `de` and `de_DE`, but not `de` and `de-AT`."""
    return _whole(one) == _whole(other)


def is_near(one: str, other: str) -> bool:
    """Return whether two tags are of one language in one script, wherever it is spoken."""
    return _whole(one)[:2] == _whole(other)[:2]


@lru_cache(maxsize=1024)
def _whole(tag: str) -> tuple[str | None, str | None, str | None]:
    """Return language, script and territory, with what is likely where the tag does not say it."""
    found = langcodes.get(langcodes.standardize_tag(tag)).maximize()
    return found.language, found.script, found.territory


def _spelled(language: str, like: str) -> str:
    """Return a tag with the case and the mark between its parts of another one."""
    tag = language.replace("-", "_") if "_" in like else language
    return tag.upper() if like.isupper() and len(tag) <= len(like) else tag


def _is_code(name: str) -> bool:
    """Return whether a name is a tag of a language; `No`, `Is` and `key` are words."""
    if not re.fullmatch(_CODE, name) or name.istitle() or not langcodes.tag_is_valid(name):
        return False
    tag = langcodes.standardize_tag(name)
    if not langcodes.tag_is_valid(tag):  # of `zh-min-de-aa` the library makes what is no tag
        return False
    language = langcodes.get(tag).language or ""
    return len(language) == len("de") or language in _LONG


_LONG: Final = frozenset({"ast", "bho", "ceb", "ckb", "fil", "haw", "hsb", "kab", "lzh", "yue"})
"""Languages without a code of two letters whose code is no usual word of a header."""


def _has_name(name: str, tag: str) -> bool:
    """Return whether a name begins with that of a language, in English or in itself."""
    found = langcodes.get(langcodes.standardize_tag(tag))
    language = langcodes.get(found.language or "und")
    names = {each.casefold() for one in (found, language) for each in _names(one)}
    short = name.casefold()
    return short in names or short.partition(" (")[0] in names


def _names(language: langcodes.Language) -> tuple[str, str]:
    return language.display_name(), language.autonym()


def _closes(match: re.Match[str]) -> bool:
    """Return whether a bracket is closed by its own."""
    return match["after"] == {"(": ")", "[": "]"}.get(match["before"][-1:], "")
