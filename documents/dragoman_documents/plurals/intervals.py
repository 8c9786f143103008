"""Interval messages of i18next, `(1)[one item];(2-7)[a few items];(7-inf)[many items];`.

Each arm is a text; its bounds stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dragoman_documents.codec import Segment
from dragoman_documents.inline_codes import fits, of_text, plain, rendered
from dragoman_text.spans import is_translatable

_BOUNDS: Final = r"\(\s*[0-9]{1,9}\s*(?:-\s*(?:[0-9]{1,9}|inf)\s*)?\)"
_OPENS: Final = rf"\s*+({_BOUNDS})[^;{{}}\[\]]{{0,20}}"
_ENDS: Final = r"\s*+(?:;\s*+|\Z)"
_ARM: Final = re.compile(
    rf"(?P<before>{_OPENS}\[)(?P<text>[^;]*)(?P<behind>\]{_ENDS})"
    rf"|(?P<older>{_OPENS}\{{)(?P<old>[^;]*)(?P<end>\}}{_ENDS})"
)
"""In braces until version 2 of the plugin, in brackets since."""
_BREAKS: Final = re.compile(r";|(?<!\{)\{(?!\{)|\)\S*\[")
"""What the plugin would not read as text: it cuts at `;` before it looks for brackets."""


@dataclass(frozen=True, slots=True)
class _Arm:
    before: str
    bounds: str
    text: str
    behind: str

    @property
    def is_segment(self) -> bool:
        """Whether it has words."""
        return is_translatable(plain(of_text(self.text)[0]))

    def spelled(self, given: str | None) -> str:
        """Return the arm with a translation; the source where it does not fit."""
        core = self.text.strip()
        _, codes = of_text(core)
        if given is None or not fits(given, codes) or not is_translatable(plain(given)):
            return self.text
        lead, _, trail = self.text.partition(core)
        new = rendered(given, codes, str).strip()
        return self.text if _BREAKS.search(new) and new != core else f"{lead}{new}{trail}"


@dataclass(frozen=True, slots=True)
class Intervals:
    """The arms of a message."""

    arms: tuple[_Arm, ...]

    @property
    def signature(self) -> str:
        """Return what no translation may change: bounds, and arms without words."""
        return "\0".join(
            f"{each.before}{'' if each.is_segment else each.text}{each.behind}"
            for each in self.arms
        )

    def segments(self, place: str) -> tuple[Segment, ...]:
        """Return a segment per arm with words; its bounds are part of the place."""
        return tuple(_segment(each, place) for each in self.arms if each.is_segment)

    def spelled(self, texts: Sequence[str | None]) -> str:
        """Return the message with a translation for each segment; the source where it is None."""
        given = iter(texts)
        return "".join(
            each.before + each.spelled(next(given) if each.is_segment else None) + each.behind
            for each in self.arms
        )


def _segment(arm: _Arm, place: str) -> Segment:
    text, codes = of_text(arm.text.strip())
    return Segment(text, f"{place}, {arm.bounds}", "message", codes)


def intervals(value: str) -> Intervals | None:
    """Return the message that a value is; None if it is none."""
    arms: list[_Arm] = []
    place = 0
    while match := _ARM.match(value, place):
        before, bounds, text, behind = match.groups()[:4] if match[1] else match.groups()[4:]
        arms.append(_Arm(before, bounds, text, behind))
        place = match.end()
    return Intervals(tuple(arms)) if arms and place == len(value) else None
