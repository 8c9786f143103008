"""Messages of a PO file as segments, and translations as values of msgstr."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman_documents.catalogs.po.lines import Field, PoEntry
from dragoman_documents.codec import InlineCode, Segment, State
from dragoman_documents.inline_codes import LOOKALIKE, fits, of_text, rendered
from dragoman_documents.plurals.rules import Form, restored
from dragoman_text.spans import is_translatable

_COUNTABLE: Final = re.compile(
    r"%\(\w{1,60}\)[0-9]{0,3}(?:[diu]|s)|%(?:[0-9]{1,2}\$)?[0-9]{0,3}(?:ll|l|z)?[diu]|%n\b"
    r"|\$?\{\w{0,60}(?::[dn,]{1,2})?\}|%(?:[0-9]{1,2}\$)?s"
)
"""Placeholders that may hold the count."""
_INTEGER: Final = re.compile(r"%.*[diun]|\{.*:.+\}")
_NAMED: Final = re.compile(
    r"(?i)[%{]\(?(?:count|num|number|n|counter|\w+_count|num_\w+|number_of_\w+)\b.*"
)
_COUNTED_BY_ORDER: Final = re.compile(r"\$?\{(?::.*)?\}")
_EXCESS_IS_IGNORED: Final = frozenset({"c-format", "php-format"})
"""Flags of formats in which `%d` may be left out. Python raises TypeError; msgfmt refuses it too.
"""


class PoSlot(NamedTuple):
    """A segment's place: its entry and, of a plural message, the index of the form."""

    entry: PoEntry
    form: int | None
    lead: str
    trail: str
    placeholder: str | None = None


class _Source(NamedTuple):
    """A form's text before it is a segment, and the number that stands in it."""

    text: str
    number: int | None = None
    placeholder: str | None = None
    number_optional: bool = False


def segments(
    entry: PoEntry, forms: Sequence[Form], flags: Collection[str]
) -> Iterator[tuple[Segment, PoSlot]]:
    """Yield the segments of an entry with their slots: one, or one per plural form."""
    fuzzy = "fuzzy" in flags
    if entry.msgid is None or entry.is_header:
        return
    if entry.plural is None:
        source = _Source(entry.msgid.value)
        if (found := _segment(entry, None, source, "other", fuzzy=fuzzy)) is not None:
            yield found
        return
    sources = _form_sources(entry.msgid.value, entry.plural.value, forms, flags)
    for index, (form, source) in enumerate(zip(forms, sources, strict=True)):
        found = _segment(entry, index, source, form.category, fuzzy=fuzzy)
        if found is not None:
            yield found


def _segment(
    entry: PoEntry, index: int | None, source: _Source, category: str, *, fuzzy: bool
) -> tuple[Segment, PoSlot] | None:
    core = source.text.strip()
    if entry.msgid is None or not is_translatable(core):
        return None
    lead, _, trail = source.text.partition(core)
    text, codes = of_text(core)
    slot = PoSlot(entry, index, lead, trail, source.placeholder)
    held = entry.msgstr if index is None else entry.msgstrs.get(index)
    target = _target(held, slot, source.number, codes)
    segment = Segment(
        text,
        f"line {entry.msgid.line}",
        "message" if index is None else "plural",
        codes,
        state=_state(target, fuzzy=fuzzy),
        target=target,
        plural=None if index is None else category,
        context=None if entry.msgctxt is None else entry.msgctxt.value,
        number=source.number,
        number_optional=source.number_optional,
    )
    return segment, slot


def _state(target: str | None, *, fuzzy: bool) -> State:
    if target is None:
        return "empty"
    return "draft" if fuzzy else "done"


def _target(
    held: Field | None, slot: PoSlot, number: int | None, codes: Sequence[InlineCode]
) -> str | None:
    """Return the translation that is there, as its segment would have it; None if it is blank."""
    if held is None or not held.value.strip():
        return None
    value = held.value.removeprefix(slot.lead)
    value = _numbered(value.removesuffix(slot.trail), slot.placeholder, number)
    return _tagged(value, codes) if codes else value


