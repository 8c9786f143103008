"""Values of data: which are text (no identifiers, paths, times or colours), and their places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from dragoman_documents.codec import DocumentError
from dragoman_text.spans import is_translatable

_IDENTIFIER: Final = re.compile(
    r"[!-~]*[0-9][!-~]*|[!-~]*[_/\\:#@=.][A-Za-z/#][!-~]*|true|false|null"
)
"""One word of ASCII with a digit or a mark inside it: `user_id`, `a/b.png`, `2026-01-01T10:00Z`."""

_OPERAND: Final = r"""(?:\$?[A-Z]{1,3}(?:\$?[0-9]|:)|[A-Za-z_.][\w.]*+[(|!]|[0-9]|["'({])"""
_FORMULA: Final = re.compile(rf"=[ \t]*+[+-]?{_OPERAND}")
_COMPUTED: Final = re.compile(r"=|[@+-][^\s(|]{1,40}+[(|]")

_ADDRESS: Final = re.compile(
    r"urn:[a-z0-9-]++:[!-~]++|mailto:[!-?A-~]++@[!-~]++|tel:[+0-9][!-~]*+"
    r"|[A-Za-z]:\\[!-~]*+|\\\\[!-~]++"
    r"|/[!-.0-~]++/[!-~]*+(?:(?<=\.\w\w)|(?<=\.\w\w\w)|(?<=\.\w\w\w\w))"
)
"""An address or a path that `is_translatable` does not know: one word of ASCII."""

_LONGEST_IDENTIFIER: Final = 200
_LONGEST_PLACE: Final = 200
Value = TypeVar("Value")


def is_text(value: str) -> bool:
    """Return whether a value of unknown use is text to translate. Linear in its length."""
    core = value.strip()
    if len(core) <= _LONGEST_IDENTIFIER and _IDENTIFIER.fullmatch(core):
        return False  # asked first: it is far cheaper
    return is_translatable(core)


def is_address(value: str) -> bool:
    """Return whether a cell holds only links, placeholders or a path: nothing that people read.

    Names such as `a.de`, `first.name` and `and/or` are words: nothing tells them from each other.
    """
    core = value.strip()
    return not is_translatable(core) or _ADDRESS.fullmatch(core) is not None


def is_formula(value: str) -> bool:
    """Return whether a value is a formula of a spreadsheet: `=A1+1`, `=SUM(A:A)`, `="x"&B2`."""
    return value.startswith("=") and _FORMULA.match(value) is not None


def computes(value: str) -> bool:
    """Return whether a spreadsheet that opens a value in a CSV file may take it for a formula."""
    return _COMPUTED.match(value) is not None


def place_of(path: Sequence[str | int]) -> str:
    """Return a path for people, shortened: a long key may lead to very many values."""
    place = ".".join([str(step)[:_LONGEST_PLACE] for step in path])
    return place if len(place) <= _LONGEST_PLACE else f"{place[: _LONGEST_PLACE - 3]}..."


def at_places(found: Iterable[Value], indices: Sequence[int], count: int) -> list[Value]:
    """Return the values of an output that are in the places of its source's segments.

    What is text there may not look like it. Raises DocumentError if the source had another `count`.
    """
    values = list(found)
    if len(values) != count:
        raise DocumentError("corrupt", "the output has other strings than its source")
    return [values[index] for index in indices]
