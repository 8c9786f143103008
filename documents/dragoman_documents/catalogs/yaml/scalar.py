"""A string of YAML at its place in the text, and which plain values are strings."""

from __future__ import annotations

from typing import Final, NamedTuple

import yaml

_RESOLVER: Final = yaml.SafeLoader("")
STRING: Final = "tag:yaml.org,2002:str"
WHITE_SPACE: Final = " \t\r\n\x85\u2028\u2029"
"""Blanks and line breaks of YAML; a no-break space, which `strip` takes too, is text."""


class PluralKey(NamedTuple):
    """A key that is a plural category."""

    mapping: int
    """Start of its mapping."""
    start: int
    end: int
    flow: bool
    """Whether its mapping is in braces."""


class Scalar(NamedTuple):
    """A string value at `[start:end)` of a text, with its quotes or the head of its block."""

    start: int
    end: int
    text: str
    path: tuple[str, ...]
    line: int
    style: str = ""
    """`'`, `"`, `|`, `>`; empty: plain."""
    head: str = ""
    """Of a block: what stands before its first letter."""
    gap: str = "\n"
    """Of a block: what separates its lines."""
    member: PluralKey | None = None
    """Where it is in a mapping whose keys so far are plural categories."""
    raw: str = ""
    """As it is spelled, with its quotes or its head."""
    flow: bool = False
    """Whether it is within brackets or braces."""


def is_string(value: str) -> bool:
    """Return whether a plain value is a string, not a number, a date, `yes` or `null`."""
    if value[:1] not in _RESOLVER.yaml_implicit_resolvers or (
        value[0].isalpha() and len(value) > 5
    ):
        return True  # of words only `false`, `null` and the like are no strings
    return bool(_RESOLVER.resolve(yaml.ScalarNode, value, (True, False)) == STRING)  # type: ignore[no-untyped-call]
