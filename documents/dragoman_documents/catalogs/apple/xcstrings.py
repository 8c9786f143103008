"""Apple's string catalogs (`.xcstrings`): keys with a localization per language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman_documents.catalogs.apple.places import AppleValue, Style, place_of
from dragoman_documents.catalogs.json.codec import reference
from dragoman_documents.catalogs.json.tree import Node, tree
from dragoman_documents.codec import (
    Codec,
    DocumentError,
    Extraction,
    InlineCode,
    Options,
    Remark,
    Segment,
    State,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded
from dragoman_documents.inline_codes import fits, of_text, rendered
from dragoman_documents.plurals.messages import PluralText, is_known, plural_texts
from dragoman_documents.splicing import Replacement, replaced, skeleton
from dragoman_documents.values import place_of as shortened
from dragoman_text.spans import is_translatable

COUNT: Final = re.compile(r"%(?:[0-9]{1,2}\$)?(?:ll|l|q|z|h)?[diu]")
KEPT: Final = frozenset({"zero"})
"""Categories that Apple has in every language."""
_UNIT: Final = "stringUnit"
_STATES: Final[Mapping[str | None, State]] = {"translated": "done", "needs_review": "draft"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A key of the catalog, its forms (one without a category if it has no plural), its place."""

    forms: tuple[PluralText, ...]
    segments: tuple[Segment, ...]
    place: AppleValue
    is_plural: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    style: Style
    entries: Sequence[_Entry]


@dataclass(frozen=True, slots=True)
class XcStrings:
    """String catalogs; the translations that they hold are targets."""

    name: str = "xcstrings"
    suffixes: frozenset[str] = frozenset({".xcstrings"})
    by_language: bool = True
    has_targets: bool = True
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return a segment per key, per plural form of the language. Raises DocumentError."""
        file = decoded(data, recognise=False)
        root = tree(file.text)
        language, strings = root.at("sourceLanguage"), root.at("strings")
        if language is None or language.text is None or strings is None or not strings.is_object:
            detail = "it is JSON, but no string catalog: it lacks sourceLanguage or strings"
            raise DocumentError("wrong_type", detail)
        remarks: list[Remark] = []
        entries: list[_Entry] = []
        if language.text == options.target_lang:
            detail = f"its source language is {language.text} itself"
            remarks.append(Remark("file", detail, "language"))
        else:
            entries = list(_entries(strings, language.text, options, remarks))
        return Extraction(
            tuple(segment for each in entries for segment in each.segments),
            skeleton(file.text, ((each.place.start, each.place.end) for each in entries)),
            file.encoding,
            tuple(remarks),
            _Layout(file, Style.of(file.text), entries),
        )

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the catalog with translations; what has none stays as it is."""
        layout = layout_of(extraction, _Layout)
        changes: list[Replacement[str]] = []
        first = 0
        for each in layout.entries:
            last = first + len(each.segments)
            found = _localization(each, texts[first:last], _drafts(options, first, last))
            if found is not None:
                content = each.place.content(layout.style, found)
                changes.append(Replacement(each.place.start, each.place.end, content))
            first = last
        if not changes:
            return data
        return layout.file.encoded(replaced(layout.file.text, changes), reference)


def _drafts(options: Options, first: int, last: int) -> list[bool]:
    return [index in options.drafts for index in range(first, last)]


def _entries(
    strings: Node, source: str, options: Options, remarks: list[Remark]
) -> Iterator[_Entry]:
    """Yield the keys that can be translated; remark those that cannot."""
    for key, member in strings.members.items():
        entry, name = member.value, shortened((key,))
        around = (entry, entry.at("localizations"), entry.at("localizations", source))
        if not all(each.is_object for each in around if each is not None):
            remarks.append(Remark(name, _NO_ENTRY, "message"))
            continue
        wanted = entry.at("shouldTranslate")
        if (wanted and wanted.is_false) or _text(entry.at("extractionState")) == "stale":
            continue
        texts = _sources(entry.at("localizations", source), key)
        target = entry.at("localizations", options.target_lang)
        if texts is None or (target is not None and _held(target) is None):
            remarks.append(Remark(name, _VARIES, "message"))
        elif None in texts or is_known([each or "" for each in texts], options, kept=KEPT):
            found = _entry(name, entry, texts, target, options)
            if found is not None:
                yield found
        else:
            detail = f"its plural forms differ from {source}'s: left unchanged"
            remarks.append(Remark(name, detail, "message"))


_NO_ENTRY: Final = "not an entry as Xcode writes it, an object is missing: left unchanged"
_VARIES: Final = "it varies by device or has substitutions: left unchanged"
_Texts = Mapping[str | None, str]
"""Texts by plural category, or one by None."""


