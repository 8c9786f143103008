"""Where a localization stands in an entry of a string catalog, and how it is spelled there."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from dragoman_documents.catalogs.json.tree import Node

_FIRST: Final = re.compile(r"\{([ \t\r\n]*)\"[^\"\\]*\"([ \t]*:[ \t]*)")
_ENTRY_LEVEL: Final = 3
"""Levels around the members of an entry: the file, `strings`, the entry."""


@dataclass(frozen=True, slots=True)
class Style:
    """The newline with the indentation of one level, and what is between a key and its value."""

    newline: str
    indent: str
    colon: str

    @classmethod
    def of(cls, text: str) -> Style:
        """Return the style of a file, which its first key shows."""
        found = _FIRST.search(text)
        blanks, colon = found.groups() if found else ("\n  ", " : ")
        newline = "\r\n" if "\r\n" in blanks else "\n" if "\n" in blanks else ""
        return cls(newline, blanks.rpartition("\n")[2] if newline else "", colon)

    def spelled(self, value: Any, level: int) -> str:
        """Return a value whose first line is at a level."""
        if not self.newline:
            return json.dumps(value, ensure_ascii=False, separators=(",", self.colon))
        text = json.dumps(
            value, ensure_ascii=False, indent=self.indent, separators=(",", self.colon)
        )
        return text.replace("\n", self.line(level))

    def line(self, level: int) -> str:
        """Return a new line at a level."""
        return self.newline + self.indent * level


@dataclass(frozen=True, slots=True)
class AppleValue:
    """The bytes `[start:end)` that hold a member of an object, or where it belongs by its name."""

    start: int
    end: int
    names: tuple[str, ...]
    """The names from the member on: `localizations` too if there is no other language."""
    level: int
    before: bool
    """Whether a member is before it."""
    behind: bool

    def content(self, style: Style, localization: Any) -> str:
        """Return the member with the commas and line ends that it needs."""
        value = localization
        for name in reversed(self.names[1:]):
            value = {name: value}
        member = f"{json.dumps(self.names[0], ensure_ascii=False)}{style.colon}" + style.spelled(
            value, self.level
        )
        line = style.line(self.level)
        if self.before:
            return f",{line}{member}"
        return f"{line}{member}" + (f",{line}" if self.behind else style.line(self.level - 1))


def place_of(entry: Node, language: str) -> AppleValue:
    """Return the place of a language in an entry; of all localizations if it is the only one."""
    held = entry.at("localizations")
    if held is None or not set(held.members) - {language}:
        return _place(entry, ("localizations", language), _ENTRY_LEVEL)
    return _place(held, (language,), _ENTRY_LEVEL + 1)


def _place(around: Node, names: tuple[str, ...], level: int) -> AppleValue:
    others = [(name, each) for name, each in around.members.items() if name != names[0]]
    own = around.members.get(names[0])
    if own is None:
        before = [each for name, each in others if name < names[0]]
        behind = [each for name, each in others if name > names[0]]
        # Names in another order than the alphabet's: behind the last one.
        if before and behind and before[-1].start > behind[0].start:
            before, behind = [each for _, each in others], []
    else:
        before = [each for _, each in others if each.start < own.start]
        behind = [each for _, each in others if each.start > own.start]
    if before:
        start = before[-1].value.end
        end = start if own is None else own.value.end
    else:
        start = around.start + 1
        end = behind[0].start if behind else around.end - 1
    return AppleValue(start, end, names, level, bool(before), bool(behind))
