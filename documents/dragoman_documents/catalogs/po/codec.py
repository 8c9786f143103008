"""PO and POT files of gettext: message by message, everything else byte by byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from dragoman_documents.catalogs.po.header import (
    DECLARED,
    Plurals,
    PoHeader,
    completed,
    plurals,
)
from dragoman_documents.catalogs.po.lines import PoEntry, PoToken, entries, quoted, tokens
from dragoman_documents.catalogs.po.messages import PoSlot, segments, value
from dragoman_documents.codec import (
    Codec,
    Extraction,
    Options,
    Remark,
    layout_of,
)
from dragoman_documents.encodings import Decoded, decoded, newline_of
from dragoman_documents.splicing import Replacement, replaced, skeleton

_Changes = Iterator[Replacement[str]]


@dataclass(frozen=True, slots=True)
class _Layout:
    file: Decoded
    text: str
    """The text with the newlines that the scanner knows, of the same length."""
    newline: str
    entries: tuple[PoEntry, ...]
    header: PoHeader
    plurals: Plurals
    slots: tuple[PoSlot, ...]


@dataclass(frozen=True)
class PoCodec:
    """Messages of gettext; filled ones are segments too, with their translation as `target`."""

    name: str = "po"
    suffixes: frozenset[str] = frozenset({".po", ".pot"})
    by_language: bool = True
    has_targets: bool = True
    can_double: bool = False

    def extract(self, data: bytes, options: Options) -> Extraction:
        """Return a segment per message, per plural form of the language. Raises DocumentError."""
        file = _decoded(data)
        # Lines of old Macs end with CR alone.
        text = file.text if "\n" in file.text else file.text.replace("\r", "\n")
        lines = list(tokens(text))
        found = tuple(entries(text, lines))
        header = _header(found)
        filled = any(each.value for entry in found for each in entry.msgstrs.values())
        forms = plurals(header, options.target_lang, filled=filled)
        read = [
            pair for entry in found for pair in segments(entry, forms.forms, _flags_of(entry, text))
        ]
        return Extraction(
            tuple(segment for segment, _ in read),
            _skeleton(text, lines, found, header),
            file.encoding,
            (*_remarks(header, forms, options.target_lang), *_left_over(found, text, forms)),
            _Layout(
                file, text, newline_of(file.text), found, header, forms,
                tuple(slot for _, slot in read),
            ),
        )  # fmt: skip

    def splice(
        self,
        data: bytes,
        extraction: Extraction,
        texts: Sequence[str | None],
        options: Options,
    ) -> bytes:
        """Return the file with these translations; drafts are `fuzzy`, the others are not."""
        layout = layout_of(extraction, _Layout)
        values = _values(extraction, layout, texts)
        if not values:
            return data
        text = layout.file.text
        changes = [*_message_changes(layout, values), *_flag_changes(layout, values, options)]
        encoding = layout.file.encoding_of(replaced(text, changes))
        changes += _header_changes(layout, values, options.target_lang, encoding)
        return layout.file.encoded(replaced(text, changes))


def _decoded(data: bytes) -> Decoded:
    found = DECLARED.search(data)
    declared = found[1].decode("ascii") if found else "CHARSET"
    if declared == "CHARSET":  # as templates have it
        return decoded(data)
    return decoded(data, declared, recognise=False)


def _header(found: Iterable[PoEntry]) -> PoHeader:
    entry = next((entry for entry in found if entry.is_header), None)
    return PoHeader.of(entry.msgstr.value if entry and entry.msgstr else "")


def _remarks(header: PoHeader, forms: Plurals, lang: str) -> Iterator[Remark]:
    language = header.field("Language").replace("_", "-")
    if language and language.split("-")[0].lower() != lang.split("-", maxsplit=1)[0].lower():
        detail = f"the header's Language is {language}, the target is {lang}"
        yield Remark("header", detail, "language")
    if not forms.fits:
        detail = f"the header's Plural-Forms don't match {lang}"
        yield Remark("header", detail, "plural")


def _left_over(found: Iterable[PoEntry], text: str, forms: Plurals) -> Iterator[Remark]:
    """Yield a remark on forms beyond the rule, which a translation of their message replaces."""
    for entry in found:
        is_shown = all(entry.msgstrs[form].value for form in entry.msgstrs) and not _is_fuzzy(
            entry, text
        )
        if not is_shown and any(
            form >= forms.rule.count and held.value for form, held in entry.msgstrs.items()
        ):
            line = entry.msgid.line if entry.msgid else 1
            detail = "forms beyond Plural-Forms are removed when it is translated"
            yield Remark(f"line {line}", detail, "plural")


def _skeleton(
    text: str, lines: Iterable[PoToken], found: Iterable[PoEntry], header: PoHeader
) -> str:
    """Return the digest of all lines but msgstr, the flag `fuzzy`, blank lines and the header."""
    headers = {entry.start for entry in found if entry.is_header}
    kept = [
        _kept(text, line)
        for line in lines
        if line.keyword != "msgstr" and line.start not in headers
    ]
    return skeleton("", (), "\n".join(filter(None, kept)), header.fixed)


def _kept(text: str, line: PoToken) -> str:
    spelled = text[line.start : line.end].strip()
    if spelled[:2] != "#,":
        return spelled
    return ",".join(each for each in _flags(spelled) if each != "fuzzy")


def _flags(line: str) -> list[str]:
    return [flag for each in line.strip()[2:].split(",") if (flag := each.strip())]


def _flags_of(entry: PoEntry, text: str) -> list[str]:
    return [flag for start, end in entry.flags for flag in _flags(text[start:end])]


def _is_fuzzy(entry: PoEntry, text: str) -> bool:
    return "fuzzy" in _flags_of(entry, text)


_Values = Mapping[int, dict[int | None, tuple[int, str]]]
"""Per entry (where it starts) and form: the index of the segment, and the msgstr to write."""


def _values(extraction: Extraction, layout: _Layout, texts: Sequence[str | None]) -> _Values:
    """Return what is written; nothing of a plural message that would have its first form alone.

    Once that is filled, gettext shows an empty form as nothing, and msgfmt refuses it.
    """
    found: dict[int, dict[int | None, tuple[int, str]]] = {}
    for index, (segment, slot, text) in enumerate(
        zip(extraction.segments, layout.slots, texts, strict=True)
    ):
        if text is not None and (spelled := value(text, segment, slot)) is not None:
            found.setdefault(slot.entry.start, {})[slot.form] = (index, spelled)
    count = layout.plurals.rule.count
    held = {slot.entry.start: slot.entry for slot in layout.slots}
    return {
        at: new for at, new in found.items() if None in new or _fills(new.keys(), held[at], count)
    }


def _fills(new: AbstractSet[int | None], entry: PoEntry, count: int) -> bool:
    """Return whether a plural message has all of its forms with the new ones, or not its first."""
    there = {form for form, held in entry.msgstrs.items() if held.value} | new
    return 0 not in there or there >= set(range(count))


def _message_changes(layout: _Layout, values: _Values) -> _Changes:
    renewed = _renews_rule(layout, values)
    for entry in layout.entries:
        new = values.get(entry.start, {})
        if entry.msgstr is not None and None in new:
            content = quoted(new[None][1], layout.newline)
            yield Replacement(entry.msgstr.start, entry.msgstr.end, content)
        elif entry.msgstrs and (new or renewed):
            yield from _plural_changes(entry, new, layout)


def _renews_rule(layout: _Layout, values: _Values) -> bool:
    """Return whether the header gets a rule of plural forms, which all messages must follow."""
    plural = any(None not in forms for forms in values.values())
    return not layout.plurals.declared and (plural or layout.header.is_template)


def _plural_changes(
    entry: PoEntry, new: Mapping[int | None, tuple[int, str]], layout: _Layout
) -> _Changes:
    """Yield what gives a message all forms of the rule, and none beyond.

    A form beyond it is never shown, and msgfmt refuses it in a message that is translated.
    """
    count, missing = layout.plurals.rule.count, []
    for form in range(count):
        content = quoted(new[form][1] if form in new else "", layout.newline)
        if form not in entry.msgstrs:
            missing.append(f"msgstr[{form}] {content}{layout.newline}")
        elif form in new:
            yield Replacement(entry.msgstrs[form].start, entry.msgstrs[form].end, content)
    beyond = [held for form, held in entry.msgstrs.items() if form >= count]
    if new or not any(held.value for held in beyond):
        for held in beyond:
            yield Replacement(held.line_start, held.line_end, "")
    if missing:
        end = max(held.line_end for held in entry.msgstrs.values())
        begin = "" if layout.text[end - 1] == "\n" else layout.newline
        yield Replacement(end, end, begin + "".join(missing))


def _flag_changes(layout: _Layout, values: _Values, options: Options) -> _Changes:
    for entry in layout.entries:
        new = values.get(entry.start)
        if new is None:
            continue
        fuzzy = _is_fuzzy(entry, layout.text)
        if any(index in options.drafts for index, _ in new.values()):
            if not fuzzy:
                yield _with_fuzzy(entry, layout)
        elif fuzzy and (None in new or len(new) >= layout.plurals.rule.count):
            yield from _without_fuzzy(entry, layout)


def _with_fuzzy(entry: PoEntry, layout: _Layout) -> Replacement[str]:
    if entry.flags:
        place = layout.text.index("#,", *entry.flags[0]) + 2
        return Replacement(place, place, " fuzzy,")
    place = entry.start if entry.before_previous is None else entry.before_previous
    return Replacement(place, place, f"#, fuzzy{layout.newline}")


def _without_fuzzy(entry: PoEntry, layout: _Layout) -> _Changes:
    for start, end in entry.flags:
        flags = _flags(layout.text[start:end])
        others = ", ".join(flag for flag in flags if flag != "fuzzy")
        if "fuzzy" in flags:
            yield Replacement(start, end, f"#, {others}{layout.newline}" if others else "")


def _header_changes(layout: _Layout, values: _Values, lang: str, encoding: str) -> _Changes:
    plural = any(None not in forms for forms in values.values())
    new = completed(layout.header, lang, layout.plurals, encoding, plural=plural)
    if new == layout.header:
        return
    content = layout.newline.join(
        ['""', *(quoted(f"{line}\n", layout.newline).removeprefix(f'""{layout.newline}')
                 for line in new.lines)]
    )  # fmt: skip
    entry = next((entry for entry in layout.entries if entry.is_header), None)
    if entry is None or entry.msgstr is None:
        begin = f'msgid ""{layout.newline}msgstr {content}{layout.newline * 2}'
        yield Replacement(0, 0, begin)
        return
    yield Replacement(entry.msgstr.start, entry.msgstr.end, content)
    if layout.header.is_template and _is_fuzzy(entry, layout.text):
        yield from _without_fuzzy(entry, layout)


CODECS: Final[Mapping[str, Codec]] = {"po": PoCodec()}