def _sources(localization: Node | None, key: str) -> _Texts | None:
    """Return the texts of a key: itself where the source has no localization."""
    if localization is None:
        return {None: key}
    held = _held(localization)
    if held is None:
        return None
    return {name: text for name, (_, text) in held.items()} or {None: key}


def _held(localization: Node) -> Mapping[str | None, tuple[str | None, str]] | None:
    """Return states and texts of a localization; None if it varies by more than plurals."""
    names = set(localization.members)
    variations = localization.at("variations")
    if names - {_UNIT, "variations"} or (variations and set(variations.members) - {"plural"}):
        return None
    plural = localization.at("variations", "plural")
    units: dict[str | None, Node | None] = {None: localization.at(_UNIT)}
    if plural is not None:
        units = {name: member.value.at(_UNIT) for name, member in plural.members.items()}
    return {
        name: (_text(unit.at("state")), _text(unit.at("value")) or "")
        for name, unit in units.items()
        if unit is not None
    }


def _text(node: Node | None) -> str | None:
    return None if node is None else node.text


def _entry(
    name: str, entry: Node, texts: _Texts, target: Node | None, options: Options
) -> _Entry | None:
    is_plural = None not in texts
    if is_plural:
        by_category = {each: text for each, text in texts.items() if each is not None}
        forms = plural_texts(by_category, COUNT, options, kept=KEPT)
    else:
        forms = (PluralText("", "", next(iter(texts.values()))),)
    held = (target and _held(target)) or {}
    comment = _text(entry.at("comment"))
    if not all(is_translatable(form.text.strip()) for form in forms):
        return None
    segments = tuple(_segment(name, form, held, comment) for form in forms)
    return _Entry(forms, segments, place_of(entry, options.target_lang), is_plural)


def _segment(
    name: str,
    form: PluralText,
    held: Mapping[str | None, tuple[str | None, str]],
    comment: str | None,
) -> Segment:
    text, codes = _tagged(form)
    status, there = held.get(form.category or None, (None, ""))
    state: State = _STATES.get(status, "empty") if there.strip() else "empty"
    return Segment(
        text=text,
        place=name,
        kind="plural" if form.category else "message",
        codes=codes,
        state=state,
        target=None if state == "empty" else of_text(form.numbered(_core(there, form)))[0],
        plural=form.category or None,
        number=form.number,
        number_optional=form.number_optional,
        context=comment,
    )


def _tagged(form: PluralText) -> tuple[str, tuple[InlineCode, ...]]:
    return of_text(form.text.strip())


def _around(form: PluralText) -> tuple[str, str]:
    """Return the blanks before and behind a text, which its translation gets too."""
    lead, _, trail = form.text.partition(form.text.strip())
    return lead, trail


def _core(text: str, form: PluralText) -> str:
    lead, trail = _around(form)
    return text.removeprefix(lead).removesuffix(trail)


def _localization(
    entry: _Entry, texts: Sequence[str | None], drafts: Sequence[bool]
) -> dict[str, Any] | None:
    """Return the localization with translations; None if none is given."""
    values = [_value(*each) for each in zip(entry.forms, entry.segments, texts, strict=True)]
    if all(each is None for each in values):
        return None
    units = {
        form.category: {_UNIT: _unit(form, segment, value, draft=draft)}
        for form, segment, value, draft in zip(
            entry.forms, entry.segments, values, drafts, strict=True
        )
    }
    if not entry.is_plural:
        return next(iter(units.values()))
    return {"variations": {"plural": dict(sorted(units.items()))}}


def _unit(form: PluralText, segment: Segment, value: str | None, *, draft: bool) -> dict[str, str]:
    """Return a form with its state: as it was, or `new` with the source, without translation."""
    if value is not None:
        return {"state": "needs_review" if draft else "translated", "value": value}
    there = None if segment.target is None else _value(form, segment, segment.target)
    if there is not None:
        return {"state": "needs_review" if segment.state == "draft" else "translated",
                "value": there}  # fmt: skip
    return {"state": "new", "value": form.put_back(form.text) or form.text}


def _value(form: PluralText, segment: Segment, text: str | None) -> str | None:
    if text is None or not text.strip() or not fits(text, segment.codes):
        return None
    found = form.put_back(text)
    if found is None:
        return None
    lead, trail = _around(form)
    return lead + rendered(found, segment.codes, str).strip() + trail


CODECS: Final[Mapping[str, Codec]] = {"xcstrings": XcStrings()}