def _numbered(value: str, placeholder: str | None, number: int | None) -> str:
    if placeholder is None or number is None or value.count(placeholder) != 1:
        return value
    found = value.replace(placeholder, str(number))
    return found if restored(found, number, placeholder) == value else value


def _tagged(value: str, codes: Sequence[InlineCode]) -> str:
    """Return a translation with the tags of its source for text that looks like one."""
    left = dict(enumerate(codes, 1))

    def tag(match: re.Match[str]) -> str:
        number = next((n for n, code in left.items() if code.opening == match[0]), None)
        if number is None:
            return match[0]
        del left[number]
        return f"<x{number}/>"

    return LOOKALIKE.sub(tag, value)


def value(text: str, segment: Segment, slot: PoSlot) -> str | None:
    """Return the msgstr of a translation; None if it cannot be one."""
    if not fits(text, segment.codes):
        return None
    if slot.placeholder is not None and segment.number is not None:
        found = restored(text, segment.number, slot.placeholder, optional=segment.number_optional)
        if found is None:
            return None
        text = found
    return slot.lead + rendered(text, segment.codes, str) + slot.trail


def _form_sources(
    singular: str, plural: str, forms: Sequence[Form], flags: Collection[str]
) -> list[_Source]:
    """Return the source of each form: with numbers if each form can have one, else without."""
    placeholder = _count_placeholder(singular, plural)
    if placeholder is not None:
        found = [_with_number(singular, plural, placeholder, form, flags) for form in forms]
        complete = [each for each in found if each is not None]
        if len(complete) == len(forms):
            return complete
    counts = [sorted(_COUNTABLE.findall(each)) for each in (singular, plural)]
    same = counts[0] == counts[1]
    spared = same or not any(_is_needed(each, flags) for each in counts[1])
    return [
        _Source(singular if (form.is_one and spared) or (same and form.smallest == 1) else plural)
        for form in forms
    ]


def _with_number(
    singular: str, plural: str, placeholder: str, form: Form, flags: Collection[str]
) -> _Source | None:
    """Return the msgid for a number, which is the singular for 1 alone, whatever the form."""
    if form.is_one and placeholder not in singular and not _is_needed(placeholder, flags):
        return _Source(singular)
    number = form.number_for(singular.replace(placeholder, " "), plural.replace(placeholder, " "))
    if number is None:
        return None
    text = singular if number == 1 and placeholder in singular else plural
    found = text.replace(placeholder, str(number))
    if restored(found, number, placeholder) != text:
        return None
    optional = form.is_one and _may_be_left_out(placeholder, singular, flags)
    return _Source(found, number, placeholder, optional)


def _is_needed(placeholder: str, flags: Collection[str]) -> bool:
    """Return whether Python cannot format a message without this placeholder."""
    return "python-format" in flags and not placeholder.startswith("%(")


def _may_be_left_out(placeholder: str, message: str, flags: Collection[str]) -> bool:
    """Return whether the program can format a message without this placeholder.

    One that has a name can be left out; one that is counted by its order only where it is the only
    one, or the arguments of the others would move.
    """
    rest = message.replace(placeholder, "")
    if _COUNTED_BY_ORDER.fullmatch(placeholder):
        return "{" not in rest
    if "{" in placeholder or placeholder.startswith("%(") or placeholder == "%n":
        return True
    return "%" not in rest.replace("%%", "") and not _EXCESS_IS_IGNORED.isdisjoint(flags)


def _count_placeholder(singular: str, plural: str) -> str | None:
    """Return the placeholder of the count; None if it is in doubt, or there more than once."""
    candidates = _COUNTABLE.findall(plural)
    for pattern in (_NAMED, _INTEGER, _COUNTABLE):
        found = [each for each in candidates if pattern.fullmatch(each)]
        if found:
            once = len(found) == 1 and plural.count(found[0]) == 1
            return found[0] if once and singular.count(found[0]) <= 1 else None
    return None
