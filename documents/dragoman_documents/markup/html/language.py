"""The language and the direction of an HTML document, in the start tag of its root."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dragoman_documents.markup.html.elements import names
from dragoman_documents.markup.html.tokens import Token, attributes, name_end
from dragoman_documents.splicing import Replacement, replaced

_RIGHT_TO_LEFT: Final = names("ar arc ckb dv fa he iw ks nqo ps sd syr ug ur yi")
_SCRIPTS: Final = names("adlm arab hebr mand nkoo rohg samr syrc thaa")
_LANGUAGE: Final = ("lang", "xml:lang")
_TEMPLATE: Final = re.compile(r"\{[{%#]|<[%?]|\$\{")
_BLANKS: Final = re.compile(r"[\t\n\f\r ]+(/?>)?")


def has_template(text: str) -> bool:
    """Return whether a template of a generator or a program is in attributes."""
    return _TEMPLATE.search(text) is not None


def direction(language: str) -> str:
    """Return `rtl` or `ltr` for a language tag: by its script, or that of the language."""
    parts = language.lower().split("-")
    script = next((part for part in parts[1:] if len(part) == 4 and part.isalpha()), None)
    right_to_left = parts[0] in _RIGHT_TO_LEFT if script is None else script in _SCRIPTS
    return "rtl" if right_to_left else "ltr"


def language_attributes(language: str, *, xml: bool) -> str:
    """Return the attributes of an element in another language, with a blank before each."""
    name = "xml:lang" if xml else "lang"
    rtl = ' dir="rtl"' if direction(language) == "rtl" else ""
    return f' {name}="{language}"{rtl}'


def tag_in(text: str, token: Token, language: str, *, xml: bool) -> str:
    """Return the start tag of the root for a document in this language.

    `lang` and `xml:lang` are set where they are; one of them is added where neither is. `dir` is
    set for languages written from right to left, and where it is. What a template decides stays.
    """
    found = {each.name: each for each in attributes(text, *token[:2])}
    wanted: dict[str, str] = {name: language for name in _LANGUAGE if name in found}
    languages = [text[found[name].start : found[name].end] for name in wanted]
    if any(map(has_template, languages or [text[slice(*token[:2])]])):
        return text[slice(*token[:2])]
    if not wanted or not (xml or "lang" in wanted):
        wanted["xml:lang" if xml else "lang"] = language
    if token[2].name == "html" and (direction(language) == "rtl" or "dir" in found):
        wanted["dir"] = direction(language)
    added = "".join(f' {name}="{value}"' for name, value in wanted.items() if name not in found)
    changed = [
        Replacement(each.start, each.end, having(text[each.start : each.end], wanted[name]))
        for name, each in found.items()
        if name in wanted
    ]
    return with_changes(text, token, changed, added)


def having(attribute: str, value: str) -> str:
    """Return an attribute with a value; one that has it, or a template, stays as it is spelled."""
    name, _, before = attribute.partition("=")
    if before.strip("\t\n\f\r \"'") == value or has_template(before):
        return attribute
    return f'{name.rstrip().lower()}="{value}"'


def without_language(text: str, token: Token) -> str:
    """Return the start tag of the root without what `tag_in` changes."""
    bare = without(text, token, (*_LANGUAGE, "dir"))
    return _BLANKS.sub(lambda match: match[1] or " ", bare)


def without(text: str, token: Token, names: Iterable[str]) -> str:
    """Return a start tag without these attributes."""
    unwanted = frozenset(names)
    found = (each for each in attributes(text, *token[:2]) if each.name in unwanted)
    return with_changes(text, token, [Replacement(each.start, each.end, "") for each in found])


def with_changes(
    text: str, token: Token, changes: Iterable[Replacement[str]], added: str = ""
) -> str:
    """Return a start tag with changes in it, and attributes added behind its name."""
    place = name_end(text, token[0])
    addition = Replacement(place, place, added)
    return replaced_within(text, token[:2], [addition, *changes])


def replaced_within(
    text: str, at: tuple[int, int], replacements: Iterable[Replacement[str]]
) -> str:
    """Return a range of a text with replacements, whose positions are those in the text."""
    moved = (Replacement(r.start - at[0], r.end - at[0], r.content) for r in replacements)
    return replaced(text[slice(*at)], moved)
