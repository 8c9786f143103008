"""Gate `structure`: JSON, code fences, table rows and separated values keep their shape."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

from dragoman_text.gates.defect import Defect
from dragoman_text.verdicts import Candidate

_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*\|")
_LEAST_ROWS: Final = 3
_SEPARATORS: Final = {"\t": 1, ";": 2, ",": 2}
"""Separators of values, and how many of them every row must have at least."""


def find(candidate: Candidate) -> Defect | None:
    """Return a defect if the answer has another shape than the source."""
    source, target = candidate.source, candidate.target
    return _json(source, target) or _fences(source, target) or _rows(source, target)


# --- JSON -----------------------------------------------------------------------------------------


def _json(source: str, target: str) -> Defect | None:
    if source.strip()[:1] not in ("{", "[") or source.strip()[-1:] not in ("}", "]"):
        return None
    expected = _parsed(source)
    if expected is None:
        return None
    found = _parsed(target)
    if found is None:
        return Defect("The source is JSON, the answer is not.")
    if _shape(expected) != _shape(found):
        return Defect("The JSON of the answer has other names or types than that of the source.")
    return None


def _parsed(text: str) -> Any:
    """Return the object or list that the text is, None if it is none."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict | list) else None


def _shape(value: Any) -> list[tuple[str, ...]]:
    """Return the types and names of all members in order, without recursion."""
    shape: list[tuple[str, ...]] = []
    left = [value]
    while left:
        current = left.pop()
        if isinstance(current, dict):
            shape.append(("dict", *current))
            left += current.values()
        elif isinstance(current, list):
            shape.append(("list", str(len(current))))
            left += current
        else:
            shape.append((type(current).__name__,))
    return shape


# --- fences and rows ------------------------------------------------------------------------------


def _fences(source: str, target: str) -> Defect | None:
    expected, found = len(_FENCE.findall(source)), len(_FENCE.findall(target))
    # Fences around the whole answer to a source without any belong to the gate `chatter`.
    if not expected or expected == found:
        return None
    return Defect(f"The answer has {found} code fences, the source {expected}.")


def _rows(source: str, target: str) -> Defect | None:
    lines = source.splitlines()
    if any(map(_RULE.match, lines)) and _bars(lines) != _bars(target.splitlines()):
        return Defect("The rows of the table have other columns than in the source.")
    separator = _separator(lines)
    if separator is None:
        return None
    if [line.count(separator) for line in lines] == [
        line.count(separator) for line in target.strip("\n").splitlines()
    ]:
        return None
    return Defect("The rows of the answer have other columns than those of the source.")


def _bars(lines: list[str]) -> Counter[int]:
    """Count the rows of a Markdown table by the number of their bars."""
    return Counter(line.count("|") for line in lines if "|" in line)


def _separator(lines: list[str]) -> str | None:
    """Return the separator that every row has equally often and never before a blank."""
    if len(lines) < _LEAST_ROWS:
        return None
    for separator, least in _SEPARATORS.items():
        counts = {line.count(separator) for line in lines}
        spaced = separator != "\t" and any(f"{separator} " in line for line in lines)
        if len(counts) == 1 and min(counts) >= least and not spaced:
            return separator
    return None
