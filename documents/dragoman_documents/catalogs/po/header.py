"""The header of a PO file: its fields, and what must change in it for a translation."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from dragoman_documents.plurals.rules import (
    Form,
    GettextRule,
    fits_language,
    gettext_forms,
    gettext_rule,
    parsed_rule,
)

_CHANGEABLE: Final = frozenset({
    "language", "plural-forms", "mime-version", "content-type", "content-transfer-encoding",
})  # fmt: skip
"""Fields that a translation may change; all others belong to the skeleton."""
_CHARSET: Final = re.compile(r"charset=([\w.:-]+)", re.IGNORECASE)
DECLARED: Final = re.compile(rb"(?mi)^\"Content-Type:[^\"\n]{0,200}charset=([\w.:-]{1,40})")
"""The declared encoding, in the bytes of a file."""


@dataclass(frozen=True, slots=True)
class PoHeader:
    """The lines of a header, each `Name: value`; empty if the file has none."""

    lines: tuple[str, ...]

    @classmethod
    def of(cls, value: str) -> PoHeader:
        """Return the header of the msgstr of an empty msgid."""
        return cls(tuple(value.removesuffix("\n").split("\n")) if value else ())

    def field(self, name: str) -> str:
        """Return the value of a field; empty if it is missing."""
        begin = f"{name.lower()}:"
        found = (line for line in self.lines if line.lower().startswith(begin))
        return next(found, ":").partition(":")[2].strip()

    @property
    def fixed(self) -> str:
        """Return what no translation changes."""
        kept = (line for line in self.lines if _name(line) not in _CHANGEABLE)
        return "\n".join(kept)

    @property
    def is_template(self) -> bool:
        """Whether it is that of a POT file, to be completed."""
        return not self.field("Language") or self.field("Content-Type").endswith("CHARSET")

    def rule(self) -> GettextRule | None:
        """Return the rule of plural forms, if it has a valid one."""
        return parsed_rule(self.field("Plural-Forms"))

    def text(self) -> str:
        """Return the msgstr."""
        return "".join(f"{line}\n" for line in self.lines)

    def having(self, name: str, value: str) -> PoHeader:
        """Return a header with a field: in its place if it was there, else at the end."""
        line = f"{name}: {value}"
        if any(_name(each) == name.lower() for each in self.lines):
            return PoHeader(
                tuple(line if _name(each) == name.lower() else each for each in self.lines)
            )
        return PoHeader((*self.lines, line))


def _name(line: str) -> str:
    return line.partition(":")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Plurals:
    """The plural forms in which a file is translated, and whether its header has their rule."""

    rule: GettextRule
    forms: tuple[Form, ...]
    declared: bool
    fits: bool


def plurals(header: PoHeader, lang: str, *, filled: bool) -> Plurals:
    """Return the forms by the header's rule; by the language's if none is filled and it is wrong.

    `filled`: whether a plural message has a translation already.
    """
    rule = header.rule()
    fits = rule is not None and fits_language(rule, lang)
    if rule is not None and (fits or filled):
        return Plurals(rule, gettext_forms(rule, lang), declared=True, fits=fits)
    own = gettext_rule(lang)
    return Plurals(own, gettext_forms(own, lang), declared=False, fits=rule is None)


def completed(
    header: PoHeader, lang: str, found: Plurals, encoding: str, *, plural: bool
) -> PoHeader:
    """Return the header of a translated file: only what is missing or wrong is changed.

    `plural`: whether a plural message has got a translation.
    """
    template = header.is_template
    if not header.field("Language"):
        header = header.having("Language", lang.replace("-", "_"))
    if not found.declared and (template or plural):
        header = header.having("Plural-Forms", str(found.rule))
    return _encoded(header, encoding)


def _encoded(header: PoHeader, encoding: str) -> PoHeader:
    """Return the header with the encoding, if it has none or declares another."""
    spelled = "UTF-8" if encoding in {"utf-8", "ascii"} else encoding
    content = header.field("Content-Type")
    declared = _CHARSET.search(content)
    if declared is None:
        header = header.having("MIME-Version", header.field("MIME-Version") or "1.0")
        header = header.having("Content-Type", f"text/plain; charset={spelled}")
        return header.having("Content-Transfer-Encoding", "8bit")
    if _codec_name(declared[1]) == encoding:
        return header
    changed = content[: declared.start(1)] + spelled + content[declared.end(1) :]
    return header.having("Content-Type", changed)


def _codec_name(encoding: str) -> str | None:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return None
